"""The two lenses on a command before it runs: what would decide about it here, and what of it would be recorded."""

from __future__ import annotations

import os

from doorward.commands.run_options import command_of, opening_of
from doorward.gates.resolver import resolve
from doorward.inner_environment import build
from doorward.judgement import judgement_of
from doorward.lenses import Door, Finding, Lenses, Part, gate_doors
from doorward.opening import plan_for
from doorward.options import Parsed
from doorward.plan import PROXY_URL, Plan
from doorward.sessions.environment import environment_record
from doorward.shell_action import shell_action


def explained_ahead(parsed: Parsed, command: tuple[str, ...]) -> Lenses:
    """Under the configuration and options given. Nothing is run or written. Raises UsageError."""
    plan = plan_for(opening_of("explain", parsed), os.environ)
    argv, cwd = command_of("explain", parsed._replace(words=command))
    verdict = resolve(judgement_of(plan).dial, shell_action(argv, cwd, os.environ))
    starts = verdict.verdict != "deny"
    doors = gate_doors(verdict.to_json())
    if verdict.verdict == "deny":
        doors.append(Door("sandbox and proxy", None, "not reached", ("nothing would be started",)))
    else:
        doors += _doors_ahead(plan)
    said = {"allow": "it would start", "ask": "somebody would be asked first", "deny": "it would not start"}
    return Lenses(None, argv, tuple(doors), tuple(_parts(plan, starts)), (Finding(True, said[str(verdict.verdict)]),))


def _doors_ahead(plan: Plan) -> list[Door]:
    if plan.bypass:
        return [Door("sandbox and proxy", False, "passed", ("bypassed: nothing holds",))]
    sandbox = plan.sandbox
    held = "the kernel holds it; doorward doctor says what this machine can enforce"
    writable = {
        "read-only": "nothing may be written",
        "workspace-write": f"writes end at {', '.join((sandbox.workspace, *sandbox.write))}",
        "danger-full-access": "everything may be written",
    }[str(sandbox.mode)]
    network = {
        "off": "the network is off",
        "full": "the network is open [network.mode=full]",
        "proxied": _rules(plan),
    }[sandbox.network]
    return [
        Door("sandbox filesystem", str(sandbox.mode) != "danger-full-access", "left to the kernel", (writable, held)),
        Door("proxy", sandbox.network == "proxied", "left to the proxy" if plan.proxied else "passed", (network,)),
    ]


def _rules(plan: Plan) -> str:
    allow, deny = (plan.proxy_settings.get(key) for key in ("allow", "deny"))
    counts = [len(rules) if isinstance(rules, list) else 0 for rules in (allow, deny)]
    return f"only what {counts[0]} allow rules name, less {counts[1]} deny rules; doorward allowlist test HOST tells"


def _parts(plan: Plan, starts: bool) -> list[Part]:
    configuration = plan.configuration
    parts = [Part("command", "yes", "words, folder, verdict, every reason"), Part("rules", "yes", "with their origin")]
    if not starts:
        return [*parts, Part("outcome", "yes", "exit status 126; nothing would be started, and nothing seen")]
    inner = build(
        os.environ,
        inherit=configuration.text("env.inherit"),
        passed=configuration.strings("env.pass"),
        proxy_url=PROXY_URL if plan.proxied else None,
    )
    record = environment_record(inner.variables, b"\0" * 32)
    hidden = sum("fingerprint" in each for each in record)
    text = f"{len(record) - hidden} of {len(record)} values in plain text, {hidden} as fingerprints"
    if inner.withheld:
        text += f"; withheld from the command: {', '.join(inner.withheld)}"
    sealed = plan.seal_to is not None
    parts.append(Part("environment", "yes" if sealed else "in part", f"{text}; sealed too" if sealed else text))
    redacted = configuration.text("replay.redact") == "write"
    text = "whole; credentials taken out before it is written" if redacted else "whole, long ones as a blob"
    parts.append(Part("output", "in part" if redacted else "yes", text))
    parts.append(Part("network", "in part", "each decision with place, rule and bytes; not what is sent and received"))
    parts.append(Part("input", "no", "what it reads from its standard input is not recorded"))
    parts.append(Part("files", "no", "no copy of the workspace is kept"))
    return parts

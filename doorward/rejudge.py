"""Judges what a session did once more, under other rules: which answers would be others.

What was recorded of a turn (sandbox, network mode, approval policy, rules, features) is where it starts from; every key
that the other policy sets replaces the recorded one, an array as a whole. So a change of policy can be tried on what
happened before it is made. Nothing is looked up or dialled: a connection is judged by its name and the address that
was dialled then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from doorward.allowlists.host import MalformedHost, parse_host
from doorward.allowlists.rule import MalformedRule
from doorward.allowlists.ruleset import RuleSet
from doorward.allowlists.settings import rule_set_from_settings
from doorward.configuration import Configuration, load
from doorward.configuration_schema import NETWORK_OF_MODE
from doorward.errors import UsageError
from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.policy_rules import Policy
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Gate
from doorward.judgement import dial_for
from doorward.launcher.interface import Mode, SandboxPolicy
from doorward.named_tuple import NamedTuple
from doorward.network_settings import network_settings
from doorward.plan import Plan
from doorward.policy_file import OtherPolicy
from doorward.sessions.damage import Damage
from doorward.sessions.home import Home
from doorward.sessions.items import command_line, turn_change
from doorward.sessions.line import Line

_STRICTNESS = ("allow", "ask", "deny")
_ASKED = frozenset(("approval", "guardian", "trust"))


class Change(NamedTuple):
    """One answer that would be another."""

    turn: int | None
    kind: str
    """`action` or `connection`."""
    what: str
    was: str
    would_be: str
    why: str

    @property
    def newly_refused(self) -> bool:
        """It went through, and would not any more."""
        return self.was == "allow" and self.would_be != "allow"


class Rejudged(NamedTuple):
    """The outcome."""

    actions: int
    connections: int
    """How many were judged."""
    changes: tuple[Change, ...]

    @property
    def newly_refused(self) -> tuple[Change, ...]:
        """What would be refused, or asked about, that was not."""
        return tuple(change for change in self.changes if change.newly_refused)


def rejudged(lines: Iterable[Line | Damage], policy: OtherPolicy, home: Home) -> Rejudged:
    """Under `policy` (`policy_file.read_policy`). Raises UsageError where it makes no sense."""
    actions = connections = 0
    changes: dict[Change, None] = {}
    judge: _Judge | None = None
    for line in lines:
        if isinstance(line, Damage) or not line.whole:
            continue
        if turn_change(line.type, line.payload) == "started":
            judge = None
        elif line.type == "turn_context":
            judge = _judge(line.payload, policy, home)
        elif judge is not None and line.type == "verdict":
            actions += 1
            for change in _action(line, judge):
                changes[change] = None
        elif judge is not None and line.type == "network":
            connections += 1
            for change in _connection(line, judge):
                changes[change] = None
    return Rejudged(actions, connections, tuple(changes))


def _plan(home: Home, workspace: str, configuration: Configuration, rules: Policy | None) -> Plan:
    """As `opening.plan_for`, without what a run would need besides."""
    mode = configuration.text("sandbox_mode")
    chosen = configuration.optional_text("network.mode") or NETWORK_OF_MODE[mode]
    sandbox = SandboxPolicy(
        mode=Mode(mode),
        workspace=workspace,
        write=configuration.strings("filesystem.write"),
        read_only=configuration.strings("filesystem.read_only"),
        deny_read=configuration.strings("filesystem.deny_read"),
        allow_unix=configuration.strings("filesystem.allow_unix"),
        network="proxied" if chosen == "limited" else chosen,  # type: ignore[arg-type]
        home=home.path,
        cache_dir=home.cache,
    )
    proxied = sandbox.network == "proxied"
    settings = network_settings(configuration, home, {}, rules)[0] if proxied else {}
    return Plan(home, configuration, sandbox, proxied, settings, policy=rules)


class _Judge(NamedTuple):
    """Of one turn. `rules` is None where no proxy would stand there."""

    dial: Dial
    network: str
    rules: RuleSet | None


def _judge(context: Mapping[str, Any], policy: OtherPolicy, home: Home) -> _Judge | None:
    ours = context.get("doorward")
    if not isinstance(ours, dict):
        return None  # another writer's turn: no door of ours stood there
    recorded = _recorded(context, ours)
    sandbox = ours.get("sandbox")
    workspace = sandbox.get("workspace") if isinstance(sandbox, dict) else context.get("cwd")
    workspace = workspace if isinstance(workspace, str) and os.path.isabs(workspace) else "/nonexistent"
    flags = {**recorded, **policy.keys}
    if "sandbox_mode" in policy.keys and "network.mode" not in policy.keys:
        flags.pop("network.mode", None)  # it follows the sandbox mode
    mode = flags.get("network.mode", NETWORK_OF_MODE.get(str(flags.get("sandbox_mode", "workspace-write"))))
    if "network.mode" not in policy.keys and mode in ("off", "full"):
        # no proxy stood there, so rules about hosts say nothing about this turn
        flags = {key: value for key, value in flags.items() if key not in ("network.allow", "network.deny")}
    nothing = os.path.join(home.path, "no-such-configuration")
    # no layer of this machine: what was recorded, and the other policy
    configuration: Configuration = load(nothing, "/", {}, flags=flags, source="api", system=nothing)
    plan = _plan(home, workspace, configuration, policy.rules)
    try:
        rules = rule_set_from_settings(plan.proxy_settings) if plan.proxied else None
    except MalformedRule as error:
        raise UsageError(f"doorward replay: {error}") from None
    return _Judge(dial_for(plan), plan.sandbox.network, rules)


def _recorded(context: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, object]:
    """The recorded settings as configuration keys."""
    sandbox = ours.get("sandbox") if isinstance(ours.get("sandbox"), dict) else {}
    rules = ours.get("rules") if isinstance(ours.get("rules"), dict) else {}
    flags: dict[str, object] = {}
    assert isinstance(sandbox, dict) and isinstance(rules, dict)
    if sandbox.get("mode") in ("read-only", "workspace-write", "danger-full-access"):
        flags["sandbox_mode"] = sandbox["mode"]
    if isinstance(context.get("approval_policy"), str):
        flags["approval_policy"] = context["approval_policy"]
    network = "limited" if rules.get("limited") else ours.get("network")
    if network in ("off", "limited", "proxied", "full"):
        flags["network.mode"] = network
    for key in ("write", "read_only", "deny_read", "allow_unix"):
        if isinstance(sandbox.get(key), list):
            flags[f"filesystem.{key}"] = sandbox[key]
    if network not in ("off", "full"):
        for effect in ("allow", "deny"):
            rows = rules.get(effect)
            if isinstance(rows, list):
                flags[f"network.{effect}"] = [row["rule"] for row in rows if isinstance(row, dict) and "rule" in row]
        if isinstance(rules.get("hosts"), dict):
            flags["network.hosts"] = rules["hosts"]
    features = ours.get("features")
    if isinstance(features, list) and "guardian_approval" in features:
        flags["features.guardian_approval"] = True
    return flags


def _action(line: Line, judge: _Judge) -> Iterator[Change]:
    recorded = line.payload.get("action")
    if not isinstance(recorded, dict) or not isinstance(recorded.get("argv"), list):
        return
    action = Action(
        kind=str(recorded.get("kind") or "shell"),
        argv=tuple(map(str, recorded["argv"])),
        cwd=str(recorded.get("cwd")),
        env={},
        writes=tuple(map(str, recorded.get("writes") or ())),
        network_to=tuple(_place(str(text)) for text in recorded.get("network_to") or ()),
        needs_feature=recorded.get("needs_feature"),
    )
    verdict = resolve(judge.dial, action)
    was, would_be = _before_asking(line.payload), str(verdict.verdict)
    if was != would_be:
        what = command_line(action.argv)
        yield Change(line.turn, "action", what, was, would_be, verdict.deciding.sentence)


def _before_asking(verdict: Mapping[str, Any]) -> str:
    """What the gates said before anybody was asked: their answer is what is compared, not the person's."""
    reasons = verdict.get("reasons")
    rows = [row for row in reasons if isinstance(row, dict)] if isinstance(reasons, list) else []
    known = {gate.value for gate in Gate}
    effects = [str(row.get("effect")) for row in rows if row.get("gate") in known]
    asked = [row for row in rows if row.get("gate") in _ASKED and row.get("effect") == "ask"]
    if asked and "deny" not in effects:
        return "ask"
    return str(verdict.get("verdict"))


def _connection(line: Line, judge: _Judge) -> Iterator[Change]:
    record = line.payload
    host, port, was = record.get("host"), record.get("port"), record.get("decision")
    if not isinstance(host, str) or not isinstance(port, int) or was not in _STRICTNESS:
        return
    would_be, why = _judged_place(judge, host, port, record.get("address"))
    if would_be != was:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        yield Change(line.turn, "connection", place, str(was), would_be, why)


def _judged_place(judge: _Judge, host: str, port: int, address: object) -> tuple[str, str]:
    """The answer for a place, by name and by the address that was dialled, and one sentence why."""
    if judge.rules is None:
        return ("deny", "the network is off") if judge.network == "off" else ("allow", "the network is open")
    try:
        decision = judge.rules.decide(parse_host(host), port)
    except MalformedHost as error:
        return "deny", str(error)
    if str(decision.effect) == "allow" and isinstance(address, str):
        try:
            decision = judge.rules.judge(decision, [ip_address(address)]).decision
        except ValueError:
            pass  # not an address: then the name alone decides
    return str(decision.effect), decision.message


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise UsageError(f"doorward replay: a recorded action names {text!r}, which is no HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)

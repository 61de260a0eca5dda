"""The two lenses on a recorded turn: what could have refused it and did, and what of it can be rebuilt. Pure.

- *refusable*: every door in its order; could it refuse here, did it, and why.
- *replayable*: every part of the scene; is it in the record, and if not, why not.
- where the two agree, and where they contradict each other: a refusal that is nowhere recorded, a start that no
  verdict allowed, a door that held less than was recorded at the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from doorward.gates.verdict import Gate
from doorward.named_tuple import NamedTuple
from doorward.sessions.items import policy_digest
from doorward.sessions.turns import Turn

_LAYERS = ("filesystem", "process", "syscalls")
# strerror(3) of EROFS, EACCES, EPERM: what a command prints when the kernel said no
_KERNEL_SAID_NO = re.compile(r"^.*(?:Read-only file system|Permission denied|Operation not permitted).*$", re.MULTILINE)
_LINES = 5


class Door(NamedTuple):
    """One door. `could` is None where the record does not tell, or the door was not reached."""

    door: str
    could: bool | None
    did: str
    """`refused`, `allowed`, `asked`, `passed`, `not reached`, `left to the kernel`, `left to the proxy`, `unknown`."""
    why: tuple[str, ...]


class Part(NamedTuple):
    """One part of the scene."""

    part: str
    rebuilt: str
    """`yes`, `in part`, `no`."""
    why: str


class Finding(NamedTuple):
    """One place where the lenses meet. `agree` False: they contradict each other."""

    agree: bool
    sentence: str


class Lenses(NamedTuple):
    """Both, of one turn."""

    turn: int | None
    command: tuple[str, ...]
    refusable: tuple[Door, ...]
    replayable: tuple[Part, ...]
    findings: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        """As `explain --json` shows it."""
        return {
            "turn": self.turn,
            "command": list(self.command),
            "refusable": [door._asdict() | {"why": list(door.why)} for door in self.refusable],
            "replayable": [part._asdict() for part in self.replayable],
            "findings": [finding._asdict() for finding in self.findings],
        }


def lenses(turn: Turn, *, has_blob: Callable[[Mapping[str, Any]], bool], live: bool = False) -> Lenses:
    """`has_blob` says whether the whole of a long output is still there; `live` that the turn may still go on."""
    argv = turn.argv
    return Lenses(
        turn.number,
        tuple(argv) if argv is not None else (turn.message or "",),
        (*gate_doors(turn.verdict), *_sandbox_doors(turn), _proxy_door(turn)),
        tuple(_parts(turn, has_blob, live)),
        tuple(_findings(turn, live)),
    )


_STRONGEST_FIRST = ("deny", "ask", "allow", "left-to-kernel", "left-to-proxy")
_DID = {
    "deny": "refused",
    "allow": "allowed",
    "ask": "asked",
    "pass": "passed",
    "left-to-kernel": "left to the kernel",
    "left-to-proxy": "left to the proxy",
}


def gate_doors(verdict: Mapping[str, Any] | None) -> list[Door]:
    """The gates of a verdict (its JSON form), in their order, those that were not reached among them."""
    rows = (verdict or {}).get("reasons")
    reasons = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    doors = []
    for gate in Gate:
        own = [reason for reason in reasons if reason.get("gate") == gate.value]
        if not own and gate is Gate.HOOK:
            continue  # no hook was asked: there was no such door
        if not own:
            if verdict is None:
                doors.append(Door(f"gate {gate.value}", None, "unknown", ("no verdict is recorded",)))
            else:
                doors.append(Door(f"gate {gate.value}", None, "not reached", ("an earlier gate had decided",)))
            continue
        effects = [str(reason.get("effect")) for reason in own]
        did = next((effect for effect in _STRONGEST_FIRST if effect in effects), "pass")
        said = tuple(f"{reason.get('sentence')} [{reason.get('switch')}]" for reason in own)
        doors.append(Door(f"gate {gate.value}", did != "pass", _DID.get(did, did), said))
    return doors


def _sandbox_doors(turn: Turn) -> list[Door]:
    if turn.exec is None:
        nothing = "nothing was started" if turn.verdict is not None else "no start is recorded"
        return [Door("sandbox", None, "not reached", (nothing,))]
    layers = _enforced(turn)
    doors = []
    for layer in _LAYERS:
        held = layers.get(layer)
        could = None if held is None else held == "kernel"
        why: tuple[str, ...] = (f"enforced by: {held}",) if held is not None else ("not recorded",)
        did = "unknown" if could is None else "passed"
        if layer == "filesystem":
            undone = [group for group in turn.refused.values() if group.first.get("source") == "sandbox"]
            told = _kernel_refusals(turn) if could else []
            if undone:
                did, why = "refused", (*why, *(str(group.first.get("message")) for group in undone))
            elif told:
                did = "refused"
                why = (*why, "the kernel answers the command itself; its output reads like it:", *told)
            elif could:
                why = (*why, "the kernel answers the command itself; nothing in its output shows a refusal")
        doors.append(Door(f"sandbox {layer}", could, did, why))
    return doors


def _kernel_refusals(turn: Turn) -> list[str]:
    output = (turn.observation or {}).get("output")
    if not isinstance(output, dict):
        return []
    text = f"{output.get('head') or ''}\n{output.get('tail') or ''}"
    return [line.strip() for line in _KERNEL_SAID_NO.findall(text)[:_LINES]]


def _proxy_door(turn: Turn) -> Door:
    if turn.exec is None:
        return Door("proxy", None, "not reached", ("nothing was started",))
    mode = _setting(turn, "network")
    if mode == "off":
        return Door("proxy", False, "passed", ("the network was off: there was nothing to reach, and no proxy",))
    if mode == "full":
        return Door("proxy", False, "passed", ("the network was open, past the proxy [network.mode=full]",))
    why = []
    refused = [group for group in turn.refused.values() if isinstance(group.first.get("host"), str)]
    for group in refused:
        first = group.first
        times = f" ({group.count} times)" if group.count > 1 else ""
        why.append(f"{first.get('host')}:{first.get('port')}{times}: {first.get('message') or first.get('reason')}")
    allowed = [record for record in (each.first for each in turn.traffic.values()) if record.get("decision") == "allow"]
    for record in allowed:
        by = f" by the rule {record.get('rule')}" if record.get("rule") else ""
        why.append(f"{record.get('host')}:{record.get('port')} was allowed{by}")
    why += [
        f"the credential {name} was put into requests to {where} ({place})" for name, where, place in turn.credentials
    ]
    did = "refused" if refused else "allowed" if allowed or turn.unfinished else "passed"
    if not why:
        why.append("nothing asked to reach anything")
    could = None if mode is None else True
    return Door("proxy", could, did, tuple(why))


def _parts(turn: Turn, has_blob: Callable[[Mapping[str, Any]], bool], live: bool) -> list[Part]:
    parts = []
    argv = turn.argv
    if argv is not None:
        source = turn.exec or (turn.verdict or {}).get("action") or {}
        parts.append(Part("command", "yes", f"{len(argv)} words, in {source.get('cwd')}"))
    else:
        parts.append(Part("command", "no", "none is recorded: a turn of a conversation"))
    parts.append(_verdict_part(turn))
    rules = _setting(turn, "rules")
    if turn.context:
        count = sum(len(rules.get(key) or ()) for key in ("allow", "deny")) if isinstance(rules, dict) else 0
        parts.append(Part("rules", "yes", f"the sandbox policy and {count} network rules, each with its origin"))
    else:
        parts.append(Part("rules", "no", "no turn_context is recorded"))
    parts.append(_environment_part(turn))
    parts.append(_network_part(turn))
    parts.append(_output_part(turn, has_blob, live))
    if turn.exec is not None:
        parts.append(Part("input", "no", "what the command read from its standard input is not recorded"))
        parts.append(Part("files", "no", "no copy of the workspace is kept; version control may have one"))
    if turn.observation is not None:
        seen = turn.observation
        signal = f", by signal {seen.get('signal')}" if seen.get("signal") is not None else ""
        parts.append(Part("outcome", "yes", f"exit status {seen.get('exit_code')}{signal}"))
    else:
        parts.append(Part("outcome", "no", "it is still running" if live else "its writer was gone before it ended"))
    return parts


def _verdict_part(turn: Turn) -> Part:
    if turn.verdict is None:
        return Part("verdict", "no", "none is recorded")
    answers = f", and {len(turn.answers)} answers of a person" if turn.answers else ""
    reasons = turn.verdict.get("reasons")
    count = len(reasons) if isinstance(reasons, list) else 0
    return Part("verdict", "yes", f"{turn.verdict.get('verdict')}, with {count} reasons{answers}")


def _environment_part(turn: Turn) -> Part:
    if turn.exec is None:
        return Part("environment", "no", "nothing was started, so nothing saw one")
    variables = turn.exec.get("environment")
    if not isinstance(variables, list):
        return Part("environment", "no", "not recorded")
    hidden = sum(isinstance(each, dict) and "fingerprint" in each for each in variables)
    withheld = turn.exec.get("withheld")
    text = f"{len(variables) - hidden} of {len(variables)} values in plain text"
    if hidden:
        text += f"; of {hidden} a fingerprint and a length, which --saw VALUE is compared with"
    if isinstance(withheld, list) and withheld:
        text += f"; withheld from the command: {', '.join(map(str, withheld))}"
    if "sealed_environment" in turn.exec:
        return Part("environment", "yes", f"{text}; all of them sealed, for the holder of the key")
    return Part("environment", "in part" if hidden else "yes", text)


def _network_part(turn: Turn) -> Part:
    connections = sum(group.connections for group in turn.traffic.values())
    refusals = sum(group.count for group in turn.refused.values())
    if not connections and not turn.unfinished:
        return Part("network", "yes", f"no connection; {refusals} refusals" if refusals else "no connection")
    text = f"{connections} decisions with place, rule and bytes; what was sent and received is not recorded"
    return Part("network", "in part", text)


def _output_part(turn: Turn, has_blob: Callable[[Mapping[str, Any]], bool], live: bool) -> Part:
    if turn.observation is None:
        return Part("output", "no", "recorded at the end, which is still to come" if live else "the end is missing")
    output = turn.observation.get("output")
    if not isinstance(output, dict):
        return Part("output", "no", "--no-record-output" if turn.exec is not None else "nothing was started")
    redacted = ", credentials taken out before it was written" if (turn.exec or {}).get("output") == "redacted" else ""
    blob = output.get("blob")
    size = sum(count for count in (output.get("stdout"), output.get("stderr")) if isinstance(count, int))
    if not output.get("omitted"):
        return Part("output", "in part" if redacted else "yes", f"{size} bytes, whole{redacted}")
    if isinstance(blob, dict) and has_blob(blob):
        text = f"{size} bytes, whole, as blob {blob.get('sha256')}{redacted}"
        return Part("output", "in part" if redacted else "yes", text)
    return Part("output", "in part", f"head and tail of {size} bytes; the blob with the rest is gone{redacted}")


def _findings(turn: Turn, live: bool) -> list[Finding]:
    found = []
    seen = turn.observation
    verdict = (turn.verdict or {}).get("verdict")
    if verdict == "deny" and turn.exec is None:
        found.append(Finding(True, "refused before the start, and nothing was started"))
    elif verdict == "deny":
        found.append(Finding(False, "the verdict is deny, and yet a start is recorded"))
    elif verdict == "allow" and turn.exec is None:
        found.append(Finding(live, "allowed, and no start is recorded: doorward ended between the two"))
    elif turn.exec is not None and turn.verdict is None:
        found.append(Finding(False, "a start is recorded, and no verdict allowed it"))
    elif verdict == "allow":
        found.append(Finding(True, "allowed first, started then"))
    refusals = sum(group.count for group in turn.refused.values())
    told = (seen or {}).get("refusals")
    if isinstance(told, list):
        if len(told) == refusals:
            if refusals:
                found.append(Finding(True, f"{refusals} refusals: what the doors said is what the caller was told"))
        else:
            found.append(Finding(False, f"the doors refused {refusals} times, and the caller was told of {len(told)}"))
    if turn.exec is not None and seen is not None and seen.get("success"):
        began, ended = turn.exec.get("enforcement"), seen.get("enforcement")
        same = began == ended
        found.append(Finding(same, "what held at the start held at the end" if same else
                             f"at the start {began} was to hold, at the end it was {ended}"))  # fmt: skip
    digest = _digest_agrees(turn)
    if digest is not None:
        found.append(Finding(digest, "the policy that was enforced is the one that is recorded" if digest else
                             "the digest of the enforced policy is not that of the recorded one"))  # fmt: skip
    if turn.unfinished and not live:
        count = len(turn.unfinished)
        found.append(Finding(False, f"{count} connections were opened, and their end is not recorded"))
    if turn.ending is None and turn.number is not None and not live:
        found.append(Finding(False, "the turn has no end: its writer is gone"))
    return found


def _digest_agrees(turn: Turn) -> bool | None:
    digest, sandbox = (turn.exec or {}).get("policy_digest"), _setting(turn, "sandbox")
    if not isinstance(digest, str) or not isinstance(sandbox, dict):
        return None
    return any(policy_digest({"sandbox": sandbox, "bypass": bypass}) == digest for bypass in (False, True))


def _enforced(turn: Turn) -> Mapping[str, Any]:
    layers = (turn.exec or {}).get("enforcement")
    return layers if isinstance(layers, dict) else {}


def _setting(turn: Turn, name: str) -> Any:
    ours = turn.context.get("doorward")
    return ours.get(name) if isinstance(ours, dict) else None

"""What sessions reached and what they were refused, place by place: the data of summaries and of learning rules. Pure.

A place is a host and a port. All connections to it with one decision are one row, so that a session of a million
requests to a few places is as small as those places are.
"""

from __future__ import annotations

from doorward.named_tuple import NamedTuple
from doorward.sessions.line import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from doorward.sessions.damage import Damage


class Place(NamedTuple):
    """Where, and what was said about it. `decision` is allow, ask or deny; `observed` says that a run only watched, and
    that `reason` is why it would have been refused. Host literals are without brackets."""

    host: str
    port: int
    decision: str
    reason: str
    rule: str | None
    observed: bool
    protocol: str = ""
    """`udp` for datagrams, `dns` for a name that was refused when it was looked up; else nothing."""

    @property
    def rule_port(self) -> int:
        """The port a rule about it names. Of a name that was refused when it was looked up none is known: one of those
        that a rule opens without a port."""
        return 443 if self.protocol == "dns" else self.port

    @property
    def refused(self) -> bool:
        """Whether it was, or would have been but for `run --observe`."""
        return self.decision != "allow" or self.observed


class Row:
    """All of one place. Times are the records' own (RFC 3339, UTC), "" where none has one."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.hint = ""
        self.connections = 0
        self.requests = 0
        self.bytes_up = 0
        self.bytes_down = 0
        self.failed = 0
        self.first_seen = ""
        self.last_seen = ""
        self.sessions: dict[str, None] = {}
        self.processes: dict[str, None] = {}
        self.methods: dict[str, None] = {}
        self.paths: dict[str, None] = {}

    @property
    def reached(self) -> bool:
        """Whether anything came through: a name may not resolve, a server may not answer."""
        return self.failed < self.connections or self.bytes_down > 0

    def add(self, session: str, when: str, record: Mapping[str, Any]) -> None:
        """One more network record about the place."""
        self.connections += 1
        self.requests += _count(record, "requests")
        self.bytes_up += _count(record, "bytes_up")
        self.bytes_down += _count(record, "bytes_down")
        self.failed += "error" in record
        if when:
            self.first_seen = min(self.first_seen or when, when)
            self.last_seen = max(self.last_seen, when)
        self.sessions[session] = None
        if name := _program(record.get("process")):
            self.processes[name] = None
        if isinstance(method := record.get("method"), str) and method != "CONNECT":
            self.methods[method] = None
        if isinstance(path := record.get("path"), str) and len(self.paths) < PATHS_KEPT:
            self.paths[path] = None


PATHS_KEPT = 200
"""Distinct paths of inspected requests kept for one place."""


class Report(NamedTuple):
    """`rows` in order of first appearance; `other` are refusals that are no network refusals, with their count;
    `turns`, `failed` count turns and those whose command did not exit 0; `weakest` is the weakest enforcement of any
    turn by layer; `observing` says that some turn only watched; `seconds` is how long the commands took together,
    `exit_code` that of the last, `hints` what was said of those that failed, each once."""

    sessions: tuple[str, ...]
    rows: tuple[Row, ...]
    other: tuple[tuple[Mapping[str, Any], int], ...]
    turns: int
    failed: int
    weakest: Mapping[str, str]
    observing: bool
    seconds: float = 0.0
    exit_code: int | None = None
    hints: tuple[str, ...] = ()

    def refused(self) -> list[Row]:
        """Rows of what was refused, most often first."""
        return sorted((row for row in self.rows if row.place.refused), key=lambda row: -row.connections)

    def reached(self) -> list[Row]:
        """Rows of what was allowed, most bytes first."""
        rows = (row for row in self.rows if not row.place.refused)
        return sorted(rows, key=lambda row: -(row.bytes_up + row.bytes_down))


_ASKED_IN_PASSING = ("HTTPS", "SVCB", "PTR")
"""Types of DNS records that clients ask for beside an address, and do without."""

_STRENGTH = {"none": 0, "env-only": 1, "kernel": 2}


def report(sessions: Iterable[tuple[str, Iterable[Line | Damage]]]) -> Report:
    """Of sessions by id, each with its lines. Damage is passed over: `verify` speaks of it."""
    rows: dict[Place, Row] = {}
    other: dict[tuple[Any, ...], tuple[Mapping[str, Any], int]] = {}
    weakest: dict[str, str] = {}
    names: list[str] = []
    turns = failed = 0
    seconds = 0.0
    exit_code: int | None = None
    told: dict[str, None] = {}
    observing = False
    for session, lines in sessions:
        names.append(session)
        hints: dict[tuple[object, object], str] = {}
        for line in lines:
            if not isinstance(line, Line):
                continue
            payload = line.payload
            if line.type == "network":
                place = _place(payload)
                if place is not None:
                    row = rows.get(place)
                    if row is None:
                        row = rows[place] = Row(place)
                    row.add(session, line.timestamp, payload)
                    observing = observing or place.observed
            elif line.type == "refusal":
                if isinstance(payload.get("host"), str) and payload.get("port") is not None:
                    hints[payload["host"], payload["port"]] = str(payload.get("hint") or "")
                else:
                    key = tuple(str(payload.get(name)) for name in ("gate", "reason", "path", "operation", "message"))
                    other[key] = (payload, other[key][1] + 1 if key in other else 1)
            elif line.type == "observation":
                turns += 1
                failed += payload.get("exit_code") != 0
                exit_code = code if isinstance(code := payload.get("exit_code"), int) else None
                took = payload.get("duration_s")
                seconds += took if isinstance(took, int | float) else 0
                told |= dict.fromkeys(_messages(payload.get("hints")))
            elif line.type == "exec":
                _weaken(weakest, payload.get("enforcement"))
        for row in rows.values():
            row.hint = hints.get((row.place.host, row.place.port), row.hint)
    return Report(
        tuple(names), tuple(rows.values()), tuple(other.values()), turns, failed, weakest, observing,
        round(seconds, 3), exit_code, tuple(told),
    )  # fmt: skip


def _place(record: Mapping[str, Any]) -> Place | None:
    host, port, decision = record.get("host"), record.get("port"), record.get("decision")
    if not isinstance(host, str) or not isinstance(port, int) or not isinstance(decision, str):
        return None
    protocol = record.get("protocol")
    if protocol == "dns" and (decision == "allow" or record.get("method") in _ASKED_IN_PASSING):
        return None  # no place was reached, nor was one meant to be
    rule = record.get("rule")
    reason = str(record.get("reason"))
    # an allow for any other reason is one of a run that only watched
    watched = decision == "allow" and reason != "allowed"
    kind = protocol if protocol in ("udp", "dns") else ""
    return Place(host, port, decision, reason, rule if isinstance(rule, str) else None, watched, kind)


def _weaken(weakest: dict[str, str], enforcement: object) -> None:
    for layer, held in enforcement.items() if isinstance(enforcement, dict) else ():
        if isinstance(held, str) and _STRENGTH.get(held, 0) < _STRENGTH.get(weakest.get(layer, "kernel"), 2):
            weakest[layer] = held
        else:
            weakest.setdefault(layer, str(held))


def _messages(hints: object) -> Iterator[str]:
    for each in hints if isinstance(hints, list) else ():
        if isinstance(each, dict) and isinstance(message := each.get("message"), str):
            yield message


def _count(record: Mapping[str, Any], key: str) -> int:
    value = record.get(key)
    return value if isinstance(value, int) else 0


def _program(process: object) -> str:
    """The base name of the executable that asked; "" where the record does not know."""
    executable = process.get("executable") if isinstance(process, dict) else None
    return executable.rpartition("/")[2] if isinstance(executable, str) else ""

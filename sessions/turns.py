"""Folds a rollout's lines into turns. Pure.

A turn's network records and refusals are grouped as they come, so that a turn of a million requests to a few places
is as small as those places are.
"""

from __future__ import annotations

from doorward.named_tuple import NamedTuple
from doorward.sessions.damage import Damage
from doorward.sessions.items import turn_change
from doorward.sessions.line import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from doorward.sessions.line import JsonObject

SAID_LIMIT = 2000


class Traffic:
    """All network records of a turn with one decision about one place."""

    def __init__(self, first: JsonObject) -> None:
        self.first = first
        self.connections = 0
        self.requests = 0
        self.bytes_up = 0
        self.bytes_down = 0
        self.errors: dict[str, int] = {}

    def add(self, record: JsonObject) -> None:
        """One more record."""
        self.connections += 1
        self.requests += _count(record, "requests")
        self.bytes_up += _count(record, "bytes_up")
        self.bytes_down += _count(record, "bytes_down")
        if isinstance(error := record.get("error"), str):
            self.errors[error] = self.errors.get(error, 0) + 1


class Refused:
    """All refusals of a turn that say the same."""

    def __init__(self, first: JsonObject) -> None:
        self.first = first
        self.count = 0


class Turn:
    """One turn. What was not recorded is None or empty; payloads are as stored."""

    def __init__(self, number: int | None, started: Line | None) -> None:
        self.number = number
        """None for records that belong to no turn that was started."""
        self.started_at = started.timestamp if started else ""
        self.ended_at = ""
        self.ending: str | None = None
        """`complete`, `interrupted`, or None: it has no end (yet)."""
        self.message: str | None = None
        self.context: JsonObject = {}
        self.verdict: JsonObject | None = None
        self.exec: JsonObject | None = None
        self.observation: JsonObject | None = None
        self.traffic: dict[tuple[Any, ...], Traffic] = {}
        self.refused: dict[tuple[Any, ...], Refused] = {}
        self.unfinished: dict[tuple[Any, ...], JsonObject] = {}
        """Connections that were opened and whose end is not recorded, by their id."""
        self.credentials: dict[tuple[str, str, str], int] = {}
        """Credentials that were put into requests: their name, where they went, and at which place of the request; with
        the number of connections."""
        self.answers: list[JsonObject] = []
        """What was answered when somebody was asked."""
        self.beside: list[JsonObject] = []
        """What the reviewer said, and what hooks did, in order."""
        self.said: list[tuple[str, str]] = []
        """(`user` or `agent`, text cut to SAID_LIMIT characters) of an agent's conversation, `message` left out."""
        self.long_lines = 0
        """Records that were too long to load."""

    def add(self, line: Line) -> None:
        """One more record of the turn."""
        payload = line.payload
        if not line.whole:
            self.long_lines += 1
        elif line.type == "network":
            self.unfinished.pop(_key(payload, "connection"), None)
            key = _key(payload, "decision", "host", "port", "protocol", "rule", "reason")
            self.traffic.setdefault(key, Traffic(payload)).add(payload)
        elif line.type == "refusal":
            key = _key(payload, "host", "port", "protocol", "reason", "rule", "message", "hint")
            self.refused.setdefault(key, Refused(payload)).count += 1
        elif line.type == "turn_context":
            self.context = payload
        elif line.type == "verdict":
            self.verdict = payload
        elif line.type == "exec":
            self.exec = payload
        elif line.type == "observation":
            self.observation = payload
        elif line.type == "event_msg":
            self._event(line)
        elif line.type == "response_item" and isinstance(name := _call(payload), str):
            self.said.append(("calls", name[:SAID_LIMIT]))

    def _event(self, line: Line) -> None:
        payload = line.payload
        kind, text = payload.get("type"), payload.get("message")
        if kind == "item_completed":
            # Codex's paginated mode has these instead of user_message and agent_message
            kind, text = item_text(payload.get("item"))
        if kind in ("user_message", "agent_message") and isinstance(text, str):
            if kind == "user_message" and self.message is None:
                self.message = text
            else:
                self.said.append((kind.partition("_")[0], text[:SAID_LIMIT]))
        elif kind == "connection_opened":
            self.unfinished[_key(payload, "connection")] = payload
        elif kind == "credential_used":
            where = f"{payload.get('host')}:{payload.get('port')}"
            used = str(payload.get("credential")), where, str(payload.get("place"))
            self.credentials[used] = self.credentials.get(used, 0) + 1
        elif kind == "approval_answered":
            self.answers.append(payload)
        elif kind in ("review", "hook_ended", "hook_refused"):
            self.beside.append(payload)
        elif turn_change(line.type, payload) == "ended":
            self.ended_at = line.timestamp
            self.ending = "interrupted" if kind == "turn_aborted" else "complete"

    @property
    def argv(self) -> list[str] | None:
        """What was run, or was to be run."""
        action = (self.verdict or {}).get("action")
        for source in (self.exec or {}, action if isinstance(action, dict) else {}):
            argv = source.get("argv")
            if isinstance(argv, list) and all(isinstance(word, str) for word in argv):
                return argv
        return None


class Renamed(NamedTuple):
    """The session got a name between turns."""

    name: str


Part = Line | Damage | Turn | Renamed


def parts(lines: Iterable[Line | Damage]) -> Iterator[Part]:
    """`session_meta` lines, damage, renames and whole turns, in order; a turn is given when the next begins.

    Records outside any turn (`response_item` before the first) come as a turn without a number.
    """
    turn: Turn | None = None
    number = 0
    for line in lines:
        if isinstance(line, Damage) or line.type == "session_meta":
            if turn is not None and turn.ending is not None:
                yield turn  # what a fork shares ends with a turn; its own first record follows
                turn = None
            yield line
            continue
        starts = turn_change(line.type, line.payload) == "started"
        renames = line.type == "event_msg" and line.payload.get("type") == "thread_name_updated"
        if turn is not None and (starts or renames):
            yield turn
            turn = None
        if starts:
            number = line.turn if line.turn is not None else number + 1
            turn = Turn(number, line)
        elif renames:
            yield Renamed(str(line.payload.get("thread_name")))
        else:
            turn = turn or Turn(None, None)
            turn.add(line)
    if turn is not None:
        yield turn


_ITEMS = {"UserMessage": "user_message", "AgentMessage": "agent_message"}


def item_text(item: object) -> tuple[str, str | None]:
    """Kind and text of an item of Codex's paginated mode, as its legacy mode has them."""
    if not isinstance(item, dict) or item.get("type") not in _ITEMS:
        return "", None
    content = item.get("content")
    texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return _ITEMS[item["type"]], "\n".join(text for text in texts if isinstance(text, str))


def _call(payload: JsonObject) -> str | None:
    """A call of a tool that the model asked for, in one line."""
    if payload.get("type") == "local_shell_call":
        action = payload.get("action")
        return f"shell {action.get('command') if isinstance(action, dict) else ''}"
    if payload.get("type") in ("function_call", "custom_tool_call"):
        return f"{payload.get('name')} {payload.get('arguments') or payload.get('input') or ''}"
    return None


def _key(payload: JsonObject, *names: str) -> tuple[Any, ...]:
    # a value of a foreign shape may not be hashable
    return tuple(value if isinstance(value := payload.get(name), str | int | None) else repr(value) for name in names)


def _count(payload: JsonObject, name: str) -> int:
    value = payload.get(name)
    return value if isinstance(value, int) else 0

"""The messages that the model sees, derived from the rollout alone: nothing is visible that is not logged.

For an agent loop that uses a rollout as its log: whatever it appended, these are the messages to send next.

- A `response_item` is visible as it stands, whatever its kind (message, function call, its output, reasoning).
- `compacted` replaces everything before it by its `replacement_history`, or where it has none by its `message`, as
  one message of the user.
- `thread_rolled_back` takes the last `num_turns` turns back, together with a compaction that took place in them. A
  turn is what follows a `task_started`, if the user or the model said something in it; in a log without turns, what
  follows a message of the user.
- Across a fork the shared lines come first.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from doorward.named_tuple import NamedTuple
from doorward.sessions.damage import Damage
from doorward.sessions.folders import Problem
from doorward.sessions.history import Segment, segments
from doorward.sessions.home import Home, StoreError, default_home
from doorward.sessions.items import turn_change
from doorward.sessions.line import JsonObject, Line
from doorward.sessions.lookup import SessionRef, find_session
from doorward.sessions.reading import lines_of
from doorward.sessions.stored_file import open_stored

Message = Mapping[str, Any]

_HIDDEN = frozenset(("ghost_snapshot",))
"""Kinds of `response_item` that Codex logs for itself and never sends."""


def derive_messages(session: SessionRef | str, home: Home | None = None) -> list[Message]:
    """The payloads of all visible messages, in order. `session` is a UUID, an exact name, or what `find_session` gave;
    `home` defaults to $DOORWARD_HOME. Raises SessionLookupError, StoreError.
    """
    store = home or Home(default_home(os.environ))
    found = find_session(store, session) if isinstance(session, str) else session
    return SessionProjection(store, found).messages()


class _Start(NamedTuple):
    """Where a turn started: the list of then and how long it was. The list is never shortened in place."""

    messages: list[Message]
    length: int


class Projection:
    """The visible messages after each record. Fed line by line; each costs the same however many came before."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._starts: list[_Start] = []
        """Of turns in which something was said, the oldest first."""
        self._pending: _Start | None = None
        """Of a turn that was started and in which nothing was said yet."""
        self._in_turn = False

    @property
    def messages(self) -> list[Message]:
        """A copy of the list as it is now."""
        return list(self._messages)

    def feed(self, line: Line) -> None:
        """The next record of the session."""
        payload = line.payload
        if line.type == "response_item":
            if payload.get("type") not in _HIDDEN:
                self._said(payload)
        elif line.type == "compacted":
            self._said_something()
            # another list: the turns before remember the one that was
            self._messages = _replacement(payload)
        elif line.type == "event_msg":
            self._event(line)

    def _event(self, line: Line) -> None:
        change = turn_change(line.type, line.payload)
        if change == "started":
            self._in_turn = True
            self._pending = _Start(self._messages, len(self._messages))
        elif change == "ended":
            self._in_turn, self._pending = False, None
        elif line.payload.get("type") == "thread_rolled_back":
            self._roll_back(line.payload.get("num_turns"))

    def _said(self, message: JsonObject) -> None:
        if not self._in_turn and message.get("type") == "message" and message.get("role") == "user":
            self._starts.append(_Start(self._messages, len(self._messages)))
        self._said_something()
        self._messages.append(message)

    def _said_something(self) -> None:
        if self._pending is not None:
            self._starts.append(self._pending)
            self._pending = None

    def _roll_back(self, turns: object) -> None:
        if not isinstance(turns, int) or isinstance(turns, bool) or turns <= 0 or not self._starts:
            return
        start = self._starts[-min(turns, len(self._starts))]
        del self._starts[-min(turns, len(self._starts)) :]
        self._messages = start.messages[: start.length]
        if self._in_turn:
            # taken back from inside a turn: what follows is that turn's
            self._pending = _Start(self._messages, len(self._messages))


class SessionProjection:
    """The visible messages of one session, brought up to date by reading only what was appended since."""

    def __init__(self, home: Home, session: SessionRef) -> None:
        self._home = home
        self._session = session
        self._projection = Projection()
        self._read = 0
        """Bytes of the session's own file."""
        self.problems: list[str] = []
        """What could not be read, one sentence each."""
        self._shared_read = False

    def messages(self) -> list[Message]:
        """The list as the log has it now. Raises StoreError."""
        if not self._shared_read:
            *shared, _ = segments(self._home, self._session.id, self._session.path)
            for segment in shared:
                self._take_shared(segment)
            self._shared_read = True
        descriptor = open_stored(self._session.path)
        try:
            size = os.fstat(descriptor).st_size
            for line in lines_of(descriptor, size, start=self._read):
                end = line.offset + line.length + 1
                if end > size:
                    break  # its LF is still to come
                self._take([line])
                self._read = end
        except OSError as error:
            raise StoreError(f"cannot read {self._session.path}: {error.strerror}") from error
        finally:
            os.close(descriptor)
        return self._projection.messages

    def _take_shared(self, segment: Segment | Problem) -> None:
        if isinstance(segment, Problem):
            self.problems.append(segment.sentence)
            return
        descriptor = open_stored(segment.path)
        try:
            there = os.fstat(descriptor).st_size
            self._take(lines_of(descriptor, there if segment.size is None else min(segment.size, there)))
        finally:
            os.close(descriptor)

    def _take(self, lines: Iterable[Line | Damage]) -> None:
        for line in lines:
            if isinstance(line, Damage):
                self.problems.append(line.sentence)
            elif line.whole:
                self._projection.feed(line)
            else:
                self.problems.append(f"record {line.ordinal} is too long to be loaded and is left out")


def _replacement(payload: JsonObject) -> list[Message]:
    history = payload.get("replacement_history")
    if isinstance(history, list):
        return [item for item in history if isinstance(item, dict) and item.get("type") not in _HIDDEN]
    text = payload.get("message")
    if not isinstance(text, str) or not text:
        return []
    return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]

"""The conversation that an agent loop keeps in a session's rollout, beside what the doors write there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doorward.errors import EngineError, UsageError
from doorward.session_log import SessionLog
from doorward.sessions.home import StoreError
from doorward.sessions.lookup import SessionRef
from doorward.sessions.projection import SessionProjection

_EVENTS = frozenset(("user_message", "agent_message", "thread_rolled_back"))


class Conversation:
    """Of one open session."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._projection = SessionProjection(log.home, SessionRef(log.session, None, log.path, False))

    def answer(self, request: Mapping[str, Any]) -> dict[str, object]:
        """Append the record in `request`, or without one give the visible messages. Raises UsageError, EngineError."""
        if not request:
            try:
                return {"messages": self._projection.messages()}
            except StoreError as error:
                raise EngineError(str(error)) from None
        kind, payload = request["type"], request["payload"]
        event = payload.get("type")
        if kind not in ("response_item", "compacted") and not (kind == "event_msg" and event in _EVENTS):
            raise UsageError(f"a caller does not log {kind} {event or ''}: only the conversation is its own")
        self._log.record(kind, payload)
        return {"session": self._log.session}

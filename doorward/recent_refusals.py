"""The last refusals of the door alone, and whoever wants to hear of the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

KEPT = 200

Listener = Callable[[Mapping[str, Any] | None], None]
"""Called with each refusal, and with None when no more will come."""


class RecentRefusals:
    """Oldest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._refusals: deque[Mapping[str, Any]] = deque(maxlen=kept)
        self._listeners: list[Listener] = []
        self._ended = False

    def add(self, refusal: Mapping[str, Any]) -> None:
        """One more."""
        self._refusals.append(refusal)
        for listener in tuple(self._listeners):
            listener(refusal)

    def last(self) -> list[Mapping[str, Any]]:
        """Those that are kept."""
        return list(self._refusals)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have it called from now on; call what is returned to end that."""
        if self._ended:
            listener(None)
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def end(self) -> None:
        """No more will come."""
        self._ended = True
        for listener in tuple(self._listeners):
            listener(None)

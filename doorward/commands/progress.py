"""A line on the terminal while something takes longer than a second; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

_AFTER_S = 1.0
_EVERY_S = 0.2


class Progress:
    """`with Progress("doorward sessions: looked through", "sessions") as told: told(17)`. Gone at the end."""

    def __init__(self, what: str, of: str) -> None:
        self._what = what
        self._of = of
        self._next = time.monotonic() + _AFTER_S
        self._shown = False
        self._terminal = sys.stderr.isatty()

    def __call__(self, count: int) -> None:
        """So many are done."""
        if self._terminal and time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY_S
            self._shown = True
            sys.stderr.write(f"\r{self._what} {count} {self._of}\x1b[K")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

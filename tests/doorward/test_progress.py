"""Progress is for a person who waits: on a terminal, after a second, and gone at the end."""

from __future__ import annotations

import io
import sys

import pytest

from doorward.commands import progress
from doorward.commands.progress import Progress


class Terminal(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(("terminal", "seconds", "shown"), [(True, 5.0, True), (True, 0.5, False), (False, 5.0, False)])
def test_when_it_is_shown(monkeypatch: pytest.MonkeyPatch, terminal: bool, seconds: float, shown: bool) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    stderr = Terminal(terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    with Progress("looked through", "sessions") as told:
        now += seconds
        told(17)
        told(18)  # too soon after the one before
    text = stderr.getvalue()
    assert ("looked through 17 sessions" in text) is shown
    assert "18" not in text
    assert text.endswith("\r\x1b[K") or not shown

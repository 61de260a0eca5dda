"""Asks the person at the terminal. Only there: without a terminal nobody is asked, and nobody means no."""

from __future__ import annotations

import os

from doorward.gates.action import Action
from doorward.gates.answer import Answer
from doorward.gates.verdict import Effect, Verdict
from doorward.sessions.items import command_line
from doorward.summary import printable


def can_ask() -> bool:
    """True if stdin and stderr are terminals, so that a question would be seen and can be answered."""
    return os.isatty(0) and os.isatty(2)


def ask_on_terminal(action: Action, verdict: Verdict) -> Answer:
    """Show what would run and why it is asked. `y` or `yes` is yes; anything else, end of file too, is no."""
    lines = [f"doorward: {command_line(action.argv)}", f"  in {action.cwd}"]
    lines += [f"  {reason.gate}: {reason.sentence}" for reason in verdict.reasons if reason.effect is Effect.ASK]
    text = "".join(f"{printable(line)}\n" for line in lines) + "Run it this once? [y/N] "
    os.write(2, text.encode("utf-8", "backslashreplace"))
    answer = b""
    try:
        while not answer.endswith(b"\n") and (byte := os.read(0, 1)):
            answer += byte
    except OSError:
        return Answer.NO
    return Answer.YES if answer.strip().lower() in (b"y", b"yes") else Answer.NO

"""Asks the person at the terminal, before a command has it. Without a terminal nobody is asked here."""

from __future__ import annotations

import os

from doorward.approval_memory import rules_path
from doorward.gates.answer import Answer, Reply, Scope
from doorward.question import Question
from doorward.sessions.home import Home
from doorward.summary import printable

_YES = (b"y", b"yes")


def can_ask() -> bool:
    """True if stdin and stderr are terminals and we are in the foreground: a question is seen and can be answered."""
    if not (os.isatty(0) and os.isatty(2)):
        return False
    try:
        return os.tcgetpgrp(0) == os.getpgrp()  # a background job that reads would be stopped
    except OSError:
        return True  # a terminal, but not the one that controls us: nobody else has it in hand


def ask_on_terminal(question: Question, home: Home) -> Reply:
    """Show what would run and why it is asked. Anything but a clear yes, end of file too, is no."""
    lines = [f"doorward: {question.subject}", f"  in {question.cwd}"]
    lines += [f"  {question.gate}: {sentence}" for sentence in question.why]
    _say(lines)
    if question.again:
        yes = _answer(f"Run it again with {printable(' '.join(question.again))}? [y/N] ") in _YES
        return Reply(Answer.YES if yes else Answer.NO)
    while True:
        answer = _answer("Run it this once? [y/N]  (s: for this session, a: always) ")
        if answer in _YES:
            return Reply(Answer.YES)
        if answer in (b"s", b"session"):
            return Reply(Answer.YES, Scope.SESSION)
        if answer not in (b"a", b"always"):
            return Reply(Answer.NO)
        if not question.rule:
            _say([f"  not always: {question.rule_note}"])
            continue
        place = rules_path(home) if question.kind == "shell" else home.config
        shown = (f"this would be added to {place}:", f"  {question.rule}", f"it {question.rule_note}")
        _say([f"  {line}" for line in shown])
        if _answer("Write it and run? [y/N] ") in _YES:
            return Reply(Answer.YES, Scope.ALWAYS)


def _say(lines: list[str]) -> None:
    os.write(2, "".join(f"{printable(line)}\n" for line in lines).encode("utf-8", "backslashreplace"))


def _answer(prompt: str) -> bytes:
    """One line, lower case."""
    os.write(2, prompt.encode())
    answer = b""
    try:
        while not answer.endswith(b"\n") and (byte := os.read(0, 1)):
            answer += byte
    except OSError:
        return b""
    return answer.strip().lower()

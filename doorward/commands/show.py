"""`doorward show SESSION`: a rollout for a person, or with --json its lines as they are stored."""

from __future__ import annotations

import os
import sys

from doorward.errors import EngineError, UsageError
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.sessions.home import Home, StoreError, default_home
from doorward.summary import printable

_OPTIONS = (Option("json", "the file's lines as stored, one JSON document a line"),)


def main(args: list[str]) -> int:
    """Print one session. What could not be read is one line each on stderr."""
    try:
        parsed = parse("show", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward show [--json] SESSION",
                "Print what a session ran, what each door said, and what came of it.",
                _OPTIONS,
                ("doorward show 0192f0c1-2345-7abc-8def-0123456789ab", "doorward show --json nightly | jq .type"),
            )
        )
        return 0
    if len(parsed.words) != 1:
        raise UsageError("doorward show: name one session, by its UUID or its name")
    from doorward.sessions.lookup import SessionLookupError, find_session

    try:
        home = Home(default_home(os.environ))
        found = find_session(home, parsed.words[0])
        return _raw(found.path) if parsed.has("json") else _rendered(found.path)
    except SessionLookupError as error:
        raise UsageError(f"doorward show: {error.sentence}; {error.remedy}") from None
    except StoreError as error:
        raise EngineError(str(error)) from None


def _raw(path: str) -> int:
    from doorward.sessions.damage import Damage
    from doorward.sessions.reading import stored_bytes

    for line in stored_bytes(path):
        if isinstance(line, Damage):
            sys.stderr.write(printable(f"doorward show: {line.sentence}") + "\n")
        else:
            sys.stdout.buffer.write(line)
    return 0


def _rendered(path: str) -> int:
    from doorward.sessions.reading import read_lines
    from doorward.sessions.show import rendered

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for piece in rendered(read_lines(path), colour=colour):
        sys.stdout.buffer.write(piece.encode("utf-8", "backslashreplace"))
    return 0

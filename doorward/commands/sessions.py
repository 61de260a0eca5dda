"""`doorward sessions`: the sessions there are, newest first."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from doorward.errors import EngineError, UsageError
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.sessions.home import Home, StoreError, default_home
from doorward.summary import printable

_OPTIONS = (
    Option("all", "archived sessions too"),
    Option("limit", "at most so many (default 50; 0: every one)", "N"),
    Option("json", "one JSON array"),
)


_BELOW = {"prune": "sessions_prune"}


def main(args: list[str]) -> int:
    """Print the list; what is wrong with a file is one line on stderr."""
    if args and args[0] in _BELOW:
        below: Callable[[list[str]], int] = __import__(f"doorward.commands.{_BELOW[args[0]]}", fromlist=["main"]).main
        return below(args[1:])
    try:
        parsed = parse("sessions", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward sessions [options]",
                "The sessions there are, newest first.",
                _OPTIONS,
                ("doorward sessions", "doorward sessions --json | jq '.[0].id'"),
            )
        )
        return 0
    if parsed.words:
        raise UsageError(f"doorward sessions: takes no words, not {parsed.words[0]!r}; `doorward show` shows one")
    limit = parsed.last("limit", "0" if parsed.has("json") else "50")
    if not (limit.isascii() and limit.isdigit()):
        raise UsageError(f"doorward sessions: --limit takes a whole number, not {limit!r}")
    from doorward.sessions.listing import list_sessions

    try:
        home = Home(default_home(os.environ))
        listing = list_sessions(home, archived=None if parsed.has("all") else False, limit=int(limit) or None)
    except StoreError as error:
        raise EngineError(str(error)) from None
    for problem in listing.problems:
        sys.stderr.write(printable(f"doorward sessions: {problem.sentence}") + "\n")
    if parsed.has("json"):
        sys.stdout.write(json.dumps([summary.to_json() for summary in listing.sessions]) + "\n")
        return 0
    for summary in listing.sessions:
        turns = "?" if summary.turns is None else str(summary.turns)
        refused = f"{summary.refused} refused" if summary.refused else ""
        name = f"  {summary.name}" if summary.name else ""
        line = f"{summary.id}  {summary.created_at[:19]}  {turns:>3} turns  {refused:<11}  {summary.cwd}{name}"
        sys.stdout.write(printable(line.rstrip()) + "\n")
    if not listing.sessions:
        sys.stderr.write("doorward: no sessions yet\n")
    return 0

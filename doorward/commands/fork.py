"""`doorward fork SESSION`: a new session that goes on from a point of another; prints its UUID."""

from __future__ import annotations

import json
import sys

from doorward.commands.named_session import store, the_session
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.summary import printable
from doorward.version import VERSION

_OPTIONS = (
    Option("at", "take what lies before the start of this turn (default: all)", "TURN"),
    Option("name", "name the new session", "NAME"),
    Option("json", "one JSON document"),
)


def main(args: list[str]) -> int:
    """Make the fork; the source is only read."""
    try:
        parsed = parse("fork", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward fork [options] SESSION",
                "Make a session that goes on from a point of another one. Its history is shared, not copied.",
                _OPTIONS,
                ("doorward fork --at 3 --name second-try nightly",),
            )
        )
        return 0
    at = parsed.last("at")
    if at and not (at.isascii() and at.isdigit() and 0 < int(at) < 1 << 53):
        raise UsageError(f"doorward fork: --at takes the number of a turn, from 1 on, not {at!r}")
    name = parsed.last("name") if parsed.has("name") else None
    from doorward.sessions.fork import fork
    from doorward.sessions.lifecycle import check_name

    with store("fork") as home:
        if name is not None:
            check_name(name)
        source = the_session(home, "fork", parsed.words)
        made = fork(home, source, at=int(at) if at else None, name=name, meta={"cli_version": VERSION})
    if parsed.has("json"):
        document = {"id": made.id, "name": name, "forked_from": made.forked_from, "turns": made.turns}
        sys.stdout.write(json.dumps(document) + "\n")
        return 0
    sys.stdout.write(f"{made.id}\n")
    turns = f"{made.turns} turn{'' if made.turns == 1 else 's'}"
    told = f"doorward: forked {made.forked_from} with {turns}; doorward resume {made.id} -- CMD"
    sys.stderr.write(printable(told) + "\n")
    return 0

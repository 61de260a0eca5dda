"""`doorward archive SESSION`: out of the listing, kept, and not to be written to until it is unarchived."""

from __future__ import annotations

import json
import sys

from doorward.commands.named_session import store, the_session
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.summary import printable

_OPTIONS = (Option("json", "one JSON document"),)


def main(args: list[str]) -> int:
    """Move it to the archived ones. A live session is left alone (exit status 1)."""
    try:
        parsed = parse("archive", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward archive SESSION",
                "Put a session aside: kept and readable, listed with `doorward sessions --all` only.",
                _OPTIONS,
                ("doorward archive nightly",),
            )
        )
        return 0
    from doorward.sessions.lifecycle import archive

    with store("archive") as home:
        moved = archive(home, the_session(home, "archive", parsed.words))
    if parsed.has("json"):
        sys.stdout.write(json.dumps({"id": moved.id, "name": moved.name, "archived": True}) + "\n")
    else:
        sys.stderr.write(printable(f"doorward: archived {moved.id}; back with: doorward unarchive {moved.id}") + "\n")
    return 0

"""`doorward unarchive SESSION`: an archived session back among the active ones."""

from __future__ import annotations

import json
import sys

from doorward.commands.named_session import store, the_session
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.sessions.lookup import SessionNotFound, find_session
from doorward.summary import printable

_OPTIONS = (Option("json", "one JSON document"),)


def main(args: list[str]) -> int:
    """Move it back, plain again where it was compressed."""
    try:
        parsed = parse("unarchive", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward unarchive SESSION",
                "Bring an archived session back, to be listed and gone on with.",
                _OPTIONS,
                ("doorward unarchive nightly",),
            )
        )
        return 0
    from doorward.sessions.lifecycle import unarchive

    with store("unarchive") as home:
        try:
            # of two with one name, one of them active, the archived one is meant
            found = find_session(home, parsed.words[0], archived=True) if len(parsed.words) == 1 else None
        except SessionNotFound:
            found = None
        moved = unarchive(home, found or the_session(home, "unarchive", parsed.words))
    if parsed.has("json"):
        sys.stdout.write(json.dumps({"id": moved.id, "name": moved.name, "archived": False}) + "\n")
    else:
        sys.stderr.write(printable(f"doorward: {moved.id} is active again") + "\n")
    return 0

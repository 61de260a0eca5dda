"""`doorward rename SESSION NAME`: another name for a session, from here on."""

from __future__ import annotations

import json
import sys

from doorward.commands.named_session import store, the_session
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.summary import printable

_OPTIONS = (Option("json", "one JSON document"),)


def main(args: list[str]) -> int:
    """Append the new name. A live session is left alone (exit status 1)."""
    try:
        parsed = parse("rename", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward rename SESSION NAME",
                "Name a session. Names need not be unique; where two have one, the UUID tells them apart.",
                _OPTIONS,
                ("doorward rename 0192f0c1-2345-7abc-8def-0123456789ab nightly",),
            )
        )
        return 0
    if len(parsed.words) != 2:
        raise UsageError("doorward rename: name one session, and the name it is to have")
    from doorward.sessions.lifecycle import rename

    with store("rename") as home:
        named = rename(home, the_session(home, "rename", parsed.words[:1]), parsed.words[1])
    if parsed.has("json"):
        sys.stdout.write(json.dumps({"id": named.id, "name": named.name}) + "\n")
    else:
        sys.stderr.write(printable(f"doorward: {named.id} is now {named.name}") + "\n")
    return 0

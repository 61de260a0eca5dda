"""`doorward delete SESSION`: gone for good, after asking."""

from __future__ import annotations

import json
import sys

from doorward.commands.named_session import store, the_session
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.sessions.ids import as_uuid
from doorward.summary import printable

_OPTIONS = (
    Option("force", "do not ask; takes a UUID only, so that no name is mistaken"),
    Option("json", "one JSON document"),
)


def main(args: list[str]) -> int:
    """Ask, then remove it. Sessions that share its lines keep them; a live one is left alone (exit status 1)."""
    try:
        parsed = parse("delete", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward delete [--force] SESSION",
                "Remove a session for good. Sessions forked from it keep the lines they share.",
                _OPTIONS,
                ("doorward delete nightly", "doorward delete --force 0192f0c1-2345-7abc-8def-0123456789ab"),
            )
        )
        return 0
    from doorward.sessions.deletion import delete

    with store("delete") as home:
        if parsed.has("force") and len(parsed.words) == 1 and as_uuid(parsed.words[0]) is None:
            raise UsageError(f"doorward delete: --force takes a UUID, not the name {parsed.words[0]!r}")
        found = the_session(home, "delete", parsed.words)
        if not parsed.has("force"):
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise UsageError(f"doorward delete: nobody can be asked here; doorward delete --force {found.id}")
            name = f" ({found.name})" if found.name else ""
            sys.stderr.write(printable(f"Delete session {found.id}{name} for good? [y/N] "))
            sys.stderr.flush()
            if sys.stdin.readline().strip().lower() not in ("y", "yes"):
                sys.stderr.write("doorward: nothing was deleted\n")
                return 1
        gone = delete(home, found)
    if parsed.has("json"):
        sys.stdout.write(json.dumps({"id": gone.id, "deleted": True, "kept_for": list(gone.forks)}) + "\n")
        return 0
    sys.stderr.write(f"doorward: deleted {gone.id}\n")
    if gone.forks:
        sys.stderr.write(f"doorward: what {len(gone.forks)} others share of it is kept for them\n")
    return 0

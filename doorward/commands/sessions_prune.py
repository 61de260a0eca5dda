"""`doorward sessions prune`: what takes room and is not needed; removed only with --apply."""

from __future__ import annotations

import json
import sys

from doorward.commands.named_session import store
from doorward.commands.progress import Progress
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.summary import printable

_OPTIONS = (
    Option("apply", "do it; without this it is only said what would be done"),
    Option("json", "one JSON document"),
)


def main(args: list[str]) -> int:
    """Remove blobs that no record names, compress archived rollouts, drop what nobody shares any more."""
    try:
        parsed = parse("sessions prune", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward sessions prune [--apply]",
                "Remove outputs that no session names any more and compress archived sessions. A dry run by default.",
                _OPTIONS,
                ("doorward sessions prune", "doorward sessions prune --apply"),
            )
        )
        return 0
    if parsed.words:
        raise UsageError(f"doorward sessions prune: takes no words, not {parsed.words[0]!r}")
    from doorward.sessions.prune import prune

    with store("sessions prune") as home, Progress("doorward sessions prune: read", "rollouts") as told:
        pruned = prune(home, apply=parsed.has("apply"), progress=told)
    for problem in pruned.problems:
        sys.stderr.write(printable(f"doorward sessions prune: {problem.sentence}") + "\n")
    if parsed.has("json"):
        groups = {"blobs": pruned.blobs, "archived": pruned.archived, "shared": pruned.shared}
        document = {name: [each._asdict() for each in group] for name, group in groups.items()}
        sys.stdout.write(json.dumps({"applied": pruned.applied, "freed": pruned.freed, **document}) + "\n")
        return 0
    removed, compressed = ("removed", "compressed") if pruned.applied else ("would remove", "would compress")
    for each in (*pruned.blobs, *pruned.shared):
        sys.stdout.write(printable(f"{removed:<15} {each.before:>12}  {each.path}") + "\n")
    for each in pruned.archived:
        sys.stdout.write(printable(f"{compressed:<15} {each.before:>12}  {each.path}") + "\n")
    said = f"freed {pruned.freed} bytes" if pruned.applied else f"{pruned.freed} bytes, and what compression gives"
    sys.stderr.write(f"doorward: {said}\n")
    if not pruned.applied and (pruned.blobs or pruned.shared or pruned.archived):
        sys.stderr.write("doorward: nothing was changed; doorward sessions prune --apply does it\n")
    return 0

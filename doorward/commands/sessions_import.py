"""`doorward sessions import DIR`: rollouts of Codex, taken over as they are."""

from __future__ import annotations

import json
import sys

from doorward.commands.named_session import store
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.summary import printable

_OPTIONS = (Option("json", "one JSON array of what was imported"),)


def main(args: list[str]) -> int:
    """Take over every rollout below a folder. Returns 0 if all that is there is here now, 1 if something is not."""
    try:
        parsed = parse("sessions import", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward sessions import DIR",
                "Take over the sessions of Codex: plain or zstd, legacy or paginated. Twice adds nothing.",
                _OPTIONS,
                ("doorward sessions import ~/.codex",),
            )
        )
        return 0
    if len(parsed.words) != 1:
        raise UsageError("doorward sessions import: name one folder (a CODEX_HOME, or one below it), or one file")
    import os

    from doorward.sessions.folders import Problem
    from doorward.sessions.importing import import_rollouts

    if not os.path.lexists(parsed.words[0]):
        raise UsageError(f"doorward sessions import: {parsed.words[0]} does not exist")
    documents, missed = [], 0
    with store("sessions import") as home:
        for each in import_rollouts(home, parsed.words[0]):
            if isinstance(each, Problem):
                missed += "is here already" not in each.detail
                sys.stderr.write(printable(f"doorward sessions import: {each.sentence}") + "\n")
                continue
            documents.append(each._asdict())
            if not parsed.has("json"):
                sys.stdout.write(printable(f"{each.id}  {each.source}") + "\n")
    if parsed.has("json"):
        sys.stdout.write(json.dumps(documents) + "\n")
    return 1 if missed else 0

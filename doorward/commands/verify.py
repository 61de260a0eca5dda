"""`doorward verify SESSION`, `doorward verify --all`: are the rollouts as they were written?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from doorward.commands.named_session import store, the_session
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.sessions.head import Head
from doorward.sessions.home import Home
from doorward.sessions.verify import Verification
from doorward.summary import printable

_OPTIONS = (
    Option("all", "every session, archived ones too, on all cores"),
    Option("json", "one JSON document (with --all an array)"),
)


def main(args: list[str]) -> int:
    """Print the result. Returns 0 if intact, 1 with the first line that was changed, removed or reordered."""
    try:
        parsed = parse("verify", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward verify SESSION | --all",
                "Check a rollout against its own chain of hashes. Exit status 0 intact, 1 not.",
                _OPTIONS,
                ("doorward verify nightly", "doorward verify --all"),
            )
        )
        return 0
    with store("verify") as home:
        return _all(home, parsed) if parsed.has("all") else _one(home, parsed)


def _one(home: Home, parsed: Parsed) -> int:
    if len(parsed.words) != 1:
        raise UsageError("doorward verify: name one session, by its UUID or its name, or give --all")
    from doorward.sessions.verify_session import verify_session

    found = the_session(home, "verify", parsed.words)
    result = verify_session(home, found.id, found.path, _heads(home).get(found.id))
    if parsed.has("json"):
        sys.stdout.write(json.dumps(_document(found.id, result)) + "\n")
    else:
        sys.stdout.write(printable(result.sentence) + "\n")
        for note in result.notes:
            sys.stdout.write(printable(f"  {note}") + "\n")
    return 0 if result.intact else 1


def _all(home: Home, parsed: Parsed) -> int:
    if parsed.words:
        raise UsageError("doorward verify: --all takes every session, so none can be named")
    from doorward.sessions.folders import Found, rollouts
    from doorward.sessions.verify_session import verify_many

    found: list[Found] = []
    for archived in (False, True):
        for each in rollouts(home, archived=archived):
            if isinstance(each, Found):
                found.append(each)
            else:
                sys.stderr.write(printable(f"doorward verify: {each.sentence}") + "\n")
    progress = sys.stderr.isatty()
    documents, bad = [], 0
    for number, checked in enumerate(verify_many(home, found, _heads(home)), 1):
        result = checked.verification
        # a foreign file without a link is told, but it is not one that was tampered with
        wrong = result is None or result.finding is not None
        bad += wrong
        if progress:
            sys.stderr.write(f"\rdoorward verify: {number} of {len(found)}\x1b[K")
        if parsed.has("json"):
            documents.append(
                {"id": checked.id, "error": checked.problem} if result is None else _document(checked.id, result)
            )
        elif wrong or (result is not None and not result.intact):
            sentence = checked.problem if result is None else result.sentence
            sys.stdout.write(printable(f"{checked.id}  {sentence}") + "\n")
    if progress:
        sys.stderr.write("\r\x1b[K")
    if parsed.has("json"):
        sys.stdout.write(json.dumps(sorted(documents, key=lambda document: str(document["id"]))) + "\n")
    else:
        sys.stdout.write(f"{len(found)} sessions checked, {bad or 'none'} not as written\n")
    return 1 if bad else 0


def _heads(home: Home) -> Mapping[str, Head]:
    """The head digests that the mirror keeps; none where it cannot be had."""
    from doorward.sessions.heads import kept_heads

    return kept_heads(home)


def _document(session: str, result: Verification) -> dict[str, Any]:
    return {
        "id": session,
        "intact": result.intact,
        "linked": result.linked,
        "tail": result.tail,
        "finding": None if result.finding is None else result.finding._asdict(),
        "notes": list(result.notes),
    }

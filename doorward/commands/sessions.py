"""`doorward sessions`: the sessions there are, newest first."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from doorward.errors import EngineError, UsageError
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.sessions.home import Home, StoreError, default_home
from doorward.summary import printable

if TYPE_CHECKING:
    from doorward.sessions.filters import Filter

_OPTIONS = (
    Option("cwd", "only those of this folder, or below it", "DIR"),
    Option("refused", "only those in which a door refused something"),
    Option("host", "only those that asked for this host; * stands for anything", "HOST"),
    Option("since", "only those that went on since: 2h, 7d, 2026-01-31, or with a time, UTC", "WHEN"),
    Option("search", "only those with these words in commands, hosts, messages, names", "WORDS"),
    Option("all", "archived sessions too"),
    Option("limit", "at most so many (default 50; 0: every one)", "N"),
    Option("json", "one JSON array"),
)


_BELOW = {"prune": "sessions_prune", "import": "sessions_import", "seal-key": "seal_key"}


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
                "doorward sessions [options]; doorward sessions prune [--apply]; doorward sessions import DIR",
                "The sessions there are, newest first. All filters that are given must hold.",
                _OPTIONS,
                ("doorward sessions --refused --since 2d", "doorward sessions --json | jq '.[0].id'"),
            )
        )
        return 0
    if parsed.words:
        raise UsageError(f"doorward sessions: takes no words, not {parsed.words[0]!r}; `doorward show` shows one")
    limit = parsed.last("limit", "0" if parsed.has("json") else "50")
    if not (limit.isascii() and limit.isdigit()):
        raise UsageError(f"doorward sessions: --limit takes a whole number, not {limit!r}")
    only = _filter(parsed)
    archived = None if parsed.has("all") else False
    quick = only is None and int(limit)
    try:
        home = Home(default_home(os.environ))
        if quick:
            # the newest few: their files are looked at sooner than an index is brought up to date
            from doorward.sessions.listing import list_sessions

            listing = list_sessions(home, archived=archived, limit=int(limit))
        else:
            from doorward.commands.progress import Progress
            from doorward.sessions.mirror import mirrored_listing

            with Progress("doorward sessions: looked through", "sessions") as told:
                listing = mirrored_listing(home, archived=archived, limit=int(limit) or None, only=only, progress=told)
    except StoreError as error:
        raise EngineError(str(error)) from None
    for problem in listing.problems:
        sys.stderr.write(printable(f"doorward sessions: {problem.sentence}") + "\n")
    if parsed.has("json"):
        sys.stdout.write(json.dumps([summary.to_json() for summary in listing.sessions]) + "\n")
    for summary in () if parsed.has("json") else listing.sessions:
        count = "?" if summary.turns is None else str(summary.turns)
        turns = f"{count:>3} turn{' ' if count == '1' else 's'}"
        refused = f"{summary.refused} refused" if summary.refused else ""
        name = f"  {summary.name}" if summary.name else ""
        line = f"{summary.id}  {summary.created_at[:19]}  {turns}  {refused:<11}  {summary.cwd}{name}"
        sys.stdout.write(printable(line.rstrip()) + "\n")
    if not listing.sessions and not parsed.has("json"):
        sys.stderr.write(f"doorward: no sessions {'yet' if only is None else 'match'}\n")
    if listing.sessions and quick:
        sys.stdout.flush()
        from doorward.sessions.heads import keep_heads

        keep_heads(home, listing.sessions)
    return 0


def _filter(parsed: Parsed) -> Filter | None:
    """What was asked for. Raises UsageError."""
    if not any(parsed.has(name) for name in ("cwd", "refused", "host", "since", "search")):
        return None
    from doorward.sessions.filters import Filter, words

    search = parsed.last("search") if parsed.has("search") else None
    if search is not None and not words(search):
        raise UsageError(f"doorward sessions: --search takes words to look for, not {search!r}")
    host = parsed.last("host") if parsed.has("host") else None
    if host == "":
        raise UsageError("doorward sessions: --host takes a host")
    return Filter(
        cwd=os.path.realpath(parsed.last("cwd")) if parsed.has("cwd") else None,
        refused=parsed.has("refused"),
        host=host,
        since=_moment(parsed.last("since")) if parsed.has("since") else None,
        search=search,
    )


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def _moment(text: str) -> str:
    """A time in UTC as rollouts write it, from `2h` (ago), a date, or a date with a time. Raises UsageError."""
    import time

    from doorward.sessions.timestamps import rfc3339

    if text[-1:] in _SECONDS and text[:-1].isascii() and text[:-1].isdigit() and len(text) < 10:
        return rfc3339(time.time_ns() - int(text[:-1]) * _SECONDS[text[-1]] * 1_000_000_000)
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"doorward sessions: --since takes 90m, 2h, 7d, a date as 2026-01-31, or that with a time, not {text!r}"
        ) from None
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{moment.microsecond // 1000:03d}Z"

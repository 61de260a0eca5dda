"""`doorward show SESSION`: a rollout for a person, or with --json its lines as they are stored."""

from __future__ import annotations

import os
import sys

from doorward.commands.named_session import store, the_session
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.sessions.home import Home
from doorward.sessions.lookup import SessionRef
from doorward.summary import printable

_OPTIONS = (
    Option("json", "the file's lines as stored, one JSON document a line"),
    Option("har", "the requests that inspection recorded, as an HTTP archive (HAR 1.2)"),
)


def main(args: list[str]) -> int:
    """Print one session. What could not be read is one line each on stderr."""
    try:
        parsed = parse("show", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward show [--json] SESSION",
                "Print what a session ran, what each door said, and what came of it.",
                _OPTIONS,
                ("doorward show 0192f0c1-2345-7abc-8def-0123456789ab", "doorward show --json nightly | jq .type"),
            )
        )
        return 0
    if len(parsed.words) != 1:
        raise UsageError("doorward show: name one session, by its UUID or its name")
    with store("show") as home:
        found = the_session(home, "show", parsed.words)
        if parsed.has("har"):
            return _archive(home, found)
        return _raw(home, found) if parsed.has("json") else _rendered(home, found)


def _raw(home: Home, found: SessionRef) -> int:
    from doorward.sessions.damage import Damage
    from doorward.sessions.history import session_bytes

    for line in session_bytes(home, found.id, found.path):
        if isinstance(line, Damage):
            sys.stderr.write(printable(f"doorward show: {line.sentence}") + "\n")
        else:
            sys.stdout.buffer.write(line)
    return 0


def _archive(home: Home, found: SessionRef) -> int:
    import json

    from doorward.sessions.damage import Damage
    from doorward.sessions.har import har_of
    from doorward.sessions.history import session_bytes
    from doorward.version import VERSION

    payloads = []
    for line in session_bytes(home, found.id, found.path):
        if isinstance(line, Damage):
            sys.stderr.write(printable(f"doorward show: {line.sentence}") + "\n")
        elif b'"http_exchange"' in line:
            payloads.append(json.loads(line)["payload"])
    archive = har_of(payloads, VERSION)
    if not archive["log"]["entries"]:
        sys.stderr.write('doorward show: no request was recorded; -c inspect.record="headers" has inspection do it\n')
    sys.stdout.write(json.dumps(archive) + "\n")
    return 0


def _rendered(home: Home, found: SessionRef) -> int:
    from doorward.sessions.history import session_lines
    from doorward.sessions.live import live_pid
    from doorward.sessions.show import rendered

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    lines = session_lines(home, found.id, found.path)
    for piece in rendered(lines, colour=colour, live=live_pid(found.path)[0], session=found.id):
        sys.stdout.buffer.write(piece.encode("utf-8", "backslashreplace"))
    return 0

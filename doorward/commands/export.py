"""`doorward export SESSION --html`: one page of a session, to be read anywhere."""

from __future__ import annotations

import os
import sys

from doorward.commands.named_session import store, the_session
from doorward.errors import EngineError, UsageError
from doorward.options import HelpWanted, Option, help_text, parse

_OPTIONS = (
    Option("html", "one self-contained page, without scripts; the only form there is"),
    Option("output", "write it to this new file (default: standard output)", "FILE", "o"),
)


def main(args: list[str]) -> int:
    """Write the page. Credentials in outputs are not in it."""
    try:
        parsed = parse("export", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward export SESSION --html [-o FILE]",
                "One page of a session: turns, verdicts, refusals, outputs, a time line. Readable offline.",
                _OPTIONS,
                ("doorward export nightly --html -o nightly.html",),
            )
        )
        return 0
    if not parsed.has("html"):
        raise UsageError("doorward export: say --html, the form to export to; doorward show --json has the records")
    from doorward.sessions.export_html import page
    from doorward.sessions.history import session_lines

    with store("export") as home:
        found = the_session(home, "export", parsed.words)
        lines = session_lines(home, found.id, found.path)
        pieces = page(home, lines, session=found.id, title=found.name or f"session {found.id}")
        if not parsed.has("output"):
            for piece in pieces:
                sys.stdout.buffer.write(piece.encode("utf-8", "backslashreplace"))
            return 0
        path = parsed.last("output")
        try:
            # for the owner's eyes until they say otherwise, and never over something that is there
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(f"doorward export: cannot make {path}: {error.strerror}") from None
        try:
            with os.fdopen(descriptor, "wb") as file:
                for piece in pieces:
                    file.write(piece.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise EngineError(f"cannot write {path}: {error.strerror}") from None
    return 0

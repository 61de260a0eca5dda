"""`doorward summary SESSION…`: what sessions reached and were refused, for a CI job's summary."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from doorward.commands.named_session import store
from doorward.errors import EngineError, UsageError
from doorward.options import HelpWanted, Option, help_text, parse

if TYPE_CHECKING:
    from doorward.sessions.traffic import Report

_FORMATS = ("markdown", "json", "github")
_OPTIONS = (
    Option(
        "format",
        "markdown; json; or github: Markdown to $GITHUB_STEP_SUMMARY, and an annotation for each refusal",
        "FORMAT",
        choices=_FORMATS,
    ),
    Option("json", "the same as --format json"),
)
_EXAMPLES = ("doorward summary nightly", 'doorward summary --format github "$SESSION"')


def main(args: list[str]) -> int:
    """Print the summary. Raises UsageError, EngineError."""
    try:
        parsed = parse("summary", _OPTIONS, args)
    except HelpWanted:
        usage = "doorward summary [--format FORMAT] SESSION…"
        what = "Hosts reached and refused, with counts, bytes, processes and rules, and what would allow them."
        sys.stdout.write(help_text(usage, what, _OPTIONS, _EXAMPLES))
        return 0
    if not parsed.words:
        raise UsageError("doorward summary: name a session, by its UUID or its name; several are put together")
    report = report_of("summary", parsed.words)
    shown = "json" if parsed.has("json") else parsed.last("format") or "markdown"
    from doorward import job_summary

    if shown == "json":
        import json

        sys.stdout.write(json.dumps(job_summary.data(report)) + "\n")
    elif shown == "markdown":
        sys.stdout.write(job_summary.markdown(report))
    else:
        _github(report)
    return 0


def report_of(command: str, words: tuple[str, ...]) -> Report:
    """The report of the sessions that the words name, each once. Raises UsageError."""
    from doorward.sessions.history import session_lines
    from doorward.sessions.lookup import find_session
    from doorward.sessions.traffic import report

    with store(command) as home:
        found = {ref.id: ref for ref in (find_session(home, word) for word in words)}
        return report((ref.id, session_lines(home, ref.id, ref.path)) for ref in found.values())


def _github(report: Report) -> None:
    """As GitHub's runner reads it: annotations on stdout, the summary at the end of its file."""
    from doorward import job_summary

    text = job_summary.markdown(report)
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise EngineError(f"cannot write $GITHUB_STEP_SUMMARY ({path}): {error.strerror}") from None
    else:
        sys.stderr.write(text)
    sys.stdout.write(job_summary.workflow_commands(report))

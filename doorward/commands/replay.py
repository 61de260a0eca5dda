"""`doorward replay SESSION`: the turns again, at once or at their pace; or judged once more under another policy."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from doorward.commands.named_session import store, the_session
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.sessions.home import Home
from doorward.sessions.lookup import SessionRef
from doorward.summary import printable

_OPTIONS = (
    Option("turn", "only this one", "N"),
    Option("pace", "with the pauses there were, divided by this (1: as it was; default: at once)", "FACTOR"),
    Option("against", "judge it under other rules: a config or .rules file, a profile, KEY=VALUE", "POLICY"),
    Option("json", "with --against: one JSON document"),
)
_LONGEST_PAUSE_S = 60.0


def main(args: list[str]) -> int:
    """Show it. With --against: 1 if anything that went through would newly be refused, else 0."""
    try:
        parsed = parse("replay", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward replay [options] SESSION",
                "Show a session again; or judge what it did under another policy: exit 1 if that would refuse more.",
                _OPTIONS,
                ("doorward replay --pace 4 nightly", "doorward replay --against strict.toml nightly"),
            )
        )
        return 0
    turn = parsed.last("turn")
    if turn and not (turn.isascii() and turn.isdigit() and int(turn) > 0):
        raise UsageError(f"doorward replay: --turn takes the number of a turn, from 1 on, not {turn!r}")
    if parsed.has("json") and not parsed.has("against"):
        raise UsageError("doorward replay: --json goes with --against; doorward show --json has the records")
    pace = _factor(parsed.last("pace")) if parsed.has("pace") else None
    with store("replay") as home:
        found = the_session(home, "replay", parsed.words)
        if parsed.has("against"):
            return _against(home, found, int(turn) if turn else None, parsed)
        return _shown(home, found, int(turn) if turn else None, pace)


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor < 1e9:
        raise UsageError(f"doorward replay: --pace takes a positive number, not {text!r}")
    return factor


def _lines(home: Home, found: SessionRef, turn: int | None) -> Any:
    from doorward.sessions.history import session_lines
    from doorward.sessions.one_turn import one_turn, turn_lines

    if turn is None:
        return session_lines(home, found.id, found.path)
    if one_turn(home, found.id, found.path, turn) is None:
        raise UsageError(f"doorward replay: session {found.id} has no turn {turn}; doorward show lists them")
    return turn_lines(home, found.id, found.path, turn)


def _shown(home: Home, found: SessionRef, turn: int | None, pace: float | None) -> int:
    from doorward.sessions.replaying import scenes

    for scene in scenes(home, _lines(home, found, turn), turn=turn):
        if pace is not None and scene.after_s:
            time.sleep(min(scene.after_s / pace, _LONGEST_PAUSE_S))
        sys.stdout.buffer.write(scene.text.encode("utf-8", "backslashreplace"))
        if pace is not None:
            sys.stdout.flush()
    return 0


def _against(home: Home, found: SessionRef, turn: int | None, parsed: Parsed) -> int:
    from doorward.policy_file import read_policy
    from doorward.rejudge import rejudged

    result = rejudged(_lines(home, found, turn), read_policy(parsed.last("against"), home), home)
    if parsed.has("json"):
        document = {
            "session": found.id,
            "actions": result.actions,
            "connections": result.connections,
            "changes": [change._asdict() | {"newly_refused": change.newly_refused} for change in result.changes],
        }
        sys.stdout.write(json.dumps(document) + "\n")
        return 1 if result.newly_refused else 0
    from doorward.sessions.credentials import redacted

    for change in result.changes:
        mark = "-" if change.newly_refused else "+" if change.would_be == "allow" else " "
        where = f"turn {change.turn}" if change.turn is not None else "outside any turn"
        line = f"{mark} {where}  {change.kind}  {redacted(change.what)}: {change.was} -> {change.would_be}"
        sys.stdout.write(printable(line) + "\n" + printable(f"    {change.why}") + "\n")
    counts = f"{result.actions} actions and {result.connections} connections judged"
    more = f"{len(result.changes)} would change, {len(result.newly_refused)} newly refused"
    sys.stderr.write(f"doorward: {counts}: {more if result.changes else 'nothing would change'}\n")
    return 1 if result.newly_refused else 0

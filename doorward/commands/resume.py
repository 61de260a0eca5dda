"""`doorward resume SESSION [-- CMD]`: go on with a session, or without a command show where it stands."""

from __future__ import annotations

import json
import sys
from typing import Any

from doorward.commands.named_session import store, the_session
from doorward.commands.run_options import RUN_OPTIONS
from doorward.errors import UsageError
from doorward.options import HelpWanted, Parsed, help_text, parse
from doorward.summary import printable

_OPTIONS = tuple(option for option in RUN_OPTIONS if option.name not in ("session", "name"))


def main(args: list[str]) -> int:
    """Append a turn (exit status as `run`), or print the state and write nothing."""
    before, command = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, None)
    try:
        parsed = parse("resume", _OPTIONS, before)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward resume [options] SESSION [-- CMD…]",
                "Run one more command in a session, in the sandbox it began with. Without a command: where it stands.",
                _OPTIONS,
                ("doorward resume nightly -- make test", "doorward resume --json nightly"),
            )
        )
        return 0
    if not parsed.words:
        raise UsageError("doorward resume: name one session, by its UUID or its name")
    session, *words = parsed.words
    words += command or []
    if command is not None and not words:
        raise UsageError("doorward resume: no command given after --")
    if not words:
        return _state(session, parsed)
    from doorward.commands import run

    return run.main(["--session", session, *_given(parsed), "--", *words])


def _given(parsed: Parsed) -> list[str]:
    """The options as they were given."""
    valued = {option.name for option in _OPTIONS if option.value}
    return [
        f"--{name}={value}" if name in valued else f"--{name}"
        for name, values in parsed.values.items()
        for value in values
    ]


def _state(text: str, parsed: Parsed) -> int:
    from doorward.pinned_profile import profile_of
    from doorward.sessions.folders import Found
    from doorward.sessions.live import live_pid
    from doorward.sessions.one_turn import one_turn
    from doorward.sessions.summary import summarise

    with store("resume") as home:
        found = the_session(home, "resume", (text,))
        summary = summarise(Found(found.id, found.path, found.archived))
        live, pid = live_pid(found.path)
        turn = one_turn(home, found.id, found.path, summary.turns) if summary.turns else None
        profile = profile_of(home, found.id, found.path)
    state: dict[str, Any] = {
        **summary.to_json(),
        "live": live,
        "pid": pid,
        "open_turn": turn.number if turn is not None and turn.ending is None else None,
        "last_command": turn.argv if turn is not None else None,
        "last_exit_code": (turn.observation or {}).get("exit_code") if turn is not None else None,
        "sandbox_profile": dict(profile),
    }
    if parsed.has("json"):
        sys.stdout.write(json.dumps(state) + "\n")
        return 0
    for line in _told(state):
        sys.stdout.write(printable(line) + "\n")
    if found.archived:
        sys.stderr.write(f"doorward: it is archived; before it can go on: doorward unarchive {found.id}\n")
    return 0


def _told(state: dict[str, Any]) -> list[str]:
    from doorward.sessions.items import command_line

    name = f"  {state['name']}" if state["name"] else ""
    profile = state["sandbox_profile"]
    lines = [f"session {state['id']}{name}", f"  {state['turns']} turns, {state['refused']} refused, in {state['cwd']}"]
    lines.append(f"  from {state['created_at'][:19]} to {state['updated_at'][:19]} UTC")
    if profile:
        lines.append(f"  pinned to {profile.get('mode')}, network {profile.get('network')}")
    if state["live"]:
        writer = f"process {state['pid']}" if state["pid"] else "another process"
        lines.append(f"  live: {writer} writes it")
    if state["last_command"] is not None:
        ended = state["last_exit_code"]
        how = f"exit {ended}" if ended is not None else "no exit status recorded"
        lines.append(f"  last: {command_line(state['last_command'])}  ({how})")
    if state["open_turn"] is not None and not state["live"]:
        lines.append(f"  turn {state['open_turn']} has no end: its writer is gone; going on marks it as interrupted")
    return lines

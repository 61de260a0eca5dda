"""`doorward explain`: the two lenses, on a recorded turn or on a command before it runs; and where a value was seen."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from doorward.commands.named_session import store
from doorward.commands.run_options import POLICY_OPTIONS
from doorward.errors import UsageError
from doorward.lenses import Door, Lenses, Part, lenses
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.sessions.home import Home
from doorward.sessions.lookup import SessionNotFound, SessionRef, find_session
from doorward.summary import printable

_OPTIONS = (
    Option("saw", "where this value was visible (-: read it from standard input); it is not stored", "VALUE"),
    Option("unseal", "print the sealed environment of a turn, opened with this private key", "FILE"),
    Option("json", "one JSON document"),
    *POLICY_OPTIONS,
)


def main(args: list[str]) -> int:
    """Print the lenses of SESSION[#TURN], or with `--` those of a command that was not run."""
    before, command = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, None)
    try:
        parsed = parse("explain", _OPTIONS, before)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward explain SESSION[#TURN]; doorward explain [options of run] -- CMD…",
                "What could refuse, and did; what of it can be rebuilt; and where the two agree.",
                _OPTIONS[:3],
                ("doorward explain nightly#2", "doorward explain nightly --saw - < token", "doorward explain -- rm x"),
            )
        )
        return 0
    if command is not None:
        if parsed.words or not command:
            raise UsageError("doorward explain: either a session, or a command after --")
        from doorward.explain_ahead import explained_ahead

        return _print([explained_ahead(parsed, tuple(command))], None, parsed)
    if len(parsed.words) != 1:
        raise UsageError("doorward explain: name one session, or one turn of it as SESSION#TURN")
    with store("explain") as home:
        found, turn = _place(home, parsed.words[0])
        if parsed.has("saw"):
            return _saw(home, found, turn, parsed)
        if parsed.has("unseal"):
            return _unseal(home, found, turn, parsed)
        return _print(_of_session(home, found, turn), found.id, parsed)


def _place(home: Home, text: str) -> tuple[SessionRef, int | None]:
    """The session, and the turn after the last `#`; a name may hold one itself."""
    try:
        return find_session(home, text), None
    except SessionNotFound:
        session, _, number = text.rpartition("#")
        if not session or not (number.isascii() and number.isdigit()):
            raise
        return find_session(home, session), int(number)


def _of_session(home: Home, found: SessionRef, wanted: int | None) -> list[Lenses]:
    from doorward.sessions.history import session_lines
    from doorward.sessions.live import live_pid
    from doorward.sessions.one_turn import one_turn
    from doorward.sessions.output import blob_path
    from doorward.sessions.turns import Turn, parts

    def has_blob(blob: Mapping[str, Any]) -> bool:
        digest, encoding = str(blob.get("sha256")), str(blob.get("encoding"))
        return digest.isalnum() and os.path.isfile(blob_path(home, digest, encoding))

    live = live_pid(found.path)[0]
    if wanted is not None:
        turn = one_turn(home, found.id, found.path, wanted)
        if turn is None:
            raise UsageError(f"doorward explain: session {found.id} has no turn {wanted}; doorward show lists them")
        return [lenses(turn, has_blob=has_blob, live=live)]
    turns = [part for part in parts(session_lines(home, found.id, found.path)) if isinstance(part, Turn)]
    numbered = [turn for turn in turns if turn.number is not None]
    return [lenses(turn, has_blob=has_blob, live=live and turn is numbered[-1]) for turn in numbered]


def _saw(home: Home, found: SessionRef, turn: int | None, parsed: Parsed) -> int:
    from doorward.sessions.environment import fingerprint_key
    from doorward.sessions.history import session_lines
    from doorward.sessions.one_turn import turn_lines
    from doorward.sessions.saw import saw

    given = parsed.last("saw")
    value = sys.stdin.buffer.read().rstrip(b"\r\n") if given == "-" else os.fsencode(given)
    if not value:
        raise UsageError("doorward explain: --saw takes a value to look for")
    lines = session_lines(home, found.id, found.path)
    if turn is not None:
        lines = turn_lines(home, found.id, found.path, turn)
    search = saw(home, lines, value, fingerprint_key(home))
    for limit in search.limits:
        sys.stderr.write(printable(f"doorward explain: {limit}") + "\n")
    if parsed.has("json"):
        places = [sighting._asdict() for sighting in search.sightings]
        document = {"session": found.id, "seen": bool(places), "places": places, "limits": list(search.limits)}
        sys.stdout.write(json.dumps(document) + "\n")
        return 0
    for sighting in search.sightings:
        where = "outside any turn" if sighting.turn is None else f"turn {sighting.turn}"
        line = f"{where}  record {sighting.ordinal}  {sighting.where}: {sighting.what} (by {sighting.how})"
        sys.stdout.write(printable(line) + "\n")
    if not search.sightings:
        sys.stdout.write("not seen: in no variable, output, command, message or request that is recorded\n")
    return 0


def _unseal(home: Home, found: SessionRef, turn: int | None, parsed: Parsed) -> int:
    from doorward.sessions.one_turn import one_turn
    from doorward.sessions.sealing import SealError, opened

    if turn is None:
        raise UsageError("doorward explain: --unseal takes one turn, as SESSION#TURN")
    seen = one_turn(home, found.id, found.path, turn)
    record = (seen.exec or {}).get("sealed_environment") if seen is not None else None
    if not isinstance(record, dict):
        raise UsageError(f'doorward explain: no environment is sealed in turn {turn}; replay.env = "sealed" does that')
    try:
        with open(parsed.last("unseal"), encoding="ascii") as file:
            environment = opened(record, file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"doorward explain: {parsed.last('unseal')} cannot be read: {error}") from None
    except SealError as error:
        raise UsageError(f"doorward explain: {error}") from None
    sys.stdout.write(json.dumps(environment, indent=None if parsed.has("json") else 2, sort_keys=True) + "\n")
    return 0


def _print(explained: list[Lenses], session: str | None, parsed: Parsed) -> int:
    if parsed.has("json"):
        document = {"session": session, "turns": [each.to_json() for each in explained]}
        sys.stdout.write(json.dumps(document) + "\n")
        return 0
    from doorward.sessions.credentials import redacted
    from doorward.sessions.items import command_line

    for number, each in enumerate(explained):
        title = redacted(command_line(each.command)) if len(each.command) > 1 else "".join(each.command)
        heading = f"turn {each.turn}  {title}" if each.turn is not None else title
        lines = ["" if number else None, heading, "", "refusable: which doors could say no, and did"]
        lines += _table([_door(door) for door in each.refusable])
        lines += ["", "replayable: what can be rebuilt from the record"]
        lines += _table([_part(part) for part in each.replayable])
        if each.findings:
            lines += ["", "where the two meet"]
            lines += [f"  {'agree' if found.agree else 'CONTRADICT':<11} {found.sentence}" for found in each.findings]
        sys.stdout.write("".join(printable(redacted(line)) + "\n" for line in lines if line is not None))
    if not explained:
        sys.stdout.write("no turns are recorded\n")
    return 0


_Row = tuple[str, str, str, list[str]]


def _door(door: Door) -> _Row:
    could = {True: "could", False: "could not", None: "-"}[door.could]
    mark = "> " if door.did in ("refused", "asked") else "  "
    return mark + door.door, could, door.did, list(door.why)


def _part(part: Part) -> _Row:
    return f"  {part.part}", part.rebuilt, "", [part.why]


def _table(rows: list[_Row]) -> list[str]:
    """Columns, with further lines of the last one below each other."""
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = []
    for name, second, third, texts in rows:
        left = f"{name:<{widths[0]}}  {second:<{widths[1]}}" + (f"  {third:<{widths[2]}}" if widths[2] else "")
        for text in texts or [""]:
            lines.append(f"{left}  {text}".rstrip())
            left = " " * len(left)
    return lines

"""Shows a session to a person: what it is, then turn by turn what was run, said, refused and seen. Pure."""

from __future__ import annotations

from doorward.sessions.credentials import redacted
from doorward.sessions.damage import Damage
from doorward.sessions.harmless_text import harmless, harmless_line
from doorward.sessions.items import command_line
from doorward.sessions.line import Line
from doorward.sessions.turns import Refused, Renamed, Traffic, Turn, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from doorward.sessions.line import JsonObject

    Paint = Callable[[str, str], str]
    """Text and a colour's name to text."""

OUTPUT_LINES = 20
"""How many lines of a turn's output are shown."""
PLACES = 20
"""How many places a turn's traffic, and its refusals, are shown for."""


_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_DECISION_COLOUR = {"allow": "green", "ask": "yellow", "deny": "red"}


def render(
    lines: Iterable[Line | Damage], *, colour: bool = False, live: bool = False, output_lines: int | None = OUTPUT_LINES
) -> str:
    """The whole text; see `rendered`."""
    return "".join(rendered(lines, colour=colour, live=live, output_lines=output_lines))


def rendered(
    lines: Iterable[Line | Damage],
    *,
    colour: bool = False,
    live: bool = False,
    output_lines: int | None = OUTPUT_LINES,
    session: str | None = None,
) -> Iterator[str]:
    """The text in pieces, a turn at a time.

    `session` is the id of the one to be shown, where the lines before its own are shared with others.

    `live`: a writer holds the session, so a turn without an end is running rather than cut off. `output_lines` None
    shows all that the records hold. Nothing in the text can drive a terminal, whatever the records hold, and
    what has the shape of a credential stands as `[redacted: KIND]` (the records keep it).
    """
    paint = _painted if colour else _plain
    first = True
    for part in parts(lines):
        if isinstance(part, Damage):
            yield paint(f"! {harmless_line(part.sentence)}\n", "yellow")
        elif isinstance(part, Renamed):
            yield paint(f"renamed to {harmless_line(part.name)}\n", "dim")
        elif isinstance(part, Line):
            if first and session is not None and part.payload.get("id") != session:
                yield paint(f"session {harmless_line(session)}, which begins with what it shares with\n", "bold")
            elif not first:
                own = session is None or part.payload.get("id") == session
                yield paint(f"\n{'from here on its own:' if own else 'with what it copied from'}\n", "dim")
            yield from _session(part.payload, paint)
            first = False
        elif part.number is not None or part.message or part.said or part.refused or part.traffic:
            yield "\n"
            yield from _turn(part, paint, live, output_lines)


def _plain(text: str, colour: str) -> str:
    return text


def _painted(text: str, colour: str) -> str:
    body = text.removesuffix("\n")
    return f"\x1b[{_COLOURS[colour]}m{body}\x1b[0m{text[len(body) :]}"


def _session(meta: JsonObject, paint: Paint) -> Iterator[str]:
    name = meta.get("name")
    title = f"session {_text(meta.get('id'))}" + (f"  {_text(name)}" if name else "")
    yield paint(title + "\n", "bold")
    maker = f"{_text(meta.get('originator'))} {_text(meta.get('cli_version'))}".strip()
    yield f"  {_time(meta.get('timestamp'))} in {_text(meta.get('cwd'))}\n"
    if maker:
        yield paint(f"  by {maker}\n", "dim")


def _turn(turn: Turn, paint: Paint, live: bool, output_lines: int | None) -> Iterator[str]:
    yield paint(_heading(turn) + "\n", "bold")
    yield f"  {_outcome(turn, live)}\n"
    yield from _notes(turn)
    yield from _verdict(turn, paint)
    yield from _held(turn, paint)
    yield from _network(turn, paint)
    yield from _refusals(turn, paint)
    for who, text in turn.said:
        yield f"  {who}: {harmless_line(redacted(text))}\n"
    yield from _output(turn, paint, output_lines)
    if turn.long_lines:
        yield paint(f"  {turn.long_lines} records were too long to load\n", "yellow")


def _heading(turn: Turn) -> str:
    argv = turn.argv
    what = redacted(command_line(argv) if argv is not None else turn.message or "")
    number = "outside any turn" if turn.number is None else f"turn {turn.number}"
    return f"{number}  {harmless_line(what)}" if what else number


def _outcome(turn: Turn, live: bool) -> str:
    seen = turn.observation or {}
    words = [_time(turn.started_at)] if turn.started_at else []
    if turn.observation is not None:
        words.append(f"exit {_text(seen.get('exit_code'))}")
        if isinstance(signal := seen.get("signal"), int):
            words.append(f"by signal {signal}")
        if seen.get("success") is False:
            words.append("doorward itself failed")
        if isinstance(duration := seen.get("duration_s"), int | float):
            words.append(f"{duration:.3g} s")
    if turn.ending == "interrupted":
        words.append("interrupted: its writer was gone before it ended")
    elif turn.ending is None and turn.number is not None:
        words.append("running" if live else "has no end: its writer is gone")
    return ", ".join(words) or "no outcome is recorded"


def _notes(turn: Turn) -> Iterator[str]:
    notes = (turn.observation or {}).get("notes")
    for note in notes if isinstance(notes, list) else ():
        yield f"  note      {_text(note)}\n"


def _verdict(turn: Turn, paint: Paint) -> Iterator[str]:
    if turn.verdict is None:
        return
    word = _text(turn.verdict.get("verdict"))
    colour = _DECISION_COLOUR.get(word, "bold")
    yield f"  verdict   {paint(word, colour)} (gate {_text(turn.verdict.get('gate'))})\n"
    reasons = turn.verdict.get("reasons")
    for reason in reasons if isinstance(reasons, list) else []:
        if isinstance(reason, dict):
            gate, effect = _text(reason.get("gate")), _text(reason.get("effect"))
            yield f"    {gate:<10} {effect:<14} {_text(reason.get('sentence'))}"
            yield paint(f"  [{_text(reason.get('switch'))}]\n", "dim") if reason.get("switch") else "\n"
    for answer in turn.answers:
        how = ", ".join(_text(answer[key]) for key in ("scope", "channel") if answer.get(key))
        yield f"    asked      answered {_text(answer.get('answer'))}{f' ({how})' if how else ''}\n"
    for each in turn.beside:
        yield f"    {_beside(each)}\n"


def _beside(payload: JsonObject) -> str:
    if payload.get("type") == "review":
        because = f": {_text(payload['reason'])}" if payload.get("reason") else ""
        return f"review     {_text(payload.get('by'))} {_text(payload.get('status'))}{because}"
    argv = payload.get("argv")
    words = command_line([str(word) for word in argv]) if isinstance(argv, list) else ""
    ended = payload.get("type") == "hook_ended"
    how = f"exit {_text(payload.get('exit_code'))}" if ended else "was not run"
    return f"hook       {_text(payload.get('event'))} {harmless_line(words)} {how}"


def _held(turn: Turn, paint: Paint) -> Iterator[str]:
    """What the run was confined by, layer by layer."""
    if turn.exec is None:
        return
    layers = turn.exec.get("enforcement")
    if isinstance(layers, dict):
        weak = any(value != "kernel" for value in layers.values())
        text = ", ".join(f"{_text(layer)} {_text(value)}" for layer, value in layers.items())
        yield f"  enforced  {paint(text, 'yellow' if weak else 'green')}\n"
    environment = turn.exec.get("environment")
    if isinstance(environment, list):
        sealed = sum(1 for entry in environment if isinstance(entry, dict) and "fingerprint" in entry)
        yield paint(f"  variables {len(environment)}, {sealed} of them as fingerprints\n", "dim")


def _network(turn: Turn, paint: Paint) -> Iterator[str]:
    if not turn.traffic and not turn.unfinished:
        return
    yield "  network\n"
    groups = sorted(turn.traffic.values(), key=lambda group: -group.connections)
    for group in groups[:PLACES]:
        yield f"    {_traffic(group, paint)}\n"
    yield from _rest(len(groups))
    for name, where, place in list(turn.credentials)[:PLACES]:
        yield f"    the credential {_text(name)} was put into requests to {_text(where)} ({_text(place)})\n"
    if turn.unfinished:
        count = len(turn.unfinished)
        places = sorted({_place(record) for record in turn.unfinished.values()})
        yield f"    {count} opened without a recorded end: {', '.join(places[:PLACES])}\n"


def _traffic(group: Traffic, paint: Paint) -> str:
    record = group.first
    decision = _text(record.get("decision"))
    words = [paint(f"{decision:<5}", _DECISION_COLOUR.get(decision, "bold")), _place(record)]
    if group.connections > 1:
        words.append(f"{group.connections} connections")
    if group.requests > group.connections:
        words.append(f"{group.requests} requests")
    if group.bytes_up or group.bytes_down:
        words.append(f"{_size(group.bytes_up)} up, {_size(group.bytes_down)} down")
    if decision != "allow":
        words.append(_text(record.get("reason")))
    if record.get("rule"):
        words.append(f"rule {_text(record.get('rule'))}")
    words.extend(f"{_text(error)} ({count}x)" for error, count in group.errors.items())
    return "  ".join(words)


def _refusals(turn: Turn, paint: Paint) -> Iterator[str]:
    if not turn.refused:
        return
    yield "  refused\n"
    groups = sorted(turn.refused.values(), key=lambda group: -group.count)
    for group in groups[:PLACES]:
        yield from _refusal(group, paint)
    yield from _rest(len(groups))


def _refusal(group: Refused, paint: Paint) -> Iterator[str]:
    record = group.first
    count = f"  {group.count}x" if group.count > 1 else ""
    yield f"    {paint(_place(record), 'red')}{count}  {_text(record.get('message') or record.get('reason'))}\n"
    if record.get("hint"):
        yield f"      to allow it: {_text(record.get('hint'))}\n"


def _output(turn: Turn, paint: Paint, limit: int | None) -> Iterator[str]:
    if turn.observation is None:
        return
    output = turn.observation.get("output")
    if not isinstance(output, dict):
        if turn.exec is not None:
            yield "  output    not recorded\n"
        return
    counts = {name: output.get(name) for name in ("stdout", "stderr")}
    sizes = [f"{_size(count)} {name}" for name, count in counts.items() if isinstance(count, int) and count]
    yield f"  output    {', '.join(sizes) or 'none'}\n"
    head, tail, omitted = (output.get(key) for key in ("head", "tail", "omitted"))
    lines = _lines(head)
    if limit is None and tail:
        lines += [f"[… {_text(omitted)} bytes left out …]", *_lines(tail)]
    shown = lines if limit is None else lines[:limit]
    for line in shown:
        yield paint("    | ", "dim") + line + "\n"
    if len(shown) < len(lines) or (limit is not None and tail):
        yield paint("    | …\n", "dim")


def _lines(text: object) -> list[str]:
    return harmless(redacted(text)).removesuffix("\n").split("\n") if isinstance(text, str) and text else []


def _rest(count: int) -> Iterator[str]:
    if count > PLACES:
        yield f"    and {count - PLACES} more\n"


def _place(record: JsonObject) -> str:
    host, port = record.get("host"), record.get("port")
    if not isinstance(host, str):
        return _text(record.get("path") or record.get("gate") or record.get("source") or "the command")
    text = _text(f"[{host}]" if ":" in host else host)
    protocol = record.get("protocol")
    return f"{text}:{_text(port)}" + (f" ({_text(protocol)})" if protocol else "")


def _text(value: object) -> str:
    return "" if value is None else harmless_line(value if isinstance(value, str) else str(value))


def _time(value: object) -> str:
    """`2025-11-29 23:41:00 UTC`."""
    text = _text(value)
    return f"{text[:10]} {text[11:19]} UTC" if len(text) >= 19 else text


def _size(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}" if unit != "B" else f"{count} B"

"""One self-contained page of a session: turns, verdicts, refusals, outputs, a time line. Pure but for blobs.

It is read offline: no script, no font, no picture, nothing that is fetched, and a policy in the page that forbids all
of that. What folds is `<details>`. Text of commands cannot be markup, control characters are shown as escapes, and what
has the shape of a credential is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from doorward.sessions.credentials import redacted
from doorward.sessions.damage import Damage
from doorward.sessions.harmless_text import harmless, harmless_line
from doorward.sessions.home import Home
from doorward.sessions.items import command_line
from doorward.sessions.line import JsonObject, Line
from doorward.sessions.replaying import whole_output
from doorward.sessions.timestamps import seconds
from doorward.sessions.turns import Renamed, Turn, parts

OUTPUT_LIMIT = 256 << 10
"""Characters of one output that the page holds; the rest stays in the session."""
PLACES = 200
"""Rows of one table."""

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --red: #c0392b; --green: #1e8449; --amber: #b9770e; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 0; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: #8881; padding: .6rem .8rem; overflow: auto; max-height: 30rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
section { border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: .15rem .6rem;
  border-top: 1px solid var(--line); } th { font-weight: 600; }
.deny, .bad { color: var(--red); font-weight: 600; } .allow { color: var(--green); font-weight: 600; }
.ask, .weak { color: var(--amber); font-weight: 600; } .dim { opacity: .7; }
.time { position: relative; height: 1.4rem; background: #8881; border-radius: 4px; margin: .6rem 0; overflow: hidden; }
.time a { position: absolute; top: 0; bottom: 0; min-width: 3px; background: var(--green); }
.time a.refused { background: var(--red); }
@media print { pre { max-height: none; } details > * { display: block; } }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(home: Home, lines: Iterable[Line | Damage], *, session: str, title: str) -> Iterator[str]:
    """The page in pieces. `title` is what the session is called; `lines` are all of it, shared ones first."""
    meta: JsonObject = {}
    turns: list[Turn] = []
    notes: list[str] = []
    for part in parts(lines):
        if isinstance(part, Damage):
            notes.append(part.sentence)
        elif isinstance(part, Renamed):
            notes.append(f"renamed to {part.name}")
        elif isinstance(part, Line):
            # of a fork its own comes last
            meta = part.payload
        elif part.number is not None or part.said or part.refused or part.traffic:
            turns.append(part)
    name = _text(title)
    yield (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<style>{_STYLE}</style></head><body>\n<h1>{name}</h1>\n"
    )
    yield from _head(meta, session, turns)
    yield from (f'<p class="weak">{_text(note)}</p>\n' for note in notes)
    yield _time_line(turns)
    for turn in turns:
        yield from _turn(home, turn)
    yield "</body></html>\n"


def _head(meta: JsonObject, session: str, turns: list[Turn]) -> Iterator[str]:
    refused = sum(group.count for turn in turns for group in turn.refused.values())
    rows = [
        ("session", session),
        ("folder", meta.get("cwd")),
        ("began", meta.get("timestamp")),
        ("by", f"{meta.get('originator') or ''} {meta.get('cli_version') or ''}".strip()),
        ("forked from", meta.get("forked_from_id")),
        ("turns", len([turn for turn in turns if turn.number is not None])),
        ("refused", refused),
    ]
    yield "<table>"
    yield from (f"<tr><th>{key}</th><td>{_text(value)}</td></tr>" for key, value in rows if value not in (None, ""))
    yield "</table>\n"


def _time_line(turns: list[Turn]) -> str:
    """A bar a turn, as long as it took; what passed between two is drawn at most a twentieth as long as all of them."""
    spans = []
    for turn in turns:
        began = seconds(turn.started_at) if turn.started_at else None
        if began is not None and turn.number is not None:
            ended = seconds(turn.ended_at) if turn.ended_at else None
            spans.append((turn, began, max(began, began if ended is None else ended)))
    if not spans:
        return ""
    busy = max(sum(ended - began for _, began, ended in spans), 0.001)
    drawn: list[tuple[Turn, float, float]] = []
    at, before = 0.0, spans[0][1]
    for turn, began, ended in spans:
        at += min(max(began - before, 0.0), busy / 20)
        width = max(ended - began, busy / 200)
        drawn.append((turn, at, width))
        at, before = at + width, ended
    bars = "".join(
        f'<a href="#turn-{turn.number}" title="turn {turn.number}: {_text(_command(turn))}"'
        f' class="{"refused" if turn.refused else "done"}"'
        f' style="left:{left / at * 100:.2f}%;width:{width / at * 100:.2f}%"></a>'
        for turn, left, width in drawn
    )
    first, last = spans[0][0].started_at, spans[-1][0].ended_at
    return (
        f'<div class="time" role="img" aria-label="time line">{bars}</div>\n'
        f'<p class="dim">{_text(first)} to {_text(last)}; pauses are drawn short</p>\n'
    )


def _turn(home: Home, turn: Turn) -> Iterator[str]:
    number = "outside any turn" if turn.number is None else f"turn {turn.number}"
    anchor = "" if turn.number is None else f' id="turn-{turn.number}"'
    yield f"<section{anchor}><h2>{number} <code>{_text(_command(turn))}</code></h2>\n"
    yield f'<p class="dim">{_text(_outcome(turn))}</p>\n'
    yield from _verdict(turn)
    yield from _refusals(turn)
    yield from _network(turn)
    for who, text in turn.said:
        yield f"<p><b>{_text(who)}</b> {_text(redacted(text))}</p>\n"
    yield from _output(home, turn)
    yield from _environment(turn)
    yield "</section>\n"


def _command(turn: Turn) -> str:
    return redacted(command_line(turn.argv) if turn.argv is not None else turn.message or "")


def _outcome(turn: Turn) -> str:
    seen = turn.observation or {}
    words = [turn.started_at]
    if turn.observation is not None:
        words.append(f"exit {seen.get('exit_code')}")
        if isinstance(duration := seen.get("duration_s"), int | float):
            words.append(f"{duration:.3g} s")
    if turn.ending == "interrupted":
        words.append("interrupted")
    elif turn.ending is None:
        words.append("no end is recorded")
    notes = seen.get("notes")
    words += map(str, notes) if isinstance(notes, list) else []
    return ", ".join(word for word in words if word)


def _verdict(turn: Turn) -> Iterator[str]:
    if turn.verdict is None:
        return
    word = str(turn.verdict.get("verdict"))
    layers = (turn.exec or {}).get("enforcement")
    yield f'<p>verdict <span class="{_class(word)}">{_text(word)}</span> (gate {_text(turn.verdict.get("gate"))})'
    if isinstance(layers, dict):
        held = ", ".join(f"{name} {value}" for name, value in layers.items())
        weak = any(value != "kernel" for value in layers.values())
        yield f' · enforced: <span class="{"weak" if weak else "allow"}">{_text(held)}</span>'
    yield "</p>\n<details><summary>every gate's reason</summary><table>"
    reasons = turn.verdict.get("reasons")
    for reason in reasons if isinstance(reasons, list) else []:
        if isinstance(reason, dict):
            cells = (reason.get("gate"), reason.get("effect"), reason.get("sentence"), reason.get("switch"))
            yield f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"
    yield "</table></details>\n"


def _refusals(turn: Turn) -> Iterator[str]:
    if not turn.refused:
        return
    yield "<table><tr><th>refused</th><th>times</th><th>why</th><th>what would allow it</th></tr>"
    for group in list(turn.refused.values())[:PLACES]:
        first = group.first
        why = first.get("message") or first.get("reason")
        cells = f"<td>{group.count}</td><td>{_text(why)}</td><td><code>{_text(first.get('hint'))}</code></td>"
        yield f'<tr><td class="deny">{_text(_place(first))}</td>{cells}</tr>'
    yield "</table>\n"


def _network(turn: Turn) -> Iterator[str]:
    groups = [group for group in turn.traffic.values() if group.first.get("decision") == "allow"]
    if not groups:
        return
    yield "<table><tr><th>reached</th><th>connections</th><th>bytes up</th><th>bytes down</th><th>rule</th></tr>"
    for group in groups[:PLACES]:
        cells = (group.connections, group.bytes_up, group.bytes_down, group.first.get("rule"))
        yield f"<tr><td>{_text(_place(group.first))}</td>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"
    yield "</table>\n"
    for name, where, place in list(turn.credentials)[:PLACES]:
        yield f"<p>the credential {_text(name)} was put into requests to {_text(where)} ({_text(place)})</p>\n"


def _output(home: Home, turn: Turn) -> Iterator[str]:
    output = (turn.observation or {}).get("output")
    if not isinstance(output, dict):
        return
    # a credential that is cut in two could be half in the page
    text = harmless(redacted(whole_output(home, output, 4 * OUTPUT_LIMIT)))
    if not text:
        yield '<p class="dim">no output</p>\n'
        return
    cut = len(text) - OUTPUT_LIMIT
    more = f'<p class="dim">{cut} characters more are in the session</p>' if cut > 0 else ""
    opened = " open" if len(text) < 4000 else ""
    yield f"<details{opened}><summary>output</summary><pre>{escape(text[:OUTPUT_LIMIT])}</pre>{more}</details>\n"


def _environment(turn: Turn) -> Iterator[str]:
    variables = (turn.exec or {}).get("environment")
    if not isinstance(variables, list) or not variables:
        return
    yield f"<details><summary>{len(variables)} variables</summary><table>"
    for entry in variables[:PLACES]:
        if isinstance(entry, dict):
            value: Any = entry.get("value")
            hidden = f"{entry.get('length')} bytes, fingerprint {entry.get('fingerprint')}"
            shown = f'<span class="dim">{_text(hidden)}</span>'
            if value is not None:
                shown = f"<code>{_text(redacted(str(value)))}</code>"
            yield f"<tr><td>{_text(entry.get('name'))}</td><td>{shown}</td></tr>"
    yield "</table></details>\n"


def _place(record: JsonObject) -> str:
    host, port = record.get("host"), record.get("port")
    if not isinstance(host, str):
        return str(record.get("path") or record.get("gate") or "the command")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _class(word: str) -> str:
    return word if word in ("allow", "ask", "deny") else "dim"


def _text(value: object) -> str:
    """As text of the page, and of its attributes."""
    return "" if value is None else escape(harmless_line(value if isinstance(value, str) else str(value)))

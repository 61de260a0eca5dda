"""What sessions did, for a CI job's summary: as Markdown, as data, and as GitHub's annotations. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from doorward.allowlists.host import MalformedHost
from doorward.allowlists.learning import Seen, learn
from doorward.sessions.traffic import Report, Row
from doorward.summary import place_text, printable

_MOST_ROWS = 50
"""Rows of a table; what is beyond is counted in one line. GitHub takes 1 MiB a step."""

_FEW_ROWS = 15
"""More rows of what was reached are folded away."""

_MOST_HINTS = 10


def data(report: Report) -> dict[str, Any]:
    """The report as JSON values: rows of `refused` and `reached`, `other` refusals, and `rules`, the entries that would
    allow what was refused. `exit_code` is the last command's, `seconds` what all took, `hints` why they failed."""
    return {
        "sessions": list(report.sessions),
        "turns": report.turns,
        "failed": report.failed,
        "seconds": report.seconds,
        "exit_code": report.exit_code,
        "hints": list(report.hints),
        "enforcement": dict(report.weakest),
        "observing": report.observing,
        "refused": [_row(row) for row in report.refused()],
        "reached": [_row(row) for row in report.reached()],
        "other": [{**refusal, "count": count} for refusal, count in report.other],
        "rules": wanted(report),
    }


def wanted(report: Report) -> list[str]:
    """Entries for `network.allow` that would allow what no rule allowed. What a deny refused is not among them."""
    return _entries(report.refused())


def _entries(rows: Iterable[Row]) -> list[str]:
    places = [
        Seen(row.place.host, row.place.rule_port)
        for row in rows
        if row.place.reason in ("not_allowed", "port_not_allowed", "not_answered")
        and row.place.protocol != "udp"
        and (row.reached or not row.place.observed)  # what was let through and never answered tells nothing
    ]
    try:
        return [str(each.entry) for each in learn(places)]
    except MalformedHost:
        return []


def markdown(report: Report) -> str:
    """The summary as GitHub-flavoured Markdown: what was refused and how to allow it first, what was reached last."""
    refused = [row for row in report.refused() if not row.place.observed]
    watched = [row for row in report.refused() if row.place.observed]
    reached, rules = report.reached(), wanted(report)
    lines = [f"## doorward: {_headline(report, refused, watched)}", "", f"{_outcome(report)} {_held(report)}", ""]
    if refused:
        lines += ["### Refused", "", "| host | times | why | asked by |", "|---|---:|---|---|"]
        lines += [
            f"| `{_cell(_place(row))}` | {row.connections} | {_cell(_why(row))}{_how(row)} | {_cell(_asked_by(row))} |"
            for row in refused[:_MOST_ROWS]
        ]
        lines += _beyond(refused)
    if report.other:
        lines += ["### Refused besides", "", "| what | times | why |", "|---|---:|---|"]
        lines += [
            f"| `{_cell(str(each.get('path') or each.get('gate') or each.get('operation') or 'the command'))}` "
            f"| {count} | {_cell(str(each.get('message') or each.get('reason') or ''))}{_allowing(each.get('hint'))} |"
            for each, count in report.other[:_MOST_ROWS]
        ]
        lines.append("")
    if watched:
        lines += ["### Let through, since this run only observed", ""]
        lines += ["| host | connections | sent | received | would be refused, since it | asked by |"]
        lines += ["|---|---:|---:|---:|---|---|"]
        lines += [
            f"| `{_cell(_place(row))}` | {row.connections} | {_size(row.bytes_up)} | {_size(row.bytes_down)} "
            f"| {_cell(_why(row))} | {_cell(_asked_by(row))} |"
            for row in watched[:_MOST_ROWS]
        ]
        lines += _beyond(watched)
    if rules:
        lines += ["### To allow it", "", "```toml", "[network]", "allow = ["]
        lines += [f"  {_toml(entry)}," for entry in rules]
        lines += ["]", "```", ""]
    if report.hints:
        lines += ["### Why it may have failed", "", *(f"- {_cell(hint)}" for hint in report.hints[:_MOST_HINTS]), ""]
    if reached:
        few = len(reached) <= _FEW_ROWS
        lines += ["### Reached", ""] if few else ["<details>", f"<summary>Reached: {len(reached)} places</summary>", ""]
        lines += ["| host | connections | sent | received | rule | asked by |", "|---|---:|---:|---:|---|---|"]
        lines += [
            f"| `{_cell(_place(row))}` | {row.connections} | {_size(row.bytes_up)} | {_size(row.bytes_down)} "
            f"| {_code(row.place.rule)} | {_cell(_asked_by(row))} |"
            for row in reached[:_MOST_ROWS]
        ]
        lines += [*_beyond(reached), *(() if few else ("</details>", ""))]
    return "\n".join(lines)


def workflow_commands(report: Report) -> str:
    """GitHub's workflow commands, one a place: an error where it was refused, a warning where a run only observed."""
    lines = []
    for row in report.refused()[:_MOST_ROWS]:
        level, verb = ("warning", "would refuse") if row.place.observed else ("error", "refused")
        said = _message(f"{_place(row)} {_why(row)}{_hint(row)}")
        lines.append(f"::{level} title=doorward {verb} {_property(_place(row))}::{said}")
    lines += [
        f"::error title=doorward refused the command::{_message(str(each.get('message') or each.get('reason')))}"
        for each, _ in report.other[:_MOST_ROWS]
    ]
    return "".join(f"{line}\n" for line in lines)


def _headline(report: Report, refused: list[Row], watched: list[Row]) -> str:
    times = sum(row.connections for row in refused) + sum(count for _, count in report.other)
    would = sum(row.connections for row in watched)
    said = [f"refused {times} time{'s' if times != 1 else ''}"] if times else []
    if would or (report.observing and not times):
        said.append(f"only observed: {would} connection{'s' if would != 1 else ''} would be refused")
    return "; ".join(said) or "nothing was refused"


def _outcome(report: Report) -> str:
    """What ran and how it ended, and how much went through."""
    if not report.turns:
        ran = "No command has ended."
    elif report.turns == 1:
        status = f", exit status {report.exit_code}" if report.exit_code is not None else ""
        ran = f"One command{status}, {_time(report.seconds)}."
    else:
        failed = f"{report.failed} of them failed" if report.failed else "none failed"
        ran = f"{report.turns} commands, {failed}, {_time(report.seconds)} together."
    passed = [row for row in report.rows if row.place.decision == "allow" and row.reached]
    if not passed:
        return f"{ran} Nothing was reached."
    places = len({(row.place.host, row.place.port) for row in passed})
    up, down = sum(row.bytes_up for row in passed), sum(row.bytes_down for row in passed)
    return f"{ran} {places} place{'s' if places != 1 else ''} reached, {_size(up)} sent, {_size(down)} received."


_LAYERS = {"filesystem": "files", "network": "network", "process": "processes", "syscalls": "system calls"}


def _held(report: Report) -> str:
    """What held it in; a warning where that is less than everything."""
    weak = {layer: held for layer, held in report.weakest.items() if held != "kernel"}
    if weak:
        shown = ", ".join(f"{layer} {held}" for layer, held in sorted(weak.items()))
        return f"**Not all of it was enforced by the kernel**: {shown}."
    if not report.weakest:
        return "Nothing was started."
    return f"Held in by the kernel: {', '.join(_LAYERS.get(layer, layer) for layer in report.weakest)}."


def _how(row: Row) -> str:
    """What would allow it, where that is not among the lines to paste and no rule says no."""
    if row.place.reason in ("denied", "not_allowed", "port_not_allowed", "not_answered"):
        return ""
    return _allowing(row.hint)


def _allowing(hint: object) -> str:
    return f"; to allow it: {_code(hint)}" if isinstance(hint, str) and hint else ""


def _toml(entry: str) -> str:
    import json

    return json.dumps(entry, ensure_ascii=False)


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes} min {left} s"


def _row(row: Row) -> dict[str, Any]:
    place = row.place
    return {
        "host": place.host, "port": place.port, "decision": place.decision, "reason": place.reason,
        "observed": place.observed, "rule": place.rule, "hint": row.hint, "connections": row.connections,
        "requests": row.requests, "bytes_up": row.bytes_up, "bytes_down": row.bytes_down, "failed": row.failed,
        "first_seen": row.first_seen, "last_seen": row.last_seen, "sessions": [*row.sessions],
        "processes": [*row.processes], "methods": [*row.methods],
    }  # fmt: skip


def _place(row: Row) -> str:
    return place_text(row.place.host, row.place.port)


_WHY = {
    "not_allowed": "is in no allow rule",
    "not_allowed_local": "is a local address that no rule opens",
    "port_not_allowed": "is allowed on other ports only",
    "denied": "is denied",
    "method_not_allowed": "is allowed for other methods only",
    "path_not_allowed": "is allowed for other paths only",
    "mitm_required": "has a rule about requests, which a tunnel hides",
    "name_mismatch": "was asked for under another name than was used",
    "not_answered": "was asked about, and nobody said yes",
}


def _why(row: Row) -> str:
    why = _WHY.get(row.place.reason, row.place.reason)
    if row.place.decision == "allow" and not row.reached:
        why += "; it could not be reached"
    return f"{why} by the rule {row.place.rule}" if row.place.rule and row.place.reason == "denied" else why


def _hint(row: Row) -> str:
    """What would allow it. What passed since a run only observed has no refusal that says so."""
    hint = row.hint
    if row.place.observed and not hint and (entries := _entries([row])):
        hint = f"--allow {entries[0]}"
    return f"; to allow it: {hint}" if hint else ""


def _asked_by(row: Row) -> str:
    return ", ".join([*row.processes][:4])


def _code(text: str | None) -> str:
    return f"`{_cell(text)}`" if text else ""


def _cell(text: str) -> str:
    """For a table of Markdown: nothing in it is markup, and nothing ends the cell."""
    return printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'").replace("<", "&lt;")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _message(text: str) -> str:
    """As GitHub escapes what stands behind `::` (its documentation of workflow commands)."""
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _beyond(rows: Iterable[Row]) -> list[str]:
    left = len(list(rows)) - _MOST_ROWS
    return [f"and {left} more", ""] if left > 0 else [""]

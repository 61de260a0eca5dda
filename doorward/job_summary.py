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


def data(report: Report) -> dict[str, Any]:
    """The report as JSON values: rows of `refused` and `reached`, `other` refusals, and `rules`, the entries that would
    allow what was refused."""
    return {
        "sessions": list(report.sessions),
        "turns": report.turns,
        "failed": report.failed,
        "enforcement": dict(report.weakest),
        "observing": report.observing,
        "refused": [_row(row) for row in report.refused()],
        "reached": [_row(row) for row in report.reached()],
        "other": [{**refusal, "count": count} for refusal, count in report.other],
        "rules": wanted(report),
    }


def wanted(report: Report) -> list[str]:
    """Entries for `network.allow` that would allow what no rule allowed. What a deny refused is not among them."""
    places = [
        Seen(row.place.host, row.place.rule_port)
        for row in report.refused()
        if row.place.reason in ("not_allowed", "port_not_allowed", "not_answered") and row.place.protocol != "udp"
    ]
    try:
        return [str(each.entry) for each in learn(places)]
    except MalformedHost:
        return []


def markdown(report: Report) -> str:
    """The summary as GitHub-flavoured Markdown."""
    refused, reached = report.refused(), report.reached()
    lines = [f"## doorward: {_headline(report, refused)}", ""]
    weak = {layer: held for layer, held in report.weakest.items() if held != "kernel"}
    if weak:
        shown = ", ".join(f"{layer} {held}" for layer, held in sorted(weak.items()))
        lines += [f"**Not all of it was enforced by the kernel**: {shown}.", ""]
    if report.observing:
        lines += ["**Observed, not enforced**: what stands under “would be refused” was let through.", ""]
    if refused:
        title = "Would be refused" if report.observing else "Refused"
        lines += [f"### {title}", "", "| host | times | why | asked by |", "|---|---:|---|---|"]
        lines += [
            f"| `{_cell(_place(row))}` | {row.connections} | {_cell(_why(row))} | {_cell(_asked_by(row))} |"
            for row in refused[:_MOST_ROWS]
        ]
        lines += _beyond(refused)
    if report.other:
        lines += ["### Refused besides", "", "| what | times | why |", "|---|---:|---|"]
        lines += [
            f"| `{_cell(str(each.get('path') or each.get('gate') or each.get('operation') or 'the command'))}` "
            f"| {count} | {_cell(str(each.get('message') or each.get('reason') or ''))} |"
            for each, count in report.other[:_MOST_ROWS]
        ]
        lines.append("")
    if reached:
        lines += ["### Reached", ""]
        lines += ["| host | connections | sent | received | rule | asked by |", "|---|---:|---:|---:|---|---|"]
        lines += [
            f"| `{_cell(_place(row))}` | {row.connections} | {_size(row.bytes_up)} | {_size(row.bytes_down)} "
            f"| {_code(row.place.rule)} | {_cell(_asked_by(row))} |"
            for row in reached[:_MOST_ROWS]
        ]
        lines += _beyond(reached)
    rules = wanted(report)
    if rules:
        lines += ["### To allow what was refused", "", "```toml", "[network]", "allow = ["]
        lines += [f'  "{entry}",' for entry in rules]
        lines += ["]", "```", ""]
    return "\n".join(lines)


def workflow_commands(report: Report) -> str:
    """GitHub's workflow commands, one a refused place: a warning where a run only observed, else an error."""
    level = "warning" if report.observing else "error"
    lines = []
    for row in report.refused()[:_MOST_ROWS]:
        said = _message(f"{_place(row)} {_why(row)}{_hint(row)}")
        lines.append(f"::{level} title=doorward refused {_property(_place(row))}::{said}")
    lines += [
        f"::{level} title=doorward refused the command::{_message(str(each.get('message') or each.get('reason')))}"
        for each, _ in report.other[:_MOST_ROWS]
    ]
    return "".join(f"{line}\n" for line in lines)


def _headline(report: Report, refused: list[Row]) -> str:
    times = sum(row.connections for row in refused) + sum(count for _, count in report.other)
    if not times:
        return "nothing was refused"
    word = "would have been refused" if report.observing else "refused"
    return f"{word} {times} time{'s' if times != 1 else ''}"


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
    return f"{why} by the rule {row.place.rule}" if row.place.rule and row.place.reason == "denied" else why


def _hint(row: Row) -> str:
    return f"; to allow it: {row.hint}" if row.hint else ""


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

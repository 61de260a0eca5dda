"""The rows of bench/network.py and its two tables: absolute figures, and ratios beside what doorward aims at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from network_proxies import HOST, INSIDE
from network_works import IDLE, WORKS, Figure, Work
from timing import columns

DECISION = "rule decision among 100,000"


class Row(NamedTuple):
    """One line of the JSON file. `cpu_s`: the proxy's CPU seconds for each `each`. `value` None: `why` says why not."""

    proxy: str
    where: str
    work: str
    value: float | None
    unit: str
    cpu_s: float | None = None
    each: str | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    why: str | None = None
    rounds: tuple[Figure, ...] = ()

    @property
    def column(self) -> str:
        """The heading of the table that this row stands under."""
        return self.proxy if self.where == HOST else f"{self.proxy} inside"


class Target(NamedTuple):
    """What doorward aims at: `figure` of `work` (value or cpu_s), as a ratio to a peer's or, without one, by itself."""

    work: str
    figure: str
    where: str
    peer: str | None
    at_least: bool
    bound: float


TARGETS = (
    *(Target(work, "value", HOST, "squid", True, 1.3) for work in ("1 stream", "32 streams")),
    *(Target(work, "cpu_s", HOST, "squid", False, 0.35) for work in ("1 stream", "32 streams")),
    *(Target(work, "value", INSIDE, "srt", True, 8) for work in ("1 stream", "32 streams")),
    Target("new tunnels, 16 at a time", "value", HOST, "squid", True, 1),
    Target("new tunnels, 16 at a time", "value", HOST, "nono-py", True, 0.9),
    *(Target("plain requests, 16 connections kept", "value", where, "srt", True, 6) for where in (HOST, INSIDE)),
    Target(DECISION, "value", HOST, None, False, 5),
    Target(IDLE, "value", HOST, None, False, 30),
)


def row(proxy: str, where: str, work: Work, figures: Sequence[Figure]) -> Row:
    """The medians of all rounds."""
    cpu = [figure.cpu_s for figure in figures if figure.cpu_s is not None]
    return Row(
        *(proxy, where, work.name, median(figure.value for figure in figures), work.unit),
        *(median(cpu) if cpu else None, work.each),
        *(median(figure.p50_ms for figure in figures), median(figure.p99_ms for figure in figures)),
        rounds=tuple(figures),
    )


def absolute(rows: Sequence[Row]) -> str:
    """One column a proxy; the lines are the works with their CPU time."""
    heads = [column for column in _columns() if any(each.column == column for each in rows)]
    lines = [["", *heads]]
    for work in WORKS:
        own = {each.column: each for each in rows if each.work == work.name and each.value is not None}
        lines.append([f"{work.name}, {work.unit}", *(_figure(own.get(head), "value") for head in heads)])
        if work.kind == "stream":
            lines.append(["  CPU s/GB", *(_figure(own.get(head), "cpu_s") for head in heads)])
            continue
        lines.append([f"  CPU µs/{work.each}", *(_figure(own.get(head), "cpu_s", 1e6) for head in heads)])
        times = [own.get(head) for head in heads]
        lines.append(["  p50/p99 ms", *("–" if r is None else f"{r.p50_ms:.2f}/{r.p99_ms:.1f}" for r in times)])
    for name, unit in ((IDLE, "kB each"), (DECISION, "µs")):
        own = {each.column: each for each in rows if each.work == name}
        if own:
            lines.append([f"{name}, {unit}", *(_figure(own.get(head), "value") for head in heads)])
    return columns(lines)


def ratios(rows: Sequence[Row]) -> str:
    """doorward against squid and srt, work by work."""
    lines = [["doorward's ratio to", "squid", "  CPU", "srt", "  CPU", "srt inside", "  CPU"]]
    for work in WORKS:
        line = [work.name]
        for peer, where in (("squid", HOST), ("srt", HOST), ("srt", INSIDE)):
            for figure in ("value", "cpu_s"):
                ratio = _ratio(rows, work.name, figure, where, peer)
                line.append("–" if ratio is None else f"{ratio:.2f}")
        lines.append(line)
    return columns(lines)


def targets(rows: Sequence[Row]) -> str:
    """Each target, what was measured, and whether it holds."""
    lines = [["target", "measured", "aim", ""]]
    for target in TARGETS:
        if target.peer is None:
            found = _find(rows, target.work, "doorward", target.where)
            measured = None if found is None else found.value
            unit = "" if found is None else f" {found.unit}"
            what = target.work
        else:
            measured, unit = _ratio(rows, target.work, target.figure, target.where, target.peer), "×"
            what = f"{target.work}: {'CPU' if target.figure == 'cpu_s' else 'rate'} to {target.peer}"
            what += " inside" if target.where == INSIDE else ""
        aim = f"{'≥' if target.at_least else '≤'} {target.bound:g}{unit}"
        if measured is None:
            lines.append([what, "not measured", aim, ""])
            continue
        holds = measured >= target.bound if target.at_least else measured <= target.bound
        lines.append([what, f"{measured:.2f}{unit}", aim, "holds" if holds else "MISSED"])
    return columns(lines)


def document(rows: Iterable[Row]) -> str:
    """A JSON array with one object a row, each on a line of its own; what a row has not is left out."""
    always = ("proxy", "where", "work", "value", "unit", "cpu_s")
    objects = ({k: v for k, v in _fields(each).items() if k in always or v} for each in rows)
    return "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in objects) + "\n]\n"


def _fields(row: Row) -> dict[str, object]:
    return {**row._asdict(), "rounds": [figure._asdict() for figure in row.rounds]}


def _columns() -> list[str]:
    names = ("direct", "doorward", "squid", "tinyproxy", "mitmproxy", "srt", "nono-py", "doorward inside", "srt inside")
    return [*names]


def _find(rows: Sequence[Row], work: str, proxy: str, where: str) -> Row | None:
    return next((each for each in rows if (each.work, each.proxy, each.where) == (work, proxy, where)), None)


def _ratio(rows: Sequence[Row], work: str, figure: str, where: str, peer: str) -> float | None:
    """The median of the rounds' ratios: what else the machine did fell on both of a round."""
    ours, theirs = (_find(rows, work, name, where) for name in ("doorward", peer))
    if ours is None or theirs is None:
        return None
    pairs = [(getattr(a, figure), getattr(b, figure)) for a, b in zip(ours.rounds, theirs.rounds, strict=False)]
    known = [a / b for a, b in pairs if a is not None and b]
    return median(known) if known else None


def _figure(row: Row | None, figure: str, scale: float = 1.0) -> str:
    value = None if row is None else getattr(row, figure)
    if value is None:
        return "–"
    value *= scale
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"

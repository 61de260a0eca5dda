"""The text of one TOML array, with entries put in and taken out: comments, order and the hand it was written in stay.

The text has been read by a TOML parser before, so this follows the grammar (toml.io/en/v1.0.0) without checking it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from doorward.named_tuple import NamedTuple

_TOKEN: Final = re.compile(
    r'(?P<comment>#[^\n]*)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<comma>,)|(?P<blank>\s+)'
    r'|"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'" r"|[^\s#,\[\]{}\"']+",
    re.DOTALL,
)  # fmt: skip
_REST_OF_LINE: Final = re.compile(r"[ \t]*,?[ \t]*(?:#[^\n]*)?\r?\n")


class _Value(NamedTuple):
    """Where an entry begins and ends, and where the comma behind it is (None behind the last one)."""

    start: int
    end: int
    comma: int | None


def with_entries(array: str, entries: Sequence[str]) -> str:
    """The array with `entries`, each a TOML value, at its end: each on a line of its own if the array has lines."""
    values = _values(array)
    last = values[-1] if values else None
    if last is None:
        before, rest = "[", array[1:-1]
    elif last.comma is None:
        before, rest = f"{array[: last.end]},", array[last.end : -1]
    else:
        before, rest = array[: last.comma + 1], array[last.comma + 1 : -1]
    ended = "," if last is not None and last.comma is not None else ""
    if "\n" not in array:
        gap = " " if last is not None else ""
        return f"{before}{gap}{', '.join(entries)}{ended}{rest}]"
    told = rest.rstrip()  # comments
    closing = rest[len(told) :]
    if last is None:
        ended = ","
    line = "\n" + _indent(array, values)
    return f"{before}{told}{line}{f',{line}'.join(entries)}{ended}{closing}]"


def without_entry(array: str, place: int) -> str:
    """The array without its entry number `place` (from 0), nor the comment on the same line if it stands alone."""
    values = _values(array)
    value = values[place]
    line = array.rfind("\n", 0, value.start) + 1
    rest = _REST_OF_LINE.match(array, value.end)
    if line and not array[line : value.start].strip() and rest is not None:
        start, end = line, rest.end()
    else:
        start, end = value.start, value.end
        if value.comma is not None and not array[end : value.comma].strip():
            end = value.comma + 1
            end += len(array[end:]) - len(array[end:].lstrip(" \t"))
    pieces = [(start, end)]
    if value.comma is not None and not start <= value.comma < end:
        pieces.append((value.comma, value.comma + 1))
    elif value.comma is None and place and start == value.start:
        before = values[place - 1]
        assert before.comma is not None
        if array[before.comma + 1 : start].strip():  # a comment stands between
            pieces.append((before.comma, before.comma + 1))
        else:
            pieces = [(before.comma, end)]
    for start, end in sorted(pieces, reverse=True):
        array = array[:start] + array[end:]
    return array


def _values(array: str) -> list[_Value]:
    values: list[_Value] = []
    depth = 0
    start = end = -1
    for token in _TOKEN.finditer(array):
        kind = token.lastgroup
        if kind == "close":
            depth -= 1
        if depth == 1 and kind == "comma":
            values.append(_Value(start, end, token.start()))
            start = -1
        elif depth >= 1 and kind not in {"comment", "blank"}:
            if start < 0:
                start = token.start()
            end = token.end()
        if kind == "open":
            depth += 1
    if start >= 0:
        values.append(_Value(start, end, None))
    return values


def _indent(array: str, values: Sequence[_Value]) -> str:
    """What stands before the last entry that begins a line."""
    for value in reversed(values):
        line = array.rfind("\n", 0, value.start) + 1
        if line and not array[line : value.start].strip():
            return array[line : value.start]
    return "    "

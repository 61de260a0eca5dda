"""Finds where a rollout stands from its end, so that appending to a big file does not read it.

Read backwards: the last record that has an ordinal, the last that ends in a link, and the totals in its metadata.
Lines that cannot be read are passed over, never taken for the end: numbers go on from what physically stands there.
"""

import os
from collections.abc import Iterator

from doorward.named_tuple import NamedTuple
from doorward.sessions import chain
from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.decoding import decoded
from doorward.sessions.items import advanced
from doorward.sessions.line import Line, Totals, totals_from
from doorward.sessions.long_line import summarised

CHUNK = 65536
LOAD_LIMIT = 1 << 20
"""Bytes; a longer line is judged by its first and last bytes."""
SEARCH_LIMIT = 4 << 20
"""Bytes of unlinked lines that are read backwards before the file is read once from its start instead."""


class Tail(NamedTuple):
    """Where to go on."""

    ordinal: int | None
    """The last one in the file."""
    chain: str
    """The digits of the last link; zeros when there is none."""
    linked_end: int
    """Offset just after the LF of the last linked line (also when that LF is still missing); 0 without one."""
    totals: Totals
    unnumbered: int
    """Good records after the last one with an ordinal."""
    damaged: int
    """Lines after the last linked one that cannot be read, a torn tail included."""

    @property
    def next_ordinal(self) -> int:
        """Each good record takes one number, also one that another writer left unnumbered."""
        return (-1 if self.ordinal is None else self.ordinal) + self.unnumbered + 1


def read_tail(descriptor: int, size: int) -> Tail:
    """The tail of the open file of `size` bytes. OSError passes through."""
    return tail_within(descriptor, size, SEARCH_LIMIT) or _from_the_start(descriptor, size)


def tail_within(descriptor: int, size: int, search_limit: int) -> Tail | None:
    """The same, or None when no linked line is among the last `search_limit` bytes (and the file is longer)."""
    later: list[Line] = []
    ordinal: int | None = None
    damaged = unnumbered = searched = 0
    for start, end in _lines_backwards(descriptor, size):
        if end == start:
            continue
        line, digits = _read(descriptor, start, end, ended=end < size)
        if isinstance(line, Damage):
            damaged += 1
        else:
            if ordinal is None:
                ordinal = line.ordinal
                unnumbered += line.ordinal is None
            totals = totals_from(line.metadata) if digits else None
            if digits and totals is not None and ordinal is not None:
                for after in reversed(later):
                    totals = advanced(totals, after.type, after.payload)
                return Tail(ordinal, digits, end + 1, totals, unnumbered, damaged)
            later.append(line)
        searched += end - start
        if searched > search_limit:
            return None
    totals = Totals()
    for after in reversed(later):
        totals = advanced(totals, after.type, after.payload)
    return Tail(ordinal, chain.NOTHING_BEFORE, 0, totals, unnumbered, damaged)


def _read(descriptor: int, start: int, end: int, *, ended: bool) -> tuple[Line | Damage, str | None]:
    length = end - start
    if length <= LOAD_LIMIT:
        data = os.pread(descriptor, length, start)
        link = chain.split(data)
        return decoded(data, number=0, offset=start, ended=ended), link[1] if link else None
    line = summarised(descriptor, number=0, offset=start, length=length)
    if line is None:
        return Damage(DamageKind.TOO_LONG, 0, start, length, "too long to be loaded"), None
    digits = line.metadata.get("chain")
    return line, digits if isinstance(digits, str) else None


def _lines_backwards(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Start and end (LF left out) of each line, the last first."""
    end = size
    position = size
    while position > 0:
        start = max(0, position - CHUNK)
        data = os.pread(descriptor, position - start, start)
        at = len(data)
        while (at := data.rfind(b"\n", 0, at)) >= 0:
            if start + at + 1 < end or end != size:
                yield start + at + 1, end
            end = start + at
        position = start
    if size:
        yield 0, end


def _from_the_start(descriptor: int, size: int) -> Tail:
    """The same, for a file whose end is a long stretch without links (written by another program)."""
    from doorward.sessions.reading import lines_of  # only foreign files need the forward reader

    ordinal: int | None = None
    digits, linked_end, totals = chain.NOTHING_BEFORE, 0, Totals()
    damaged = unnumbered = 0
    for line in lines_of(descriptor, size):
        if isinstance(line, Damage):
            damaged += 1
            continue
        if line.ordinal is None:
            unnumbered += 1
        else:
            ordinal, unnumbered = line.ordinal, 0
        own = totals_from(line.metadata)
        totals = own or advanced(totals, line.type, line.payload)
        link = line.metadata.get("chain")
        if own is not None and isinstance(link, str):
            digits, linked_end, damaged = link, line.offset + line.length + 1, 0
    return Tail(ordinal, digits, linked_end, totals, unnumbered, damaged)

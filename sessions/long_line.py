"""What can be told of a record that is too long to load, from its first and its last bytes alone."""

import json
import os
import re
from typing import Any

from doorward.sessions import chain
from doorward.sessions.line import Line

_HEAD_BYTES = 4096
# As doorward and Codex both begin a line; Codex leaves `ordinal` out in its legacy mode.
_HEAD = re.compile(rb'\{"timestamp":"([0-9TZ:.+-]*)",(?:"ordinal":([0-9]{1,18}),)?"type":"([a-z_]{1,64})","payload":\{')


def ends(descriptor: int, offset: int, length: int) -> tuple[bytes, bytes]:
    """The first and the last bytes of a line of `length` bytes (its LF not counted). OSError passes through."""
    tail = min(length, chain.METADATA_LIMIT)
    head = os.pread(descriptor, min(length, _HEAD_BYTES), offset)
    return head, os.pread(descriptor, tail, offset + length - tail)


def summarised(descriptor: int, *, number: int, offset: int, length: int) -> Line | None:
    """A line that is not `whole`, or None when it does not begin and end as a record does."""
    head, ending = ends(descriptor, offset, length)
    ending = ending.rstrip(b" \t\r")
    start = _HEAD.match(head)
    if start is None or not ending.endswith(b"}"):
        return None
    metadata: dict[str, Any] = {}
    ours = chain.metadata_at_end(ending)
    if ours is not None:
        try:
            metadata = json.loads(ours)
        except (ValueError, RecursionError):
            return None
    return Line(
        start[3].decode("ascii"),
        {"omitted_bytes": length},
        start[1].decode("ascii"),
        int(start[2]) if start[2] else None,
        metadata,
        number,
        offset,
        length,
        whole=False,
    )

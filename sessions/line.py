"""The values that reading and writing a rollout give: a line, and the running totals of a session.

One line of a rollout is one JSON object, its keys in this order, ended by LF:

    {"timestamp": "2025-11-29T23:41:00.123Z", "ordinal": 7, "type": "exec", "payload": {…},
     "metadata": {"turn": 1, "open": true, "refused": 0, "name"?: "…", "unchained"?: {…}, "chain": "<64 hex digits>"}}

- `timestamp`: UTC, milliseconds. A clock may go back; order is told by `ordinal` alone.
- `ordinal`: 0 for the first record, then one more for each.
- `metadata`: written by `rollout.py`, never by a caller. `turn`, `open`, `refused` and `name` are the session's
  running totals *after* this record, so that the last line alone answers what a listing asks.
  `unchained` and `chain` are explained in `chain.py`.
"""

from __future__ import annotations

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import MappingProxyType
    from typing import Any

    JsonObject = Mapping[str, Any]
else:
    JsonObject = dict
    MappingProxyType = type(type.__dict__)  # as `types` has it, which would be one more module


class Line(NamedTuple):
    """One good record."""

    type: str
    payload: JsonObject
    timestamp: str = ""
    """As stored; empty when the record has none."""
    ordinal: int | None = None
    """None in records of other writers that do not number them."""
    metadata: JsonObject = MappingProxyType({})
    number: int | None = None
    """Which line of the file, counted from 1; None for a line just written (the writer does not count)."""
    offset: int = 0
    """Bytes from the start of the file."""
    length: int = 0
    """Bytes, the ending LF not counted."""
    whole: bool = True
    """False when the record was too long to load: then `payload` is `{"omitted_bytes": length}`."""

    @property
    def turn(self) -> int | None:
        """The turn that the record says it belongs to."""
        turn = self.payload.get("turn")
        return turn if isinstance(turn, int) else None


class Totals(NamedTuple):
    """What a session amounts to so far."""

    turn: int = 0
    """The highest turn number used; turns count from 1."""
    open: bool = False
    """Whether that turn has started and not ended."""
    refused: int = 0
    """How many refusals are recorded."""
    name: str | None = None
    """The name a rename gave; None while the one in `session_meta` holds."""


def totals_from(metadata: JsonObject) -> Totals | None:
    """The totals in a record's metadata, or None when it is not one of ours."""
    turn, is_open, refused = metadata.get("turn"), metadata.get("open"), metadata.get("refused")
    if not isinstance(turn, int) or not isinstance(is_open, bool) or not isinstance(refused, int):
        return None
    name = metadata.get("name")
    return Totals(turn, is_open, refused, name if isinstance(name, str) else None)

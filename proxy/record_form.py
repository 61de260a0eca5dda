"""A record of which all is ready but a few strings, for many records that differ in nothing else.

The supervisor is told a form once (`Control`), and of each record only the strings; it need not read the rest again.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

HOLE: Final = "\x01"
"""Where a string goes. JSON holds no such character (RFC 8259 §7)."""

PLAIN: Final = b"abcdefghijklmnopqrstuvwxyz0123456789_-.:"
"""What the strings are made of: names, addresses, numbers. Nothing of it means anything in JSON."""


class Form:
    """`text` holds for each item a tab, its type, a tab, and its payload as JSON; holes stand in strings, and in no
    key. `slot` is where the supervisor keeps it, or -1; `used`: a record was made of it."""

    __slots__ = ("slot", "text", "used")

    ROOM: Final = 64  # forms that the supervisor keeps at once

    def __init__(self, text: str) -> None:
        self.text = text
        self.slot = -1
        self.used = False

    def filled(self, strings: Sequence[str]) -> str:
        """The text with a string in each hole, in their order."""
        first, *rest = self.text.split(HOLE)
        return first + "".join([string + text for string, text in zip(strings, rest, strict=True)])

"""Takes credentials out of a stream before anything of it is kept: whole lines at a time, private keys as one piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from doorward.sessions.credentials import opens_key, redacted

HELD_LIMIT = 1 << 18
"""Bytes that are held back for the end of a line, or of a private key; what is longer is let go piece by piece."""

Stream = Literal["stdout", "stderr"]


class Redacting:
    """Both streams of one command, each with what is held back of it."""

    def __init__(self) -> None:
        self._held: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    def feed(self, stream: Stream, data: bytes) -> bytes:
        """What can be kept now, credentials taken out."""
        data = self._held[stream] + data
        cut = data.rfind(b"\n") + 1
        if cut and opens_key(_text(data[:cut])):
            cut = 0
        if not cut and len(data) > HELD_LIMIT:
            cut = len(data)
        self._held[stream] = data[cut:]
        return _bytes(redacted(_text(data[:cut]))) if cut else b""

    def rest(self) -> Iterator[tuple[Stream, bytes]]:
        """What was still held back, at the end."""
        for stream, data in self._held.items():
            if data:
                self._held[stream] = b""
                yield stream, _bytes(redacted(_text(data)))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")

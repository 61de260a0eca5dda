"""Zstandard, from whichever library this Python has: `compression.zstd` from 3.14 on, else the `zstandard` package.

Imported only by what compresses or reads what was compressed; a run with little output never does.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any, Protocol

LEVEL = 3
"""Rollouts and outputs are text: higher levels cost several times the CPU for a few per cent."""
CHUNK = 1 << 20
WINDOW_LOG_MAX = 27
"""A frame may ask for 2**27 bytes of memory at most (RFC 8878 §3.1.1.1.2 lets decoders set a limit)."""


class Compressor(Protocol):
    """One frame, in pieces."""

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        """What is ready of it."""

    def flush(self) -> bytes:
        """The rest, and the end of the frame."""


class BadFrame(Exception):
    """The bytes are no zstd frame, or not a whole one. The text reads on after the file's name."""


def compressor() -> Compressor:
    """For one frame."""
    if sys.version_info >= (3, 14):
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        made: Any = zstd.ZstdCompressor(LEVEL)
    else:
        import zstandard

        made = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
    return made


def decompressed(descriptor: int) -> Iterator[bytes]:
    """The plain bytes of the open file from where it stands, frame after frame. Raises BadFrame; OSError passes."""
    make, error = _decompressor()
    frame = make()
    whole = True
    try:
        while data := os.read(descriptor, CHUNK):
            while data:
                whole = False
                if plain := frame.decompress(data):
                    yield plain
                data = b""
                if frame.eof:
                    data, whole = frame.unused_data, True
                    frame = make()
    except error as found:
        raise BadFrame(f"is not readable as zstd: {found}") from found
    if not whole:
        raise BadFrame("ends inside its zstd frame")


def _decompressor() -> tuple[Any, type[Exception]]:
    if sys.version_info >= (3, 14):
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        options = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG_MAX}
        return (lambda: zstd.ZstdDecompressor(options=options)), zstd.ZstdError
    import zstandard

    # without read_across_frames an object is one frame's, like compression.zstd's
    return zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG_MAX).decompressobj, zstandard.ZstdError

"""Reads a rollout from its start, whatever is in it: good lines are always given, each bad one is reported by itself.

- Lines end at LF and nowhere else: U+2028, U+2029, U+0085 and carriage returns inside a record are text.
- A byte-order mark at the start, CRLF endings and blank lines are passed over.
- Memory is bounded: a line over LINE_LIMIT is not loaded, only its first and last bytes are looked at.
- The file is never written to.
"""

import os
from collections.abc import Iterator

from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.decoding import decoded
from doorward.sessions.home import StoreError
from doorward.sessions.line import Line
from doorward.sessions.long_line import summarised
from doorward.sessions.stored_file import open_stored

LINE_LIMIT = 16 << 20
"""Bytes; parsing takes a few times that in memory."""
_CHUNK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"


def read_lines(path: str, *, limit: int = LINE_LIMIT) -> Iterator[Line | Damage]:
    """Every record and every damaged line of the file, in order. Raises StoreError when it cannot be opened or read.

    A file that is being written is read up to where it ended when it was opened.
    """
    descriptor = open_stored(path)
    try:
        yield from lines_of(descriptor, os.fstat(descriptor).st_size, limit=limit)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def lines_of(descriptor: int, size: int, *, limit: int = LINE_LIMIT, start: int = 0) -> Iterator[Line | Damage]:
    """The same for the first `size` bytes of an open file, from `start` on (where a line starts). OSError passes."""
    number = 0
    for offset, data, length, ended in raw_lines(descriptor, size, limit=limit, start=start):
        number += 1
        if data is None:
            yield _long(descriptor, offset, length, number)
            continue
        if offset == 0 and data.startswith(_BYTE_ORDER_MARK):
            offset, data, length = 3, data[3:], length - 3
        if data.strip(_BLANKS):
            yield decoded(data, number=number, offset=offset, ended=ended)


def raw_lines(
    descriptor: int, size: int, *, limit: int = LINE_LIMIT, start: int = 0
) -> Iterator[tuple[int, bytes | None, int, bool]]:
    """(offset, bytes, length, ended by LF) of each line from `start` on, LF left out; no bytes past `limit`."""
    position = start
    pending = bytearray()
    while position < size:
        block = os.pread(descriptor, min(_CHUNK, size - position), position)
        if not block:
            break
        at = 0
        while (end := block.find(b"\n", at)) >= 0:
            length = position + end - start
            if pending or length > limit:
                pending += block[at:end]
                data = bytes(pending) if length <= limit else None
                pending = bytearray()
            else:
                data = block[at:end]
            yield start, data, length, True
            start, at = position + end + 1, end + 1
        position += len(block)
        if position - start <= limit:
            pending += block[at:]
        else:
            pending = bytearray()
    if start < position:
        length = position - start
        yield start, bytes(pending) if length <= limit else None, length, False


def _long(descriptor: int, start: int, length: int, number: int) -> Line | Damage:
    line = summarised(descriptor, number=number, offset=start, length=length)
    return line or Damage(DamageKind.TOO_LONG, number, start, length, "too long to be loaded")


def stored_bytes(path: str) -> Iterator[bytes | Damage]:
    """The good lines exactly as they are stored, each with its LF, in pieces of bounded size; damaged ones between.

    A last line without LF gets none. Raises StoreError.
    """
    descriptor = open_stored(path)
    try:
        yield from stored_of(descriptor, os.fstat(descriptor).st_size)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def stored_of(descriptor: int, size: int) -> Iterator[bytes | Damage]:
    """The same for the first `size` bytes of an open file. OSError passes through."""
    for line in lines_of(descriptor, size):
        if isinstance(line, Damage):
            yield line
            continue
        position, end = line.offset, min(line.offset + line.length + 1, size)
        while position < end and (piece := os.pread(descriptor, min(_CHUNK, end - position), position)):
            yield piece
            position += len(piece)

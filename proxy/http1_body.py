"""Takes the framing off an HTTP/1 body, by length or by chunks.

Our own and not llhttp's, for one reason: it must be known at which byte the body ends. The fuzz harness holds it
against llhttp: what is accepted here, llhttp accepts with the same content. A chunk is `size[;extension] CRLF data
CRLF`, with one to sixteen hex digits and no blanks (RFC 9112 §7.1); any two other bytes after the data end the message.
Extensions must be well formed and are dropped. Trailers are fields of their own, never headers.
"""

from __future__ import annotations

from doorward.plain_enum import IntEnum
from doorward.proxy.http1_head import check_unfinished_lines
from doorward.proxy.http1_message import BadMessage, Body, BodyEvent, End, Trailers
from doorward.proxy.limits import Limits
from doorward.typing_names import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUOTED: Final = rb'"(?:[\t !#-\[\]-~]|\\[\t -~])*"'
_HEX: Final = b"0123456789abcdefABCDEF"
_LONGEST_SIZE: Final = 16  # digits
# Nearly every chunk line is digits alone, which needs no pattern; so these are compiled when they are first needed.
_CHUNK_LINE: Final = rb"([0-9A-Fa-f]{1,16})(?:;" + _TOKEN + rb"(?:=(?:" + _TOKEN + rb"|" + _QUOTED + rb"))?)*\r\n"
_CHUNK_LINE_START: Final = rb"[0-9A-Fa-f]{1,16}(?:;[\t -~]*)?\r?"  # while its end is not there yet
_FIELD: Final = rb"(" + _TOKEN + rb"):[\t ]*([\t -~\x80-\xff]*)"  # of trailers


class BodyDecoder(Protocol):
    """`take` reads from `buffer` at `position`, appends events, and returns how far it came.

    What it leaves is to be given again with more behind it. `done` after End; raises BadMessage."""

    done: bool

    def take(self, buffer: bytes, position: int, events: list[BodyEvent]) -> int: ...


def _is_size(digits: bytes) -> bool:
    return 0 < len(digits) <= _LONGEST_SIZE and not digits.translate(None, _HEX)


def _read_chunk_line(buffer: bytes, position: int) -> tuple[int, int]:
    """The size that the line at `position` says, and where the line ends; (0, -1) if it is no whole one."""
    end = buffer.find(b"\r\n", position, position + _LONGEST_SIZE + 2)
    digits = buffer[position:end] if end >= 0 else b""
    if _is_size(digits):
        return int(digits, 16), end + 2
    if buffer.find(b"\r\n", position) < 0:
        return 0, -1
    import re

    line = re.compile(_CHUNK_LINE).match(buffer, position)
    return (0, -1) if line is None else (int(line[1], 16), line.end())


class LengthBody:
    """A body of exactly `length` bytes, more than none."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = False

    def take(self, buffer: bytes, position: int, events: list[BodyEvent]) -> int:
        piece = buffer[position : position + self._left]
        if piece:
            events.append(Body(piece))
            self._left -= len(piece)
        if not self._left:
            events.append(End())
            self.done = True
        return position + len(piece)


class _Part(IntEnum):
    SIZE = 0
    DATA = 1
    DATA_END = 2
    TRAILERS = 3


class ChunkedBody:
    """A chunked body with its trailers."""

    def __init__(self, status: int, limits: Limits) -> None:
        self._status = status
        self._limits = limits
        self._part = _Part.SIZE
        self._left = 0
        self._scanned = 0
        self.done = False

    def take(self, buffer: bytes, position: int, events: list[BodyEvent]) -> int:
        while position < len(buffer) and not self.done:
            match self._part:
                case _Part.SIZE:
                    size, line_end = _read_chunk_line(buffer, position)
                    if line_end < 0:
                        self._check_unfinished_line(buffer, position)
                        return position
                    if line_end - position > self._limits.chunk_line:
                        raise self._line_too_long()
                    position = line_end
                    self._left = size
                    self._part = _Part.DATA if self._left else _Part.TRAILERS
                    self._scanned = 0
                case _Part.DATA:
                    piece = buffer[position : position + self._left]
                    events.append(Body(piece))
                    position += len(piece)
                    self._left -= len(piece)
                    if not self._left:
                        self._part = _Part.DATA_END
                case _Part.DATA_END:
                    end = buffer[position : position + 2]
                    if end == b"\r":
                        return position
                    if end != b"\r\n":
                        raise BadMessage(self._status, "A chunk's data is not followed by a line end.")
                    position += 2
                    self._part = _Part.SIZE
                case _Part.TRAILERS:
                    end_at = self._trailers_end(buffer, position)
                    if end_at < 0:
                        return position
                    self._read_trailers(buffer[position:end_at], events)
                    position = end_at
                    events.append(End())
                    self.done = True
        return position

    def _check_unfinished_line(self, buffer: bytes, position: int) -> None:
        """Raises unless more bytes could still make a chunk-size line of what begins at `position`."""
        left = buffer[position:]
        if not _is_size(left.removesuffix(b"\r")):
            import re

            if re.fullmatch(_CHUNK_LINE_START, left) is None:
                raise BadMessage(self._status, "A chunk's size is not plain hexadecimal digits and a line end.")
        if len(buffer) - position >= self._limits.chunk_line:
            raise self._line_too_long()

    def _line_too_long(self) -> BadMessage:
        return BadMessage(self._status, f"A chunk-size line is longer than {self._limits.chunk_line} bytes.")

    def _trailers_end(self, buffer: bytes, position: int) -> int:
        """Where the empty line behind the trailers ends, or -1 if more bytes are needed."""
        if buffer.startswith(b"\r\n", position):
            return position + 2
        found = buffer.find(b"\r\n\r\n", position + max(0, self._scanned - 3))
        size = (found + 4 if found >= 0 else len(buffer)) - position
        if size > self._limits.trailers:
            status = self._status if self._status == 502 else 431
            raise BadMessage(status, f"The trailers are larger than {self._limits.trailers} bytes.")
        if found < 0:
            check_unfinished_lines(buffer, position, position + self._scanned, self._status)
            self._scanned = size
            return -1
        return found + 4

    def _read_trailers(self, block: bytes, events: list[BodyEvent]) -> None:
        lines = block.split(b"\r\n")[:-2]
        if len(lines) > self._limits.header_count:
            status = self._status if self._status == 502 else 431
            raise BadMessage(status, f"The message has more than {self._limits.header_count} trailer lines.")
        fields = []
        for line in lines:
            import re

            field = re.fullmatch(_FIELD, line)
            if field is None:
                raise BadMessage(self._status, "A trailer line is not a name, a colon and a value.")
            fields.append((field[1], field[2].rstrip(b" \t")))
        if fields:
            events.append(Trailers(tuple(fields)))

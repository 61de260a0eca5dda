"""Reads the HTTP/1 responses to one request from an upstream server: bytes in, events out, nothing else.

Rules:

- Interim responses (1xx) come as a ResponseHead alone, without End; exactly one final head follows.
- 101 is taken only where the request asked for it (`upgrading=True`); what follows is Raw, without End.
- After a 2xx to CONNECT what follows is Raw, without End.
- HEAD, 204 and 304 have no body whatever their headers say (RFC 9112 §6.3).
- A malformed response raises BadMessage with status 502, ever after. Events of the same bytes are withheld.
- Bytes beyond the end of the response are dropped; they make `reusable` false, since they can only be an answer
  that nobody asked for.
"""

from __future__ import annotations

from doorward.proxy.http1_body import BodyDecoder, ChunkedBody, LengthBody
from doorward.proxy.http1_head import find_head_end, parse_response_head
from doorward.proxy.http1_message import (
    BadMessage,
    Body,
    BodyEvent,
    End,
    Raw,
    ResponseEvent,
    ResponseHead,
    Trailers,
)
from doorward.proxy.limits import DEFAULT, Limits

__all__ = [
    "BadMessage",
    "Body",
    "End",
    "Raw",
    "ResponseEvent",
    "ResponseHead",
    "ResponseReader",
    "Trailers",
]


class ResponseReader:
    """The interim responses and the final one to a request with `request_method`."""

    def __init__(self, request_method: str, *, upgrading: bool = False, limits: Limits = DEFAULT) -> None:
        self._method = request_method
        self._upgrading = upgrading
        self._limits = limits
        self._kept = b""
        self._scanned = 0
        self._head: ResponseHead | None = None  # the final one
        self._body: BodyDecoder | None = None
        self._raw = False
        self._ended = False
        self._excess = False
        self._parsed: tuple[bytes, ResponseHead] | None = None  # a head, and what it was read as
        self.failed: BadMessage | None = None

    @property
    def reusable(self) -> bool:
        """Whether the response is whole, the server keeps the connection and sent nothing beyond the end."""
        head = self._head
        return self._ended and not self._excess and head is not None and head.keep_alive

    def feed(self, data: bytes) -> list[ResponseEvent]:
        """The events that `data` completes; raises BadMessage (status 502)."""
        if self.failed is not None:
            raise self.failed
        events: list[ResponseEvent] = []
        try:
            self._read(self._kept + data if self._kept else data, events)
        except BadMessage as error:
            self.failed = error
            self._kept = b""
            raise
        return events

    def whole(self, data: bytes) -> tuple[ResponseHead, bytes] | None:
        """The final head and the body, where the first bytes of all are just one whole response and say so by its
        length, the most frequent case. None otherwise: `feed` them then. Raises BadMessage (status 502)."""
        end = data.find(b"\r\n\r\n") + 4
        if not 4 <= end <= self._limits.head:
            return None
        block = data[:end]
        try:
            head = parse_response_head(block, self._method, self._limits)
        except BadMessage as error:
            self.failed = error
            raise
        self._parsed = block, head
        if head.status < 200 or head.framing in ("chunked", "until-close") or (head.length or 0) != len(data) - end:
            return None
        self._head = head
        self._ended = True
        return head, data[end:]

    def eof(self) -> list[ResponseEvent]:
        """The server sends no more: End where the close frames the body; raises BadMessage inside a message."""
        if self.failed is not None:
            raise self.failed
        if self._ended or self._raw:
            self._excess = True  # whatever it was, it is no connection to use again
            return []
        if self._head is not None and self._head.framing == "until-close":
            self._ended = True
            return [End()]
        where = "inside its response" if self._head is not None or self._kept else "without an answer"
        self.failed = BadMessage(502, f"The upstream server closed the connection {where}.")
        raise self.failed

    def _read(self, buffer: bytes, events: list[ResponseEvent]) -> None:
        position = 0
        size = len(buffer)
        while position < size:
            if self._ended:
                self._excess = True
                position = size
            elif self._body is not None:
                pieces: list[BodyEvent] = []
                position = self._body.take(buffer, position, pieces)
                events.extend(pieces)
                if not self._body.done:
                    break
                self._body = None
                self._ended = True
            elif self._raw:
                events.append(Raw(buffer[position:]))
                position = size
            elif self._head is not None:
                events.append(Body(buffer[position:]))
                position = size
            else:
                end = find_head_end(buffer, position, position + self._scanned, 502, self._limits)
                if end < 0:
                    self._scanned = size - position
                    break
                block = buffer[position:end]
                if self._parsed is not None and self._parsed[0] == block:
                    head = self._parsed[1]
                else:
                    head = parse_response_head(block, self._method, self._limits)
                position = end
                self._scanned = 0
                self._begin(head, events)
        self._kept = buffer[position:]

    def _begin(self, head: ResponseHead, events: list[ResponseEvent]) -> None:
        """Decide how the bytes after `head` are read."""
        if head.upgraded:
            if not self._upgrading:
                raise BadMessage(502, "The upstream server switched protocols though nobody asked it to.")
            self._raw = True
        events.append(head)
        if head.upgraded or head.status >= 200:
            self._head = head
        if head.status < 200:
            return
        if self._method == "CONNECT" and head.status < 300:
            self._raw = True
        elif head.framing == "chunked":
            self._body = ChunkedBody(502, self._limits)
        elif head.framing == "length" and head.length:
            self._body = LengthBody(head.length)
        elif head.framing != "until-close":
            events.append(End())
            self._ended = True

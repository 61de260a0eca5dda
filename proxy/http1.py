"""Reads HTTP/1 requests from one client connection: bytes in, events out, nothing else.

Rules:

- `feed` returns the events in order, also when one read holds several pipelined requests.
- A malformed message raises BadMessage. Events of that message out of the same bytes are withheld, so that nothing of
  it is acted upon. Whole messages before it in the same bytes are returned first; then the error waits in `failed` and
  is raised by the next `feed` or `eof`. So: look at `failed` before waiting for more bytes. Once raised, it is raised
  ever after; nothing behind it is parsed.
- After the head of a CONNECT everything is Raw. There is no End.
- After a request with `upgrade`, what comes is kept unread until `upgrade_answered` says how to read it. The caller
  must stop feeding once that is more than it wants to hold.
- After a request whose `keep_alive` is false, bytes are dropped unread (RFC 9112 §9.6).
- One empty line before a request line is skipped (RFC 9112 §2.2).
"""

from __future__ import annotations

from doorward.proxy.http1_head import find_head_end, parse_request_head
from doorward.proxy.http1_message import (
    BadMessage,
    Body,
    BodyEvent,
    End,
    Headers,
    Raw,
    RequestEvent,
    RequestHead,
    Trailers,
)
from doorward.proxy.limits import DEFAULT, Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.http1_body import BodyDecoder

__all__ = [
    "BadMessage",
    "Body",
    "End",
    "Headers",
    "Raw",
    "RequestEvent",
    "RequestHead",
    "RequestReader",
    "Trailers",
]

END = End()
"""Each request's."""


class RequestReader:
    """One client connection's requests, one after the other."""

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._limits = limits
        self._kept = b""  # bytes that are not yet enough for anything
        self._scanned = 0  # how much of them was searched for the end of a head
        self._body: BodyDecoder | None = None
        self._fresh = True  # no empty line skipped yet before the next request line
        self._raw = False
        self._upgrading = False
        self._closed = False
        self._last = False  # the request whose body is being read is the connection's last
        self.failed: BadMessage | None = None

    @property
    def idle(self) -> bool:
        """Between two requests, with no byte of the next one received."""
        return not (self._kept or self._body or self._raw or self._upgrading or self._closed or self.failed)

    @property
    def untouched(self) -> bool:
        """In the state of a new reader: a whole request without a body, read past it, would have left it so."""
        return self._fresh and self.idle

    def feed(self, data: bytes) -> list[RequestEvent]:
        """The events that `data` completes; raises BadMessage."""
        if self.failed is not None:
            raise self.failed
        events: list[RequestEvent] = []
        try:
            self._read(self._kept + data if self._kept else data, events)
        except BadMessage as error:
            self.failed = error
            self._kept = b""
            whole = _up_to_last_end(events)
            if not whole:
                raise
            return whole
        return events

    def eof(self) -> list[RequestEvent]:
        """The client sends no more; raises BadMessage inside a message."""
        if self.failed is not None:
            raise self.failed
        if self._body is not None or (self._kept and not self._upgrading):
            self.failed = BadMessage(400, "The connection ended inside a request.")
            raise self.failed
        return []

    def upgrade_answered(self, accepted: bool) -> list[RequestEvent]:
        """How to go on after a request with `upgrade`: as Raw (101 was sent on) or as requests (any other answer).

        Returns the events of what was kept meanwhile; raises BadMessage. Without such a request it does nothing."""
        if not self._upgrading:
            return []
        self._upgrading = False
        self._raw = accepted
        kept, self._kept = self._kept, b""
        return self.feed(kept) if kept else []

    def _read(self, buffer: bytes, events: list[RequestEvent]) -> None:
        position = 0
        size = len(buffer)
        while position < size:
            if self._raw:
                events.append(Raw(buffer[position:]))
                position = size
            elif self._body is not None:
                position, more = self._read_body(self._body, buffer, position, events)
                if more:
                    break
            elif self._closed:
                position = size
            elif self._upgrading:
                break
            else:
                if self._fresh and buffer.startswith(b"\r\n", position):
                    self._fresh = False
                    position += 2
                    self._scanned = 0
                    continue
                end = find_head_end(buffer, position, position + self._scanned, 400, self._limits)
                if end < 0:
                    self._scanned = size - position
                    break
                head = parse_request_head(buffer[position:end], self._limits)
                position = end
                self._scanned = 0
                self._fresh = True
                events.append(head)
                self._begin(head, events)
        self._kept = buffer[position:]

    def _begin(self, head: RequestHead, events: list[RequestEvent]) -> None:
        """Decide how the bytes after `head` are read."""
        if head.method == "CONNECT":
            self._raw = True
        elif head.framing == "chunked" or head.length:
            from doorward.proxy.http1_body import ChunkedBody, LengthBody  # few requests have one

            self._body = ChunkedBody(400, self._limits) if head.framing == "chunked" else LengthBody(head.length or 0)
            self._last = not head.keep_alive
        else:
            events.append(END)
            if head.upgrade is not None:
                self._upgrading = True
            self._closed = not head.keep_alive

    def _read_body(
        self, body: BodyDecoder, buffer: bytes, position: int, events: list[RequestEvent]
    ) -> tuple[int, bool]:
        """The new position, and whether the body needs more bytes."""
        pieces: list[BodyEvent] = []
        try:
            position = body.take(buffer, position, pieces)
        finally:
            events.extend(pieces)
        if not body.done:
            return position, True
        self._body = None
        self._closed = self._last
        return position, False


def _up_to_last_end(events: list[RequestEvent]) -> list[RequestEvent]:
    for index in range(len(events) - 1, -1, -1):
        if isinstance(events[index], End):
            return events[: index + 1]
    return []

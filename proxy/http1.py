"""Reads HTTP/1 requests from a client: bytes in, events out, nothing else.

Stub: the contract below is final, the body follows.

- `feed` returns the events in order, also when one read holds several pipelined requests.
- A malformed message raises `BadMessage`. Events of the same broken message that came out of the same bytes are
  withheld, so that nothing of it is acted upon. Whole messages before it in the same bytes are returned first; then the
  error is kept in `.failed` and raised by the next `feed` or `eof`. So: look at `.failed` before waiting for more bytes.
- After the head of a CONNECT everything is `Raw`.
- After a request that asks for an upgrade the reader keeps what comes, silently, until it is told by
  `upgrade_answered(accepted)` how to read it; that call returns the events.
- After a request whose `keep_alive` is false everything is dropped unread.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
Framing: TypeAlias = Literal["none", "length", "chunked"]


class BadMessage(Exception):
    """A message that is not to be trusted; `status` is the answer (400, 414, 431, 501, 505; 502 for a response)."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class RequestHead(NamedTuple):
    """A request line with its headers, order and case as received (RFC 9112 §3, §5)."""

    method: str
    target: bytes
    version: tuple[int, int]
    headers: Headers
    framing: Framing
    length: int | None
    keep_alive: bool
    expect_continue: bool
    upgrade: bytes | None


class Body(NamedTuple):
    """Bytes of a message's content, never empty, chunk framing taken off."""

    data: bytes


class Trailers(NamedTuple):
    """The fields after a last chunk, never empty; to be sent on as trailers or dropped (RFC 9110 §6.5)."""

    headers: Headers


class End(NamedTuple):
    """The message is whole."""


class Raw(NamedTuple):
    """Bytes after the head of a CONNECT or of a 101, verbatim, never empty."""

    data: bytes


RequestEvent: TypeAlias = RequestHead | Body | Trailers | End | Raw


class RequestReader:
    """One client connection's requests, one after the other."""

    failed: BadMessage | None = None

    def feed(self, data: bytes) -> list[RequestEvent]:
        """Take what was read; raises BadMessage."""
        raise NotImplementedError

    def eof(self) -> list[RequestEvent]:
        """The client sends no more; raises BadMessage inside a message."""
        raise NotImplementedError

    def upgrade_answered(self, accepted: bool) -> list[RequestEvent]:
        """The answer to an upgrade is known: read on as Raw (101 sent on) or as requests (any other final status)."""
        raise NotImplementedError

    @property
    def idle(self) -> bool:
        """Between two requests, with no byte of the next one received."""
        raise NotImplementedError

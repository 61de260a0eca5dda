"""Reads the HTTP/1 responses to one request from an upstream server: bytes in, events out, nothing else.

Stub: the contract below is final, the body follows.

- Interim responses (1xx) come as a ResponseHead alone, without End; exactly one final head follows.
- 101 is taken only where the request asked (`upgrading=True`); what follows is Raw.
- A 2xx to CONNECT: End never comes, what follows is Raw.
- Bytes beyond the end of the response are dropped and make `reusable` false.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from doorward.proxy.http1 import Body, End, Headers, Raw, Trailers


class ResponseHead(NamedTuple):
    """A status line with its headers, order and case as received (RFC 9112 §4, §5)."""

    status: int
    phrase: bytes
    version: tuple[int, int]
    headers: Headers
    framing: Literal["none", "length", "chunked", "until-close"]
    length: int | None
    keep_alive: bool
    upgraded: bool


ResponseEvent: TypeAlias = ResponseHead | Body | Trailers | End | Raw


class ResponseReader:
    """The interim and final response to one request."""

    def __init__(self, request_method: str, *, upgrading: bool = False) -> None:
        raise NotImplementedError

    def feed(self, data: bytes) -> list[ResponseEvent]:
        """Take what was read; raises BadMessage (status 502)."""
        raise NotImplementedError

    def eof(self) -> list[ResponseEvent]:
        """The server sends no more: End where the close frames the body, BadMessage anywhere inside a message."""
        raise NotImplementedError

    @property
    def reusable(self) -> bool:
        """True when the response is whole, the server keeps the connection and sent nothing beyond the end."""
        raise NotImplementedError

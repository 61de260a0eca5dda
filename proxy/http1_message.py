"""The values HTTP/1 readers return and writers take: heads, pieces of bodies, and the error for what is malformed."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Header lines in the order and case received; names are tokens, values without the blanks around them."""


class BadMessage(Exception):
    """A message that is not to be trusted. Nothing of it may be acted upon, and nothing after it is read.

    `status` is what the client is answered: 400, 414, 431, 501 or 505 for a request, 502 for an upstream's response.
    `sentence` is for a person; it never repeats bytes of the message.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class RequestHead(NamedTuple):
    """A request line and its headers (RFC 9112 §3, §5)."""

    method: str
    """Upper case, one of the methods the parser knows."""
    target: bytes
    """As received: visible ASCII, not yet judged (see target.py)."""
    version: tuple[int, int]
    """(1, 1) or (1, 0)."""
    headers: Headers
    framing: Literal["none", "length", "chunked"]
    """How the body is delimited (RFC 9112 §6.3); a CONNECT has none."""
    length: int | None
    """The body's bytes where framing is "length" (may be 0)."""
    keep_alive: bool
    """Whether another request may follow; never for HTTP/1.0, as RFC 9112 §9.3 asks of a proxy."""
    expect_continue: bool
    """The client waits for 100 before it sends the body (RFC 9110 §10.1.1)."""
    upgrade: bytes | None
    """The Upgrade field's value where it counts: nominated by Connection, HTTP/1.1, no body, not h2c."""


class ResponseHead(NamedTuple):
    """A status line and its headers (RFC 9112 §4, §5)."""

    status: int
    """100 to 999; below 200 it is interim and another head follows (but for 101)."""
    phrase: bytes
    version: tuple[int, int]
    headers: Headers
    framing: Literal["none", "length", "chunked", "until-close"]
    length: int | None
    keep_alive: bool
    """Whether the server keeps its connection after this response."""
    upgraded: bool
    """A 101: what follows on the connection is Raw."""


class Body(NamedTuple):
    """Bytes of a message's content, chunk framing taken off; never empty."""

    data: bytes


class Trailers(NamedTuple):
    """The fields after a last chunk; never empty, never to be merged into the head (RFC 9110 §6.5)."""

    headers: Headers


class End(NamedTuple):
    """The message is whole."""


class Raw(NamedTuple):
    """Bytes after the head of a CONNECT or of a 101, verbatim; never empty."""

    data: bytes


RequestEvent: TypeAlias = RequestHead | Body | Trailers | End | Raw
ResponseEvent: TypeAlias = ResponseHead | Body | Trailers | End | Raw
BodyEvent: TypeAlias = Body | Trailers | End

"""Speaks the server's side of SOCKS5 up to the request: bytes in, events and answers out, nothing else.

Stub: the contract below is final, the body follows.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from doorward.allowlists.host import Host


class Reply(IntEnum):
    """RFC 1928 §6, the codes this door uses."""

    SUCCEEDED = 0
    GENERAL_FAILURE = 1
    NOT_ALLOWED = 2
    HOST_UNREACHABLE = 4
    CONNECTION_REFUSED = 5
    COMMAND_NOT_SUPPORTED = 7
    ADDRESS_TYPE_NOT_SUPPORTED = 8


class Socks5Request(NamedTuple):
    """The client asks for a connection. Answer with `reply(code)`."""

    host: Host
    port: int


class Socks5Failed(NamedTuple):
    """The handshake ended; `to_send()` already holds the answer (may be empty), then close."""

    code: int
    sentence: str


Socks5Event: TypeAlias = Socks5Request | Socks5Failed


class Socks5Server:
    """One connection's handshake."""

    def feed(self, data: bytes) -> list[Socks5Event]:
        """Take what was read; never raises on any bytes. At most one event ever comes."""
        raise NotImplementedError

    def eof(self) -> list[Socks5Event]:
        """The client sends no more: Socks5Failed inside the handshake."""
        raise NotImplementedError

    def to_send(self) -> bytes:
        """What is to be written to the client now; each byte is handed out once. Call it after every feed."""
        raise NotImplementedError

    def leftover(self) -> bytes:
        """Bytes the client sent beyond its request, handed out once."""
        raise NotImplementedError


def reply(code: Reply) -> bytes:
    """The answer to a request, bound address 0.0.0.0:0."""
    raise NotImplementedError

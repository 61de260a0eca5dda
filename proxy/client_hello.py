"""Reads the names in a TLS ClientHello without speaking TLS: bytes in, one finding out.

Stub: the contract below is final, the body follows.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class NeedMore(NamedTuple):
    """Not yet a whole ClientHello."""


class ClientHello(NamedTuple):
    """`server_name`: lower case, no trailing dot, None where none is given. `encrypted_hello`: ECH is offered, and
    `server_name` is the outer one."""

    server_name: str | None
    alpn: tuple[str, ...]
    encrypted_hello: bool


class NotTls(NamedTuple):
    """The first bytes are no TLS handshake record."""


class BadHello(NamedTuple):
    """Begins like TLS but is malformed, over the cap, or names what no server name may be."""

    sentence: str


Finding: TypeAlias = NeedMore | ClientHello | NotTls | BadHello


class HelloReader:
    """Keeps what it was fed (`.data`), so that the caller can forward exactly that."""

    def __init__(self, cap: int = 64 * 1024) -> None:
        self.data = bytearray()

    def feed(self, data: bytes) -> Finding:
        """Take what was read; never raises on any bytes. Once it is not NeedMore the finding stays."""
        raise NotImplementedError

    def eof(self) -> Finding:
        """The client sends no more."""
        raise NotImplementedError

"""Speaks the server's side of SOCKS5 up to the request: bytes in, one event and the answers out, nothing else.

RFC 1928: no authentication (the listener a connection came in on is its identity), CONNECT alone. Names are taken as
allowlists/host.py takes them: one with a NUL, a blank or a byte outside ASCII never reaches a resolver, one that reads
as an address (`127.1`) is refused. What is malformed gets the answer RFC 1928 has for it, then the end.
"""

from __future__ import annotations

from doorward.allowlists.host import Host, MalformedHost, address_host, parse_host
from doorward.named_tuple import NamedTuple
from doorward.plain_enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

_VERSION: Final = 5
_NO_AUTHENTICATION: Final = 0
_NO_ACCEPTABLE_METHOD: Final = 0xFF
_CONNECT: Final = 1
_IPV4: Final = 1
_NAME: Final = 3
_IPV6: Final = 4


class Reply(IntEnum):
    """The reply codes of RFC 1928 §6 that this door uses."""

    SUCCEEDED = 0
    GENERAL_FAILURE = 1
    NOT_ALLOWED = 2
    HOST_UNREACHABLE = 4
    CONNECTION_REFUSED = 5
    COMMAND_NOT_SUPPORTED = 7
    ADDRESS_TYPE_NOT_SUPPORTED = 8


class Socks5Request(NamedTuple):
    """The client asks for a connection to `host`:`port`. It is answered with `reply(code)`."""

    host: Host
    port: int


class Socks5Failed(NamedTuple):
    """The handshake is over: write what `to_send()` holds (it may be nothing), then close.

    `code` is what the client is told: a Reply, 255 for no acceptable method, -1 where nothing can be told."""

    code: int
    sentence: str


Socks5Event: TypeAlias = Socks5Request | Socks5Failed


class _Answer(Exception):
    """Ends the handshake with `code`, answered by `answer`."""

    def __init__(self, code: int, answer: bytes, sentence: str) -> None:
        super().__init__(sentence)
        self.failed = Socks5Failed(code, sentence)
        self.answer = answer


class Socks5Server:
    """One connection's handshake. At most one event ever comes; bytes behind the request are kept as `leftover`."""

    def __init__(self) -> None:
        self._kept = b""
        self._out = b""
        self._greeted = False
        self._done = False
        self._wants_rest = False  # whether the bytes behind are the tunnel's

    def feed(self, data: bytes) -> list[Socks5Event]:
        """The event that `data` completes; never raises, whatever the bytes. Then look at `to_send`."""
        if self._done:
            if self._wants_rest:
                self._kept += data
            return []
        self._kept += data
        try:
            if not self._greeted:
                self._read_greeting()
            request = self._read_request() if self._greeted else None
        except _Answer as answer:
            self._done = True
            self._kept = b""
            self._out += answer.answer
            return [answer.failed]
        if request is None:
            return []
        self._done = self._wants_rest = True
        return [request]

    def eof(self) -> list[Socks5Event]:
        """The client sends no more; a handshake that is not over has failed."""
        if self._done:
            return []
        self._done = True
        return [Socks5Failed(-1, "The connection ended inside the SOCKS5 handshake.")]

    def to_send(self) -> bytes:
        """What is to be written to the client now; each byte is handed out once."""
        out, self._out = self._out, b""
        return out

    def leftover(self) -> bytes:
        """Bytes the client sent behind its request: the tunnel's first. Handed out once."""
        if not self._wants_rest:
            return b""
        rest, self._kept = self._kept, b""
        return rest

    def _read_greeting(self) -> None:
        data = self._kept
        if data and data[0] != _VERSION:
            raise _Answer(-1, b"", "The client does not speak SOCKS5.")
        if len(data) < 2 or len(data) < 2 + data[1]:
            return
        end = 2 + data[1]
        if _NO_AUTHENTICATION not in data[2:end]:
            refusal = bytes((_VERSION, _NO_ACCEPTABLE_METHOD))
            raise _Answer(_NO_ACCEPTABLE_METHOD, refusal, "The client insists on authentication; none is taken here.")
        self._out += bytes((_VERSION, _NO_AUTHENTICATION))
        self._kept = data[end:]
        self._greeted = True

    def _read_request(self) -> Socks5Request | None:
        data = self._kept
        if data and data[0] != _VERSION:
            raise _failure(Reply.GENERAL_FAILURE, "The request is not of SOCKS version 5.")
        if len(data) > 1 and data[1] != _CONNECT:
            raise _failure(Reply.COMMAND_NOT_SUPPORTED, "Only the SOCKS5 command CONNECT is known here.")
        if len(data) > 2 and data[2] != 0:
            raise _failure(Reply.GENERAL_FAILURE, "The reserved byte of the request is not zero.")
        if len(data) < 5:
            # the address type is the fourth byte; say so as soon as it is there
            if len(data) == 4:
                self._address_size(data[3], 1)
            return None
        start = 5 if data[3] == _NAME else 4
        end = start + self._address_size(data[3], data[4])
        if len(data) < end + 2:
            return None
        host = self._host(data[3], data[start:end])
        port = int.from_bytes(data[end : end + 2], "big")
        if port == 0:
            raise _failure(Reply.GENERAL_FAILURE, "Port 0 cannot be connected to.")
        self._kept = data[end + 2 :]
        return Socks5Request(host, port)

    def _address_size(self, address_type: int, first_byte: int) -> int:
        if address_type == _IPV4:
            return 4
        if address_type == _IPV6:
            return 16
        if address_type != _NAME:
            raise _failure(Reply.ADDRESS_TYPE_NOT_SUPPORTED, "The address type is none that SOCKS5 has.")
        return first_byte

    def _host(self, address_type: int, address: bytes) -> Host:
        if address_type != _NAME:
            from ipaddress import ip_address

            return address_host(ip_address(address))
        try:
            return parse_host(address.decode("latin-1"))
        except MalformedHost as error:
            raise _failure(Reply.GENERAL_FAILURE, f"The host is malformed: {error}.") from None


def reply(code: Reply) -> bytes:
    """The answer to a request. The bound address is 0.0.0.0:0: clients of CONNECT do not use it."""
    return bytes((_VERSION, code, 0, _IPV4, 0, 0, 0, 0, 0, 0))


def _failure(code: Reply, sentence: str) -> _Answer:
    return _Answer(code, reply(code), sentence)

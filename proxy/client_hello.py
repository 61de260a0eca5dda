"""Reads the names in a TLS ClientHello without speaking TLS: bytes in, one finding out.

Rules (RFC 8446 §4.1.2 and §5.1, RFC 6066 §3, RFC 7301 §3.1):

- every length must fit exactly; nothing is skipped because it looks harmless, since a server may read it otherwise;
- a hello may be cut into any number of records and reads; a record that is empty, too long or of another type inside
  the hello, or that goes on behind it, is refused;
- no extension comes twice; there is one server name, a host name and no address; a trailing dot and upper case are
  taken, as servers do;
- what begins like a TLS handshake is TLS, so a slip in it is a BadHello and never "some other protocol".

The name under Encrypted ClientHello is not visible; `server_name` is then the outer one. A second hello after a
HelloRetryRequest is not looked at.
"""

from __future__ import annotations

from doorward.allowlists.host import MalformedHost, Name, parse_host
from doorward.named_tuple import NamedTuple
from doorward.proxy.limits import DEFAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, NoReturn, TypeAlias

_HANDSHAKE: Final = 22  # RFC 8446 §5.1, ContentType
_CLIENT_HELLO: Final = 1  # RFC 8446 §4, HandshakeType
_LONGEST_RECORD: Final = 1 << 14  # RFC 8446 §5.1
_SERVER_NAME: Final = 0  # RFC 6066 §1.1
_ALPN: Final = 16  # RFC 7301 §3.1
_ENCRYPTED_HELLO: Final = (0xFE0D, 0xFFCE)  # RFC 9849 §5, and the draft it grew from


class NeedMore(NamedTuple):
    """Not yet a whole ClientHello."""


class ClientHello(NamedTuple):
    """What the client says about whom it wants to reach."""

    server_name: str | None
    """Lower case, without a trailing dot; None where the hello has no name."""
    alpn: tuple[str, ...]
    """Protocol names in the client's order, one character a byte (latin-1)."""
    encrypted_hello: bool
    """Encrypted ClientHello is offered (or pretended, which looks the same)."""


class NotTls(NamedTuple):
    """The first bytes are no TLS handshake record."""


class BadHello(NamedTuple):
    """Begins like a TLS handshake but is malformed or too long, or its name is no host name."""

    sentence: str


Finding: TypeAlias = NeedMore | ClientHello | NotTls | BadHello

_NEED_MORE: Final = NeedMore()


class _Malformed(Exception):
    """The sentence of a BadHello."""


class HelloReader:
    """Reads one client's first bytes. `data` is all it was fed, to be forwarded exactly as it came."""

    def __init__(self, cap: int = DEFAULT.hello) -> None:
        self.data = bytearray()
        self._cap = cap
        self._position = 0  # of the next record
        self._message = bytearray()  # handshake bytes of the records read so far
        self._finding: Finding = _NEED_MORE

    def feed(self, data: bytes) -> Finding:
        """The finding so far; never raises, whatever the bytes. Once it is not NeedMore it stays."""
        self.data += data
        if self._finding is _NEED_MORE:
            try:
                self._finding = self._read()
            except _Malformed as error:
                self._finding = BadHello(str(error))
        return self._finding

    def eof(self) -> Finding:
        """The client sends no more."""
        if self._finding is _NEED_MORE:
            self._finding = BadHello("The connection ended inside the TLS hello.") if self.data else NotTls()
        return self._finding

    def _read(self) -> Finding:
        data = self.data
        if data and data[0] != _HANDSHAKE:
            return NotTls()
        # Some servers take any version below 0x1000 in a first record, so such bytes are TLS to someone.
        if len(data) > 1 and data[1] >= 0x10:
            return NotTls()
        while len(data) - self._position >= 5:
            start = self._position
            size = data[start + 3] << 8 | data[start + 4]
            if data[start] != _HANDSHAKE:
                raise _Malformed("A record of another type stands inside the TLS hello.")
            if data[start + 1] != 3 or data[start + 2] > 4:
                raise _Malformed("A TLS record has a version that does not exist.")
            if not 0 < size <= _LONGEST_RECORD:
                raise _Malformed("A TLS record has a length that is not allowed.")
            if start + 5 + size > self._cap:
                raise _Malformed(f"The TLS hello is larger than {self._cap} bytes.")
            if len(data) < start + 5 + size:
                # a hello that can only be too long or none is not waited for
                self._hello_size(self._message[:4] + data[start + 5 : start + 9])
                return _NEED_MORE
            self._message += data[start + 5 : start + 5 + size]
            self._position = start + 5 + size
            wanted = self._hello_size(self._message)
            if wanted is not None and len(self._message) >= wanted:
                if len(self._message) > wanted:
                    raise _Malformed("Something stands behind the TLS hello in its record.")
                return _read_hello(bytes(self._message[4:]))
        return _NEED_MORE

    def _hello_size(self, message: bytearray) -> int | None:
        """The size of the whole handshake message with its header of 4 bytes, None while it is not known."""
        if message and message[0] != _CLIENT_HELLO:
            raise _Malformed("The TLS handshake does not begin with a ClientHello.")
        if len(message) < 4:
            return None
        size = 4 + int.from_bytes(message[1:4], "big")
        if size > self._cap:
            raise _Malformed(f"The TLS hello is larger than {self._cap} bytes.")
        return size


class _Cursor:
    """Takes vectors off a byte string; every step checks that the bytes are there."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._end = len(data)

    def __bool__(self) -> bool:
        return self._position < self._end

    def take(self, size: int) -> bytes:
        start = self._position
        self._position = start + size
        if self._position > self._end:
            raise _Malformed("A length inside the TLS hello does not fit.")
        return self._data[start : self._position]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, length_size: int) -> bytes:
        return self.take(self.number(length_size))


def _read_hello(body: bytes) -> ClientHello:
    hello = _Cursor(body)
    if hello.take(2)[0] != 3:
        _malformed("The TLS hello asks for a version that does not exist.")
    hello.take(32)  # random
    if len(hello.vector(1)) > 32:
        _malformed("The session id in the TLS hello is too long.")
    suites = hello.vector(2)
    if not suites or len(suites) % 2:
        _malformed("The cipher suites in the TLS hello are malformed.")
    if not hello.vector(1):
        _malformed("The TLS hello offers no compression method, not even none.")
    server_name: str | None = None
    alpn: tuple[str, ...] = ()
    encrypted = False
    if hello:
        for kind, content in _read_extensions(hello.vector(2)).items():
            if kind == _SERVER_NAME:
                server_name = _read_server_name(content)
            elif kind == _ALPN:
                alpn = _read_alpn(content)
            elif kind in _ENCRYPTED_HELLO:
                encrypted = True
        if hello:
            _malformed("Something stands behind the extensions of the TLS hello.")
    return ClientHello(server_name, alpn, encrypted)


def _read_extensions(block: bytes) -> dict[int, bytes]:
    # by hand and not with a _Cursor: this loop is most of the reader's time
    found: dict[int, bytes] = {}
    position = 0
    while position < len(block):
        content = position + 4
        if content > len(block):
            _malformed("A length inside the TLS hello does not fit.")
        kind = block[position] << 8 | block[position + 1]
        position = content + (block[position + 2] << 8 | block[position + 3])
        if position > len(block):
            _malformed("A length inside the TLS hello does not fit.")
        if kind in found:
            _malformed("An extension comes twice in the TLS hello.")
        found[kind] = block[content:position]
    return found


def _read_server_name(content: bytes) -> str:
    extension = _Cursor(content)
    names = _Cursor(extension.vector(2))
    if extension or not names:
        _malformed("The server name list in the TLS hello is malformed.")
    if names.number(1) != 0:
        _malformed("The server name in the TLS hello is not a host name.")
    text = names.vector(2)
    if names:
        _malformed("The TLS hello names more than one server.")
    try:
        host = parse_host(text.decode("latin-1"))
    except MalformedHost as error:
        _malformed(f"The server name in the TLS hello is malformed: {error}.")
    if not isinstance(host, Name):
        _malformed("The server name in the TLS hello is an address, which RFC 6066 does not permit.")
    return host.text


def _read_alpn(content: bytes) -> tuple[str, ...]:
    extension = _Cursor(content)
    names = _Cursor(extension.vector(2))
    found = []
    while names:
        found.append(names.vector(1).decode("latin-1"))
    if extension or not found or not all(found):
        _malformed("The protocol list in the TLS hello is malformed.")
    return tuple(found)


def _malformed(sentence: str) -> NoReturn:
    raise _Malformed(sentence)

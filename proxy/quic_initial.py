"""Reads the ClientHello that a QUIC client sends, out of its Initial packets: bytes in, bytes out, no I/O.

Initial packets are encrypted with keys that anyone can derive from the connection id in them (RFC 9001 §5.2). Only what
leads to the hello is read: the headers of long packets (RFC 9000 §17.2), and in an Initial packet the CRYPTO frames
among those that may stand there (§12.4). Versions 1 and 2 (RFC 9369). The ciphers are those
of `cryptography` (`doorward[quic]`).
"""

from __future__ import annotations

from doorward.named_tuple import NamedTuple
from doorward.proxy.client_hello import ClientHello, HelloReader, NeedMore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

VERSION_1: Final = b"\0\0\0\1"
VERSION_2: Final = b"\x6b\x33\x43\xcf"  # RFC 9369 §3.1

VERSIONS: Final = frozenset({VERSION_1, VERSION_2})

_LONG: Final = 0x80
_LONGEST_ID: Final = 20  # RFC 9000 §17.2
_INITIAL: Final = {VERSION_1: 0, VERSION_2: 1}  # the two type bits, RFC 9000 §17.2.2, RFC 9369 §3.2
_RETRY: Final = {VERSION_1: 3, VERSION_2: 0}
_SALT: Final = {  # RFC 9001 §5.2, RFC 9369 §3.3.1
    VERSION_1: bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a"),
    VERSION_2: bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9"),
}
_LABEL: Final = {VERSION_1: b"quic ", VERSION_2: b"quicv2 "}
_TAG: Final = 16  # bytes of AES-GCM's tag, and of the sample for header protection
_PADDING, _PING, _ACK, _ACK_ECN, _CRYPTO, _CLOSE = 0x00, 0x01, 0x02, 0x03, 0x06, 0x1C
_RECORD: Final = 1 << 14
_CONTRADICT: Final = "the pieces of its ClientHello contradict each other"


class Malformed(Exception):
    """No QUIC packet, or none that a server would take. The text is a clause."""


class Packet(NamedTuple):
    """One long packet of a datagram: where it starts and ends in it, and where its packet number stands."""

    version: bytes
    initial: bool
    destination: bytes
    start: int
    number_at: int
    end: int


def is_quic(data: bytes) -> bool:
    """Whether it begins like a long packet of a version that can be read."""
    return len(data) > 6 and bool(data[0] & _LONG) and data[1:5] in _INITIAL


def packets(data: bytes) -> Iterator[Packet]:
    """The long packets of a datagram, several of which may stand behind each other (RFC 9000 §12.2); a short one ends
    it. Raises Malformed."""
    at = 0
    while at < len(data) and data[at] & _LONG:
        start = at
        version = data[at + 1 : at + 5]
        if version not in _INITIAL:
            raise Malformed("a packet in it has a version that cannot be read")
        kind = data[at] >> 4 & 3
        if kind == _RETRY[version]:
            raise Malformed("a packet in it is a server's")
        destination, at = _connection_id(data, at + 5)
        _, at = _connection_id(data, at)
        initial = kind == _INITIAL[version]
        if initial:
            size, at = _number(data, at)
            at += size  # the token
        size, at = _number(data, at)
        if at + size > len(data):
            raise Malformed("a packet in it is cut short")
        yield Packet(version, initial, destination, start, at, at + size)
        at += size


class Keys:
    """A client's, for the Initial packets of one version and connection id. Raises ImportError without
    `cryptography`."""

    def __init__(self, version: bytes, destination: bytes) -> None:
        import hmac  # with the first QUIC packet

        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        def expand(secret: bytes, label: bytes, size: int) -> bytes:  # RFC 8446 §7.1; one round gives 32 bytes
            label = b"tls13 " + label
            info = size.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0\1"
            return hmac.digest(secret, info, "sha256")[:size]

        secret = expand(hmac.digest(_SALT[version], destination, "sha256"), b"client in", 32)
        label = _LABEL[version]
        self._cipher = AESGCM(expand(secret, label + b"key", 16))
        self._vector = int.from_bytes(expand(secret, label + b"iv", 12), "big")
        # one block of AES for each sample, which is what ECB is (RFC 9001 §5.4.3)
        self._mask = Cipher(algorithms.AES(expand(secret, label + b"hp", 16)), modes.ECB()).encryptor()
        self._largest = -1

    def open(self, data: bytes, packet: Packet) -> bytes | None:
        """The frames of a packet; None where it is not encrypted with these keys."""
        from cryptography.exceptions import InvalidTag

        at = packet.number_at
        sample = data[at + 4 : at + 4 + _TAG]
        if at + 4 + _TAG > packet.end:
            return None
        mask = self._mask.update(sample)
        first = data[packet.start] ^ mask[0] & 0x0F
        size = (first & 3) + 1
        sent = bytes(a ^ b for a, b in zip(data[at : at + size], mask[1:5], strict=False))
        header = bytes([first]) + data[packet.start + 1 : at] + sent
        number = _whole_number(int.from_bytes(sent, "big"), size * 8, self._largest + 1)
        try:
            opened: bytes = self._cipher.decrypt(
                (self._vector ^ number).to_bytes(12, "big"), data[at + size : packet.end], header
            )
        except InvalidTag:
            return None
        self._largest = max(self._largest, number)
        return opened


class Hello:
    """Puts one client's hello together, whatever pieces it comes in. Pieces that contradict each other are refused: a
    server could have taken the other one."""

    def __init__(self, cap: int) -> None:
        self.found: ClientHello | None = None
        self._cap = cap
        self._bytes = bytearray()
        self._there = bytearray()  # 1 for each byte that has come

    def feed(self, frames: bytes) -> None:
        """The frames of one packet; `found` is set once the hello is whole. Raises Malformed."""
        for offset, piece in _crypto(frames):
            self._take(offset, piece)
        if self.found is None:
            self._read()

    def _take(self, offset: int, piece: bytes) -> None:
        end = offset + len(piece)
        if self.found is not None:  # what comes behind a hello is not looked at, as over TCP
            kept = self._bytes[offset:end]
            if kept != piece[: len(kept)]:
                raise Malformed(_CONTRADICT)
            return
        if end > self._cap:
            raise Malformed(f"its ClientHello is larger than {self._cap} bytes")
        if end > len(self._bytes):
            more = bytes(end - len(self._bytes))
            self._bytes += more
            self._there += more
        there = self._there[offset:end]
        if any(there):
            before = self._bytes[offset:end]
            if any(known and old != new for known, old, new in zip(there, before, piece, strict=True)):
                raise Malformed(_CONTRADICT)
        self._bytes[offset:end] = piece
        self._there[offset:end] = b"\1" * len(piece)

    def _read(self) -> None:
        whole = self._there.find(0)
        message = self._bytes[: whole if whole >= 0 else len(self._bytes)]
        size = 4 + int.from_bytes(message[1:4], "big") if len(message) >= 4 else 0
        if 0 < size <= len(message) or (message and message[0] != 1):
            message = message[: size or len(message)]
        elif size <= self._cap:
            return
        # in records, as TLS over TCP has it, which is what the reader takes
        reader = HelloReader(self._cap + 5 * (len(message) // _RECORD + 1))
        pieces = (bytes(message[at : at + _RECORD]) for at in range(0, len(message), _RECORD))
        found = reader.feed(b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in pieces))
        if isinstance(found, ClientHello):
            self.found = found
            self._bytes, self._there = message, bytearray()
        elif not isinstance(found, NeedMore):
            raise Malformed(f"its ClientHello is not to be trusted: {getattr(found, 'sentence', 'it is none')}")


def _crypto(frames: bytes) -> Iterator[tuple[int, bytes]]:
    """Offsets and bytes of the CRYPTO frames; others are those that may stand in an Initial packet (RFC 9000 §12.4)."""
    at = 0
    while at < len(frames):
        kind = frames[at]
        at += 1
        if kind in (_PADDING, _PING):
            continue
        if kind in (_ACK, _ACK_ECN):
            _, at = _number(frames, at)
            _, at = _number(frames, at)
            ranges, at = _number(frames, at)
            for _ in range(2 * ranges + 1 + (3 if kind == _ACK_ECN else 0)):
                _, at = _number(frames, at)
        elif kind == _CRYPTO:
            offset, at = _number(frames, at)
            size, at = _number(frames, at)
            if at + size > len(frames):
                raise Malformed("a frame in it is cut short")
            yield offset, frames[at : at + size]
            at += size
        elif kind == _CLOSE:
            _, at = _number(frames, at)
            _, at = _number(frames, at)
            size, at = _number(frames, at)
            at += size
        else:
            raise Malformed("its first packet has a frame that may not stand there")


def _connection_id(data: bytes, at: int) -> tuple[bytes, int]:
    if at >= len(data) or data[at] > _LONGEST_ID:
        raise Malformed("a connection id in it is malformed")
    end = at + 1 + data[at]
    if end > len(data):
        raise Malformed("a packet in it is cut short")
    return data[at + 1 : end], end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer (RFC 9000 §16) and where it ends."""
    if at >= len(data):
        raise Malformed("a packet in it is cut short")
    size = 1 << (data[at] >> 6)
    if at + size > len(data):
        raise Malformed("a packet in it is cut short")
    return int.from_bytes(data[at : at + size], "big") & ((1 << (8 * size - 2)) - 1), at + size


def _whole_number(cut: int, bits: int, expected: int) -> int:
    """RFC 9000 §A.3."""
    window = 1 << bits
    number = (expected & ~(window - 1)) | cut
    if number <= expected - window // 2 and number < (1 << 62) - window:
        return number + window
    if number > expected + window // 2 and number >= window:
        return number - window
    return number

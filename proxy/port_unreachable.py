"""Tells the sender of a datagram that nobody takes it, as a host would where no socket is bound to the port: its next
call says "connection refused", and QUIC clients fall back to TCP at once.

The messages go out of a raw socket that was opened in the sandbox's namespace (icmp(7), RFC 792, RFC 4443 §3.1).
"""

from __future__ import annotations

import _socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_UDP: Final = 17
_SENT: Final = 8  # bytes of the UDP header that are repeated
_IPV4: Final = struct.Struct("!BBHHHBBH4s4s")
_IPV6: Final = struct.Struct("!IHBB16s16s")
_UDP_HEADER: Final = struct.Struct("!HHHH")


def port_unreachable(family: int, sender: tuple[bytes, int], sent_to: tuple[bytes, int]) -> bytes:
    """The ICMP message: destination unreachable, port unreachable, with the headers of the datagram. Addresses are
    packed. The checksum of ICMPv6 is the kernel's to fill in."""
    (source, source_port), (destination, port) = sender, sent_to
    udp = _UDP_HEADER.pack(source_port, port, _SENT, 0)
    if family == _socket.AF_INET6:
        return struct.pack("!BBHI", 1, 4, 0, 0) + _IPV6.pack(6 << 28, _SENT, _UDP, 64, source, destination) + udp
    body = _IPV4.pack(0x45, 0, _IPV4.size + _SENT, 0, 0, 64, _UDP, 0, source, destination) + udp
    return struct.pack("!BBHI", 3, 3, _checksum(b"\3\3" + body), 0) + body


def _checksum(data: bytes) -> int:
    """RFC 1071."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF

"""One datagram that came in on a socket which listens on every address: who sent it, where to, and how to answer.

The socket tells the address each datagram was sent to, and sends from whichever it is told (IP_PKTINFO, ip(7);
IPV6_PKTINFO, ipv6(7)): the sender hears from the address it spoke to.
"""

from __future__ import annotations

import _socket
import struct
from ipaddress import IPv4Address, IPv6Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from doorward.proxy.records import Attributed
    from doorward.proxy.resolver import IP
    from doorward.proxy.server import Server

LONGEST: Final = 65_535
"""Bytes of one."""

_LOOPBACK: Final = bytes(15) + b"\1"
_ROOM: Final = _socket.CMSG_SPACE(64)
_SOL_IP, _IP_PKTINFO, _SOL_IPV6, _IPV6_PKTINFO = 0, 8, 41, 50


class Datagram:
    """Its data, and the way back."""

    __slots__ = ("_at", "_sock", "data", "sender")

    def __init__(self, sock: _socket.socket, data: bytes, sender: Any, at: bytes) -> None:
        self._sock = sock
        self._at = at  # the address it was sent to, packed
        self.data = data
        self.sender = sender

    @property
    def sent_to(self) -> IP | None:
        """The address it was sent to; None where the kernel did not tell."""
        if not self._at:
            return None
        return IPv4Address(self._at) if len(self._at) == 4 else IPv6Address(self._at)

    @property
    def to_another(self) -> bool:
        """Whether it was sent to an address that is not of loopback, as far as the kernel told."""
        at = self._at
        return bool(at) and (at[0] != 127 if len(at) == 4 else at != _LOOPBACK)

    def fileno(self) -> int:
        """The socket it came in on."""
        return self._sock.fileno()

    def reply(self, data: bytes) -> None:
        """Send an answer; nothing happens without data, and one that cannot be sent is lost."""
        if not data:
            return
        try:
            self._sock.sendmsg([data], [self._from()] if self._at else [], 0, self.sender)
        except OSError:
            pass

    def refuse(self, server: Server, port: int) -> None:
        """Have the sender told that nobody takes it at `port`, where the sandbox has a socket for that."""
        sock = server.unreachable.get(self._sock.family)
        if sock is None or not self._at:
            return
        from doorward.proxy.port_unreachable import port_unreachable

        source = _socket.inet_pton(self._sock.family, self.sender[0].partition("%")[0])
        message = port_unreachable(self._sock.family, (source, self.sender[1]), (self._at, port))
        try:
            sock.sendmsg([message], [self._from()], 0, (self.sender[0], 0))
        except OSError:
            pass

    def _from(self) -> tuple[int, int, bytes]:
        """The control message by which an answer comes from the address that was asked."""
        if self._sock.family == _socket.AF_INET:
            return _SOL_IP, _IP_PKTINFO, struct.pack("=I4s4s", 0, self._at, bytes(4))
        return _SOL_IPV6, _IPV6_PKTINFO, self._at + bytes(4)

    def process(self, server: Server, port: int) -> Attributed | None:
        """Who sent it, to `port`."""
        if server.attribution is None or not self._at:
            return None
        return server.attribution.of_datagram(self.sender, (self._at, port))


def receive(sock: _socket.socket) -> Datagram:
    """The next one. Raises BlockingIOError, and OSError for an ICMP error of an earlier answer."""
    data, ancillary, _, sender = sock.recvmsg(LONGEST, _ROOM)
    for level, kind, said in ancillary:
        if (level, kind) == (_SOL_IP, _IP_PKTINFO):
            return Datagram(sock, data, sender, said[8:12])
        if (level, kind) == (_SOL_IPV6, _IPV6_PKTINFO):
            return Datagram(sock, data, sender, said[:16])
    return Datagram(sock, data, sender, b"")

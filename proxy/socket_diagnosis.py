"""Asks the kernel which inode the socket of one connection has (sock_diag(7)), by an exact query: no dump."""

from __future__ import annotations

import _socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    End: TypeAlias = tuple[bytes, int]
    """An address as the network has it, 4 or 16 bytes, and a port."""

_SOCK_DIAG_BY_FAMILY: Final = 20  # <linux/sock_diag.h>
_NLM_F_REQUEST: Final = 1
_ERROR: Final = 2  # NLMSG_ERROR, <linux/netlink.h>
_ALL_STATES: Final = 0xFFFFFFFF
# nlmsghdr, inet_diag_req_v2 (<linux/inet_diag.h>) and in it the id: ports and addresses in network order, then the
# interface and a cookie that fits any
_HEAD: Final = struct.Struct("=IHHII BBBxI")
_ID: Final = struct.Struct("!HH16s16s")
_ANY: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_LENGTH: Final = _HEAD.size + _ID.size + len(_ANY)
# in inet_diag_msg: family, state, timer, retransmissions, the id (48), expires, both queues, uid, inode
_INODE: Final = struct.Struct("=I")
_INODE_AT: Final = 16 + 4 + 48 + 4 + 4 + 4 + 4
_KIND_AT: Final = 4

_HEADS: Final = {
    (width, protocol): _HEAD.pack(_LENGTH, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0, family, protocol, 0, _ALL_STATES)
    for width, family in ((4, _socket.AF_INET), (16, _socket.AF_INET6))
    for protocol in (_socket.IPPROTO_TCP, _socket.IPPROTO_UDP)
}


class Sockets:
    """The sockets of one network namespace, asked about through a socket that was opened in it."""

    def __init__(self, diagnosis: _socket.socket) -> None:
        self._diagnosis = diagnosis
        diagnosis.setblocking(False)  # the answer is there when the request returns

    def inode(self, protocol: int, local: End, remote: End) -> int | None:
        """The inode of the socket with these ends; None where there is none, or nobody holds it any more."""
        if protocol == _socket.IPPROTO_UDP:
            local, remote = remote, local  # udp_dump_one() takes them the other way round, net/ipv4/udp_diag.c
        (here, port), (there, their_port) = local, remote
        try:
            self._diagnosis.send(_HEADS[len(here), protocol] + _ID.pack(port, their_port, here, there) + _ANY)
            answer = self._diagnosis.recv(8192)
        except OSError:
            return None
        if len(answer) < _INODE_AT + 4 or answer[_KIND_AT] == _ERROR:
            return None
        inode: int = _INODE.unpack_from(answer, _INODE_AT)[0]
        return inode or None

    def close(self) -> None:
        """Close the diagnosis socket."""
        self._diagnosis.close()

"""Which TCP ports have a server on loopback, or on every address, in the namespace of a socket diagnosis socket."""

from __future__ import annotations

import _socket
import struct

_SOCK_DIAG_BY_FAMILY = 20  # <linux/sock_diag.h>
_REQUEST_DUMP = 0x1 | 0x300  # NLM_F_REQUEST | NLM_F_DUMP, <linux/netlink.h>
_ERROR, _DONE = 2, 3  # NLMSG_ERROR, NLMSG_DONE
_LISTEN = 1 << 10  # TCP_LISTEN, <net/tcp_states.h>
_REQUEST = struct.Struct("=IHHIIBBBxI48x")  # nlmsghdr and inet_diag_req_v2 with an id of zeros
_LOOPBACK = (b"\x7f\0\0\1", bytes(15) + b"\1")


class Listening:
    """Asks through `diagnosis`, which may be shared with others that ask and read at once."""

    def __init__(self, diagnosis: _socket.socket) -> None:
        diagnosis.setblocking(False)
        self._diagnosis = diagnosis

    def ports(self) -> set[int]:
        """The ports at this moment. What cannot be asked has none."""
        found: set[int] = set()
        for family in (_socket.AF_INET, _socket.AF_INET6):
            request = _REQUEST.pack(
                _REQUEST.size, _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0, family, _socket.IPPROTO_TCP, 0, _LISTEN
            )
            try:
                self._diagnosis.send(request)
                while self._take(self._diagnosis.recv(1 << 16), found):
                    pass
            except OSError:
                continue
        return found

    def close(self) -> None:
        """Close the socket."""
        self._diagnosis.close()

    @staticmethod
    def _take(data: bytes, found: set[int]) -> bool:
        """Read one datagram of the dump; whether more follow."""
        at = 0
        while at + 16 <= len(data):
            size, kind = struct.unpack_from("=IH", data, at)
            if kind in (_DONE, _ERROR) or size < 16:
                return False
            # inet_diag_msg: four bytes, then the id with the port and the address in network order
            family = data[at + 16]
            port = int.from_bytes(data[at + 20 : at + 22], "big")
            width = 4 if family == _socket.AF_INET else 16
            address = data[at + 24 : at + 24 + width]
            if address in _LOOPBACK or not any(address):
                found.add(port)
            at += (size + 3) & ~3
        return True

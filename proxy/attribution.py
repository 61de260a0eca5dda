"""Says which process of a sandbox asked: pid as the host sees it, executable, arguments, parents up to the command.

Cheap enough for every connection: one exact question to the kernel, then the run's own few processes. What cannot be
said for certain is `unknown`: the process is gone, or its descriptors are too many to look through.
"""

from __future__ import annotations

import _socket

from doorward.proxy.listening import Listening
from doorward.proxy.plain_arguments import nothing_to_withhold
from doorward.proxy.socket_diagnosis import Sockets
from doorward.proxy.socket_owner import Owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from doorward.proxy.records import Attributed
    from doorward.proxy.resolver import IP
    from doorward.proxy.socket_diagnosis import End

UNKNOWN: Final = "unknown"
_MAPPED: Final = bytes(10) + b"\xff\xff"  # RFC 4291 §2.5.5.2


class Attribution:
    """The processes of one run. `root` is the process under which the sandbox's are: its child is bubblewrap, whose
    children lead to the command."""

    def __init__(self, diagnosis: _socket.socket, root: int) -> None:
        self._sockets = Sockets(diagnosis)
        self.listening = Listening(diagnosis)  # which ports have a server inside
        self._owners = Owners(root)

    def of_connection(self, accepted: _socket.socket, original: tuple[IP, int] | None = None) -> Attributed:
        """Who is at the other end of a connection that was accepted from the sandbox. `original` is where it believes
        it is connected, if that is not the accepted socket's own address."""
        try:
            theirs = _end(accepted.getpeername())
            ours = _end(accepted.getsockname()) if original is None else (original[0].packed, original[1])
        except (OSError, ValueError):
            return UNKNOWN
        return self._of(_socket.IPPROTO_TCP, theirs, ours)

    def of_datagram(self, sender: tuple[str, int], sent_to: tuple[bytes, int]) -> Attributed:
        """Who sent a datagram: the socket that is connected there, or one that is bound to the sender's port."""
        return self._of(_socket.IPPROTO_UDP, _end(sender), sent_to)

    def close(self) -> None:
        """Nothing more is asked."""
        self._owners.close()
        self._sockets.close()

    def _of(self, protocol: int, theirs: End, ours: End) -> Attributed:
        inode = self._sockets.inode(protocol, theirs, ours)
        line = None if inode is None else self._owners.find(inode)
        described = None if line is None else line.described(_shown)
        return UNKNOWN if described is None else described


def _shown(argv: list[str]) -> list[str]:
    if nothing_to_withhold(argv):
        return argv
    from doorward.proxy.withheld_arguments import without_credentials  # its patterns take 2-3 ms to compile

    return without_credentials(argv)


def _end(name: Sequence[Any]) -> End:
    """As the kernel compares them: an IPv4 address that came over IPv6 is the IPv4 address."""
    text, port = name[0].partition("%")[0], name[1]
    if ":" not in text:
        return _socket.inet_pton(_socket.AF_INET, text), port
    packed = _socket.inet_pton(_socket.AF_INET6, text)
    return (packed[12:] if packed.startswith(_MAPPED) else packed), port

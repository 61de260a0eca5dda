"""Says which process of a sandbox asked: pid as the host sees it, executable, arguments, parents up to the command.

Cheap enough for every connection: one exact question to the kernel, then the run's own few processes. What cannot be
said for certain is `unknown`: the process is gone, or its descriptors are too many to look through.
"""

from __future__ import annotations

import _socket
import os
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from doorward.allowlists.addresses import unmap
from doorward.proxy.listening import Listening
from doorward.proxy.resolver import IP
from doorward.proxy.socket_owner import Sockets, owner, parent_of
from doorward.proxy.withheld_arguments import without_credentials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doorward.proxy.records import Attributed

UNKNOWN: Final = "unknown"
_MOST_PARENTS: Final = 16
_REMEMBERED: Final = 8  # processes
_COMMAND_LINE: Final = 64 * 1024  # bytes read of one


class Attribution:
    """The processes of one run. `root` is the process under which the sandbox's are: its child is bubblewrap, whose
    children lead to the command."""

    def __init__(self, diagnosis: _socket.socket, root: int) -> None:
        self._sockets = Sockets(diagnosis)
        self.listening = Listening(diagnosis)  # which ports have a server inside
        self._root = root
        self._asked: dict[int, None] = {}  # those who asked before, the latest last: most often they ask again

    def of_connection(self, accepted: _socket.socket, original: tuple[IP, int] | None = None) -> Attributed:
        """Who is at the other end of a connection that was accepted from the sandbox. `original` is where it believes
        it is connected, if that is not the accepted socket's own address."""
        try:
            theirs = _end(accepted.getpeername())
            ours = original or _end(accepted.getsockname())
        except OSError:
            return UNKNOWN
        return self._of(_socket.IPPROTO_TCP, theirs, ours)

    def of_datagram(self, sender: tuple[IP, int], sent_to: tuple[IP, int]) -> Attributed:
        """Who sent a datagram: the socket that is connected there, or one that is bound to the sender's port."""
        return self._of(_socket.IPPROTO_UDP, sender, sent_to)

    def close(self) -> None:
        """Nothing more is asked."""
        self._sockets.close()

    def _of(self, protocol: int, theirs: tuple[IP, int], ours: tuple[IP, int]) -> Attributed:
        inode = self._sockets.inode(protocol, theirs, ours)
        if inode is None:
            return UNKNOWN
        process = owner(inode, self._root, [*reversed(self._asked)])
        if process is None:
            return UNKNOWN
        self._asked.pop(process, None)
        self._asked[process] = None
        if len(self._asked) > _REMEMBERED:
            del self._asked[next(iter(self._asked))]
        described = _described(process)
        if described is None:
            return UNKNOWN
        described["parents"] = self._parents(process)
        return described

    def _parents(self, process: int) -> list[dict[str, Any]]:
        """From the parent up to the command that was run; what is above it is the sandbox's own."""
        chain: list[int] = []
        at = parent_of(process)
        while at and at != self._root and len(chain) < _MOST_PARENTS:
            chain.append(at)
            at = parent_of(at)
        if at != self._root:
            return []
        # bubblewrap twice: itself, and process 1 of the sandbox; the command is the child of the second
        return [{"pid": each, "executable": _executable(each)} for each in chain[:-2]]


def _described(process: int) -> dict[str, Any] | None:
    executable = _executable(process)
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            words = file.read(_COMMAND_LINE).split(b"\0")
    except OSError:
        return None
    if words and not words[-1]:
        words.pop()
    if executable is None and not words:
        return None
    argv = without_credentials([os.fsdecode(word) for word in words])
    return {"pid": process, "executable": executable, "argv": argv}


def _executable(process: int) -> str | None:
    try:
        return os.readlink(f"/proc/{process}/exe")
    except OSError:
        return None


def _end(name: Sequence[Any]) -> tuple[IP, int]:
    return unmap(ip_address(name[0].partition("%")[0])), int(name[1])

"""Finds the process that holds a socket of a sandbox: the kernel names the inode, /proc says who has it open.

The inode comes from a socket diagnosis socket that was opened in the sandbox's network namespace (sock_diag(7)), by an
exact query for one connection. Only the run's own processes are looked through, newest first, and no more than
`MOST_DESCRIPTORS` descriptors: what is not found then is not guessed.
"""

from __future__ import annotations

import _socket
import os
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from doorward.proxy.resolver import IP

MOST_DESCRIPTORS: Final = 4096
"""Links in /proc read for one connection at most; each takes about 2 µs."""

_SOCK_DIAG_BY_FAMILY: Final = 20  # <linux/sock_diag.h>
_NLM_F_REQUEST: Final = 1
_ERROR: Final = 2  # NLMSG_ERROR, <linux/netlink.h>
_ALL_STATES: Final = 0xFFFFFFFF
# nlmsghdr, then inet_diag_req_v2 (<linux/inet_diag.h>), whose ports and addresses are in network order
_REQUEST: Final = struct.Struct("=IHHII BBBxI")
_SOCKET_ID: Final = struct.Struct("!HH16s16s")
_NO_COOKIE: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_LENGTH: Final = _REQUEST.size + _SOCKET_ID.size + len(_NO_COOKIE)
# in inet_diag_msg: family, state, timer, retransmissions, the id (48), expires, both queues, uid, inode
_INODE_AT: Final = 16 + 4 + 48 + 4 + 4 + 4 + 4


class Sockets:
    """Asks the kernel about the sockets of one network namespace, through a socket that was opened in it."""

    def __init__(self, diagnosis: _socket.socket) -> None:
        self._diagnosis = diagnosis
        diagnosis.setblocking(False)  # the answer is there when the request returns

    def inode(self, protocol: int, local: tuple[IP, int], remote: tuple[IP, int]) -> int | None:
        """The inode of the socket with these ends; None where there is none."""
        if protocol == _socket.IPPROTO_UDP:
            local, remote = remote, local  # udp_dump_one() takes them the other way round, net/ipv4/udp_diag.c
        request = _REQUEST.pack(
            _LENGTH,
            _SOCK_DIAG_BY_FAMILY,
            _NLM_F_REQUEST,
            1,
            0,
            _socket.AF_INET if local[0].version == 4 else _socket.AF_INET6,
            protocol,
            0,
            _ALL_STATES,
        )
        ends = _SOCKET_ID.pack(local[1], remote[1], local[0].packed.ljust(16, b"\0"), remote[0].packed.ljust(16, b"\0"))
        try:
            self._diagnosis.send(request + ends + _NO_COOKIE)
            answer = self._diagnosis.recv(8192)
        except OSError:
            return None
        if len(answer) < _INODE_AT + 4 or int.from_bytes(answer[4:6], "little") == _ERROR:
            return None
        return struct.unpack_from("=I", answer, _INODE_AT)[0] or None  # 0: nobody holds it any more

    def close(self) -> None:
        """Close the diagnosis socket."""
        self._diagnosis.close()


def owner(inode: int, root: int, likely: Iterable[int] = ()) -> int | None:
    """The process below `root` that has the socket open: the one that was started last, where several do; but those
    that are `likely`, as they asked before, are looked at first. None where none is found within the bound."""
    wanted = f"socket:[{inode}]"
    left = [MOST_DESCRIPTORS]
    for process in likely:
        if _holds(process, wanted, left) and _is_below(process, root):
            return process
    for process in _below(root):
        if left[0] <= 0:
            return None
        if _holds(process, wanted, left):
            return process
    return None


def parent_of(process: int) -> int | None:
    """The parent's pid; None where the process is gone."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _holds(process: int, wanted: str, left: list[int]) -> bool:
    folder = f"/proc/{process}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in reversed(names):  # the newest connection has one of the highest numbers
        left[0] -= 1
        if left[0] < 0:
            return False
        try:
            if os.readlink(f"{folder}/{name}") == wanted:
                return True
        except OSError:
            continue
    return False


def _is_below(process: int, root: int) -> bool:
    at: int | None = process
    for _ in range(64):
        if at == root:
            return True
        at = parent_of(at) if at else None
        if at is None:
            return False
    return False


def _below(root: int) -> Iterator[int]:
    """Descendants of `root`, each level's newest first, children before their parents."""
    stack = [(root, False)]
    while stack:
        process, seen = stack.pop()
        if seen:
            yield process
            continue
        if process != root:
            stack.append((process, True))
        stack += [(child, False) for child in _children(process)]


def _children(process: int) -> list[int]:
    """In the order of their start; threads may have children of their own."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return sorted(found)

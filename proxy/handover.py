"""Takes the sandbox's sockets from the launcher: one message, one descriptor (SCM_RIGHTS, unix(7))."""

from __future__ import annotations

import _socket
import os

from doorward.named_tuple import NamedTuple
from doorward.start_json import loads

_MESSAGE = 64 * 1024  # bytes of one message
_DESCRIPTORS = 16  # room for more than should come, so that none stays behind unseen
_NETLINK = 16  # AF_NETLINK, <linux/socket.h>

STREAMS = frozenset({"proxy", "transparent", "dns_tcp", "loopback", "published"})
"""Kinds of sockets that connections come in on."""

DATAGRAMS = frozenset({"dns_udp", "udp"})


class Handover(NamedTuple):
    """`kind` says what the socket is for, `port` which one it has inside, `root` the process below which the run's are.
    `socket` is None where the message brought none that is usable for it. `refused`: why the namespace has no
    transparent capture."""

    run: str
    policy: str
    kind: str
    port: int
    root: int
    socket: _socket.socket | None
    refused: str = ""


def take(channel: _socket.socket) -> Handover | None:
    """The next message of a non-blocking SOCK_SEQPACKET socket; None at its end. Raises BlockingIOError."""
    try:
        data, ancillary, _, _ = channel.recvmsg(_MESSAGE, _socket.CMSG_SPACE(_DESCRIPTORS * 4))
    except BlockingIOError:
        raise
    except OSError:  # reset, or closed by us: no more can come
        return None
    descriptors = descriptors_in(ancillary)
    if not data:
        _usable(descriptors, "")
        return None
    message = loads(data)
    kind = message.get("listener", "")
    return Handover(
        message["run"],
        message["policy"],
        kind,
        message.get("port", 0),
        message.get("root", 0),
        _usable(descriptors, kind),
        message.get("refused", ""),
    )


def descriptors_in(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    """The descriptors that came with a message (recvmsg(2)); they are the caller's to close."""
    found: list[int] = []
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            found += memoryview(data[: len(data) - len(data) % 4]).cast("i").tolist()
    return found


def _usable(descriptors: list[int], kind: str) -> _socket.socket | None:
    """The one socket, if it is of that kind; whatever else came is closed."""
    if len(descriptors) == 1:
        sock = None
        try:
            sock = _socket.socket(fileno=descriptors[0])
            if _is_of(sock, kind):
                os.set_inheritable(descriptors[0], False)
                return sock
        except OSError:
            pass
        if sock is not None:
            sock.close()
            return None
    for descriptor in descriptors:
        os.close(descriptor)
    return None


def _is_of(sock: _socket.socket, kind: str) -> bool:
    if kind in STREAMS:
        return bool(sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ACCEPTCONN))
    if kind in DATAGRAMS:
        return sock.family in (_socket.AF_INET, _socket.AF_INET6) and sock.type == _socket.SOCK_DGRAM
    if kind == "unreachable":
        return sock.family in (_socket.AF_INET, _socket.AF_INET6) and sock.type == _socket.SOCK_RAW
    if kind == "diagnosis":
        return sock.family == _NETLINK
    return kind == "maker" and sock.family == _socket.AF_UNIX

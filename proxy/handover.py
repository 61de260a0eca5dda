"""Takes listening sockets from the launcher: one message, one descriptor (SCM_RIGHTS, unix(7))."""

from __future__ import annotations

import _socket
import os

from doorward.named_tuple import NamedTuple
from doorward.start_json import loads

_MESSAGE = 64 * 1024  # bytes of one message
_DESCRIPTORS = 16  # room for more than should come, so that none stays behind unseen


class Handover(NamedTuple):
    """`listener` is None where the message brought no listening socket of a kind that is known."""

    run: str
    policy: str
    listener: _socket.socket | None


def take(channel: _socket.socket) -> Handover | None:
    """The next message of a non-blocking SOCK_SEQPACKET socket; None at its end. Raises BlockingIOError."""
    try:
        data, ancillary, _, _ = channel.recvmsg(_MESSAGE, _socket.CMSG_SPACE(_DESCRIPTORS * 4))
    except BlockingIOError:
        raise
    except OSError:  # reset, or closed by us: no more can come
        return None
    listener = _listener(_descriptors(ancillary))
    if not data:
        return None
    message = loads(data)
    if listener is not None and message.get("listener") != "proxy":
        listener.close()
        listener = None
    return Handover(message["run"], message["policy"], listener)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found: list[int] = []
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            found += memoryview(data[: len(data) - len(data) % 4]).cast("i").tolist()
    return found


def _listener(descriptors: list[int]) -> _socket.socket | None:
    """The one listening socket; whatever else came is closed."""
    if len(descriptors) == 1:
        sock = None
        try:
            sock = _socket.socket(fileno=descriptors[0])
            if sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ACCEPTCONN):
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

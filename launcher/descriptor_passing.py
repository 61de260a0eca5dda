"""Bytes and descriptors over a unix stream socket (unix(7), SCM_RIGHTS): one message out, pieces of it in."""

from __future__ import annotations

import sys
from _socket import AF_UNIX, CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET
from _socket import socket as Socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The first piece of a message must fit into the socket's buffer together with its descriptors.
_PIECE = 1 << 15
_MOST_DESCRIPTORS = 8


def send(channel: int, data: bytes, descriptors: Sequence[int]) -> None:
    """Send all of `data`, the descriptors with its first piece. Raises OSError if the far end is gone."""
    sender = Socket(AF_UNIX, SOCK_STREAM, 0, channel)
    try:
        rights = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
        sent = sender.sendmsg([data[:_PIECE]], [(SOL_SOCKET, SCM_RIGHTS, rights)] if rights else [])
        if sent < len(data):  # who has all may have closed, and then even nothing cannot be sent
            sender.sendall(data[sent:])
    finally:
        sender.detach()


def receive(channel: int, descriptors: list[int]) -> bytes:
    """The next piece, b"" at the end; descriptors that came with it are added to `descriptors`. Raises OSError."""
    receiver = Socket(AF_UNIX, SOCK_STREAM, 0, channel)
    try:
        piece, ancillary, _, _ = receiver.recvmsg(1 << 16, CMSG_SPACE(_MOST_DESCRIPTORS * 4), MSG_CMSG_CLOEXEC)
    finally:
        receiver.detach()
    for _, _, rights in ancillary:
        numbers = (rights[at : at + 4] for at in range(0, len(rights), 4))
        descriptors += (int.from_bytes(number, sys.byteorder) for number in numbers)
    return piece

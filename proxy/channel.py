"""A connected stream socket that the loop watches: receive, send, end, close.

The `try_` calls never wait and say None (or 0) when the system would have blocked; the others wait, each with an
absolute deadline of the loop's clock."""

from __future__ import annotations

import _socket

from doorward.proxy.clock import NEVER
from doorward.proxy.loop import Loop
from doorward.proxy.task import DeadlinePassed, Watch

READ_SIZE = 32 * 1024
"""Bytes asked for in one receive: more than any ordinary head, little enough to be cheap to allocate."""

_LINGER_TURN = 1024 * 1024  # bytes dropped before other connections get their turn

_KEEP_ALIVE_AFTER = 120
"""Seconds of silence before the kernel asks whether the peer still lives (tcp(7), TCP_KEEPIDLE)."""

_UNPACED = b"reno"
"""The congestion control of connections that never leave the machine: every Linux has it. One that paces (BBR, the
default of many machines) sends by a timer, and over loopback a stream then takes half as much CPU again."""

_KEEP_IDLE = getattr(_socket, "TCP_KEEPIDLE", 0x10)  # which macOS calls TCP_KEEPALIVE (tcp(4))
_CONGESTION = getattr(_socket, "TCP_CONGESTION", 0)  # Linux has it


class Channel(Watch):
    """A non-blocking stream socket. `splices`: its bytes may be moved by splice(2)."""

    __slots__ = ("sock",)

    splices = True

    def __init__(self, loop: Loop, sock: _socket.socket, *, only_read: bool = False) -> None:
        """`sock` must be non-blocking. `only_read`: see `Watch`."""
        Watch.__init__(self, loop, sock.fileno(), only_read)
        self.sock = sock

    def try_recv(self, size: int = READ_SIZE) -> bytes | None:
        """Up to `size` bytes, b"" at the end of the stream, None when there is nothing now. Raises OSError."""
        if not self.can_read:
            return None
        try:
            data = self.sock.recv(size)
        except BlockingIOError:
            self.can_read = False
            return None
        if len(data) < size and not self.hung_up:
            self.can_read = False  # drained; an end that comes later is an edge of its own (epoll(7), questions 9)
        return data

    def try_send(self, data: bytes | bytearray | memoryview) -> int:
        """Bytes taken, 0 when none can be taken now. Raises OSError."""
        if not self.can_write:
            return 0
        try:
            sent = self.sock.send(data)
        except BlockingIOError:
            self.can_write = False
            return 0
        if sent < len(data):
            self.can_write = False
        return sent

    async def recv(self, size: int = READ_SIZE, deadline: float = NEVER) -> bytes:
        """Up to `size` bytes, b"" at the end of the stream. Raises OSError, DeadlinePassed."""
        while True:
            if self.can_read:
                data = self.try_recv(size)
                if data is not None:
                    return data
            await self.readable(deadline)

    async def send(self, data: bytes | bytearray, deadline: float = NEVER) -> None:
        """Send all of it. Raises OSError, DeadlinePassed; what was taken until then is not known."""
        sent = self.try_send(data)
        if sent == len(data):
            return
        rest = memoryview(data)[sent:]
        while rest:
            await self.writable(deadline)
            rest = rest[self.try_send(rest) :]

    def end(self) -> None:
        """Say that no more is sent (a half-close); harmless when the connection is gone."""
        try:
            self.sock.shutdown(_socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        """Close; harmless a second time."""
        self.forget()
        self.sock.close()

    def abort(self) -> None:
        """Close with a reset, so that the peer cannot take what it has for the whole (SO_LINGER, socket(7))."""
        if self.fd >= 0:
            try:
                self.sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            except OSError:
                pass
        self.close()


def tune(sock: _socket.socket, *, local: bool = False) -> None:
    """Send small writes at once and notice a dead peer. `local`: every peer is on this machine, whose kernel tells at
    once when one is dead. Accepted sockets inherit it from their listener (tcp(7)). For TCP; harmless on other sockets.
    """
    try:
        sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        if not local:
            sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)
            sock.setsockopt(_socket.IPPROTO_TCP, _KEEP_IDLE, _KEEP_ALIVE_AFTER)
    except OSError:
        pass


def do_not_pace(listener: _socket.socket) -> None:
    """For a listener all of whose clients are on this machine; accepted sockets inherit it."""
    if _CONGESTION:
        try:
            listener.setsockopt(_socket.IPPROTO_TCP, _CONGESTION, _UNPACED)
        except OSError:
            pass


async def linger(channel: Channel, deadline: float, most: int) -> None:
    """End a connection so that the last answer arrives: end our side, then read and drop up to `most` bytes until the
    client ends too. Closing with unread bytes in the buffer would make the kernel send a reset, and a reset may
    overtake the answer (RFC 9112 §9.6). Never raises; the caller closes."""
    channel.end()
    loop = channel.loop
    try:
        while most > 0:
            turn = _LINGER_TURN
            while turn > 0:
                data = await channel.recv(deadline=deadline)
                if not data:
                    return
                turn -= len(data)
            most -= _LINGER_TURN
            await loop.turn()
            if loop.now >= deadline:
                return
    except (OSError, DeadlinePassed):
        return

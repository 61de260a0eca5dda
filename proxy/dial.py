"""Connects to one of the judged addresses, and to nothing else.

Happy eyeballs (RFC 8305): the families take turns, an attempt that has not connected after 250 ms gets company, one
that failed is followed at once, the first to connect wins and the others are closed. No name is looked up here.
"""

from __future__ import annotations

import _socket
import errno
import os

from doorward.proxy.channel import Channel, tune
from doorward.proxy.loop import Loop
from doorward.proxy.resolver import IP
from doorward.proxy.task import DeadlinePassed
from doorward.typing_names import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STAGGER = 0.25
"""Seconds between two attempts (RFC 8305 §5, Connection Attempt Delay)."""


class DialFailed(Exception):
    """No address could be reached; the text says why, in a plain sentence."""


# Saves a system call where the kernel takes it (socket(2) of Linux).
_NONBLOCKING = getattr(_socket, "SOCK_NONBLOCK", 0)

_LOOPBACK = ("127.", "::1")


class Dialler(Protocol):
    """What starts a connection; tests bring their own and record the attempts."""

    def begin(self, loop: Loop, ip: IP, port: int) -> Channel:
        """A channel that is connecting: it becomes writable when that is decided. Raises OSError."""


class SocketDialler:
    """Ordinary TCP sockets."""

    def __init__(self) -> None:
        self._latest: _Place | None = None

    def begin(self, loop: Loop, ip: IP, port: int) -> Channel:
        """See `Dialler`."""
        place = self._latest
        if place is None or place.ip is not ip or place.port != port:  # clients ask for one place again and again
            place = self._latest = _Place(ip, port)
        sock = _socket.socket(place.family, _socket.SOCK_STREAM | _NONBLOCKING, _socket.IPPROTO_TCP)
        if not _NONBLOCKING:
            sock.setblocking(False)
        tune(sock, local=place.local)
        channel = Channel(loop, sock)
        code = sock.connect_ex(place.name)
        if code == errno.EINPROGRESS and place.local:
            code = sock.connect_ex(place.name)  # it is decided by now, and a second call says how (connect(2))
        channel.can_read = False  # the loop will say, from the first wait on
        if code in (errno.EINPROGRESS, errno.EALREADY):
            channel.can_write = False
        elif code:
            channel.close()
            raise OSError(code, os.strerror(code))
        return channel


class _Place:
    """An address and a port, as the system wants them."""

    __slots__ = ("family", "ip", "local", "name", "port")

    def __init__(self, ip: IP, port: int) -> None:
        self.ip = ip
        self.port = port
        self.family = _socket.AF_INET if ip.version == 4 else _socket.AF_INET6
        self.name = (_socket.inet_ntoa(ip.packed) if ip.version == 4 else str(ip), port)
        self.local = self.name[0].startswith(_LOOPBACK)


def in_order(addresses: Iterable[IP]) -> list[IP]:
    """The families interleaved, beginning with the first address's; within a family the order stays (RFC 8305 §4)."""
    left = list(addresses)
    ordered: list[IP] = []
    while left:
        wanted = left[0].version if not ordered else 10 - ordered[-1].version  # 4 and 6
        index = next((index for index, ip in enumerate(left) if ip.version == wanted), 0)
        ordered.append(left.pop(index))
    return ordered


async def dial(loop: Loop, dialler: Dialler, addresses: Sequence[IP], port: int, seconds: float) -> tuple[Channel, IP]:
    """A connected channel and the address it leads to. Raises DialFailed when all failed or `seconds` passed."""
    if len(addresses) == 1:
        channel = begin_one(loop, dialler, addresses[0], port)
        if not channel.can_write:
            await finish_one(channel, addresses[0], port, seconds)
        return channel, addresses[0]
    waiting = in_order(addresses)
    deadline = loop.now + seconds
    next_start = loop.now
    attempts: list[tuple[Channel, IP]] = []
    problem = "there is no address"
    try:
        while True:
            if waiting and loop.now >= next_start:
                ip = waiting.pop(0)
                try:
                    attempts.append((dialler.begin(loop, ip, port), ip))
                    next_start = loop.now + STAGGER
                except OSError as error:
                    problem = f"{_where(ip, port)}: {_why(error.errno)}"
                continue
            if not attempts:
                raise DialFailed(f"Cannot connect: {problem}.")
            decided = next((attempt for attempt in attempts if attempt[0].can_write), None)
            if decided is None:
                limit = min(deadline, next_start) if waiting else deadline
                await loop.wait_any((), [channel for channel, _ in attempts], limit)
                if loop.now >= deadline and not any(channel.can_write for channel, _ in attempts):
                    raise _silent(attempts[-1][1], port, seconds)
                continue
            channel, ip = decided
            code = channel.sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
            attempts.remove(decided)
            if not code:
                channel.can_read = True
                return channel, ip
            channel.close()
            problem = f"{_where(ip, port)}: {_why(code)}"
            next_start = loop.now
    finally:
        for channel, _ in attempts:
            channel.close()


def begin_one(loop: Loop, dialler: Dialler, ip: IP, port: int) -> Channel:
    """A channel that is connected if it can be written, else `finish_one` waits for it. Raises DialFailed."""
    try:
        return dialler.begin(loop, ip, port)
    except OSError as error:
        raise DialFailed(f"Cannot connect: {_where(ip, port)}: {_why(error.errno)}.") from None


async def finish_one(channel: Channel, ip: IP, port: int, seconds: float) -> None:
    """Wait until it is connected. Raises DialFailed, and has closed it then."""
    try:
        await channel.writable(channel.loop.now + seconds)
        code = channel.sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
        if code:
            raise DialFailed(f"Cannot connect: {_where(ip, port)}: {_why(code)}.")
    except DeadlinePassed:
        channel.close()
        raise _silent(ip, port, seconds) from None
    except BaseException:
        channel.close()
        raise


def _silent(ip: IP, port: int, seconds: float) -> DialFailed:
    return DialFailed(f"Cannot connect: {_where(ip, port)} did not answer in {seconds:g} s.")


def _where(ip: IP, port: int) -> str:
    return f"[{ip}] port {port}" if ip.version == 6 else f"{ip} port {port}"


def _why(code: int | None) -> str:
    return os.strerror(code or 0).lower()

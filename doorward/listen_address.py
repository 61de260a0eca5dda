"""Where the door alone listens: addresses as they are written, checked, and opened.

Whoever reaches the door uses what its rules allow, so an address that other machines can reach needs a word of its own.
A name is not looked up: what is listened on is what was written.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple

from doorward.errors import UsageError

ANY_ADDRESS = "dangerously-listen-on-any-address"
"""The option that lifts the limit to loopback."""

_BACKLOG = 1024  # connections that may wait to be accepted


class ListenAddress(NamedTuple):
    """An address literal and a port; port 0 takes a free one."""

    host: str
    port: int

    @property
    def text(self) -> str:
        """As it is written."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str, option: str = "--listen") -> ListenAddress:
    """`127.0.0.1:3128`, `[::1]:3128`. Raises UsageError that says what to write instead."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise _wrong(option, text, "it takes ADDRESS:PORT, the port from 0 (any free one) to 65535", "127.0.0.1:3128")
    if not bare:
        raise _wrong(option, text, "the address is missing", f"127.0.0.1:{port}")
    if bare == "localhost":
        raise _wrong(option, text, "localhost is two addresses", f"127.0.0.1:{port}")
    if ":" in bare and not bracketed:
        raise _wrong(option, text, "an IPv6 address stands in brackets", f"[{bare}]:{port}")
    try:
        ip = ip_address(bare)
    except ValueError:
        raise _wrong(option, text, "a name is not looked up", f"127.0.0.1:{port}") from None
    if "%" in bare or bracketed != (ip.version == 6) or (ip.version == 6 and ip.ipv4_mapped):
        raise _wrong(option, text, "that is no plain address", f"127.0.0.1:{port}")
    return ListenAddress(str(ip), int(port))


def require_loopback(addresses: Iterable[ListenAddress], allowed: bool, option: str = "--listen") -> None:
    """Raises UsageError for the first address that other machines may reach, unless that is `allowed`."""
    for address in addresses:
        if not allowed and not ip_address(address.host).is_loopback:
            raise UsageError(
                f"doorward proxy: {option} {address.text} can be reached from other machines, and whoever reaches the "
                f"door can use all it allows; listen on 127.0.0.1, or say --{ANY_ADDRESS}"
            )


def open_listeners(address: ListenAddress, count: int, option: str = "--listen") -> list[socket.socket]:
    """`count` listening sockets that share the address, its connections spread among them. Raises UsageError."""
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            port = sockets[0].getsockname()[1] if sockets else address.port
            sockets.append(_open(address.host, port, first=not sockets, shared=count > 1))
    except BaseException as error:
        for each in sockets:
            each.close()
        if isinstance(error, OSError):
            raise UsageError(f"doorward proxy: {_explain(address, error, option)}") from None
        raise
    return sockets


def bound_address(listener: socket.socket) -> ListenAddress | None:
    """Where a TCP socket is bound; None for one of another family."""
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    host, port = listener.getsockname()[:2]
    return ListenAddress(host.partition("%")[0], port)


def _open(host: str, port: int, *, first: bool, shared: bool) -> socket.socket:
    """The first is bound alone, so that an address somebody else listens on is noticed, and shared only then
    (SO_REUSEPORT, socket(7))."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if not first:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
        if shared and first:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.listen(_BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def _wrong(option: str, text: str, why: str, instead: str) -> UsageError:
    return UsageError(f"doorward proxy: {option} {text!r}: {why}; for instance {option} {instead}")


def _explain(address: ListenAddress, error: OSError, option: str) -> str:
    text = address.text
    if error.errno == errno.EADDRINUSE:
        free = ListenAddress(address.host, 0).text
        return (
            f"{text} is taken by another program (`ss -ltnp 'sport = :{address.port}'` shows which); "
            f"end it, take another port, or let one be chosen: {option} {free}"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"this machine has no address {address.host} (`ip address` lists those it has)"
    if error.errno == errno.EAFNOSUPPORT:
        return f"this machine has no IPv6, so it cannot listen on {text}; {option} 127.0.0.1:{address.port}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{text}: only root may listen on ports below 1024 here; take a higher one, or let systemd open it"
    return f"cannot listen on {text}: {os.strerror(error.errno or 0)}"

"""Knows every listener of this process, so that the door never connects to itself.

The addresses compared are the bound ones, not the configured ones (a configured port 0 says nothing). A wildcard bind
takes in every address of the machine; the unspecified address as a target means loopback (Linux connects it there).
"""

from __future__ import annotations

import _socket

from doorward.allowlists.addresses import unmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from doorward.proxy.resolver import IP


class OwnListeners:
    """The bound addresses, by port."""

    def __init__(self) -> None:
        self._by_port: dict[int, list[str]] = {}  # addresses are read when somebody dials one of the ports

    def add(self, sock: _socket.socket) -> None:
        """A listening TCP socket; call it after bind. Sockets of other families are nobody's target."""
        bound = _bound(sock)
        if bound is not None:
            host, port = bound
            self._by_port.setdefault(port, []).append(host)

    def discard(self, sock: _socket.socket) -> None:
        """The listener is about to be closed."""
        bound = _bound(sock)
        if bound is not None and bound[0] in self._by_port.get(bound[1], ()):
            host, port = bound
            self._by_port[port].remove(host)
            if not self._by_port[port]:
                del self._by_port[port]

    def any_of(self, addresses: Iterable[IP], port: int) -> IP | None:
        """The first of `addresses` at which one of our listeners answers, or None."""
        hosts = self._by_port.get(port)
        if hosts:
            from ipaddress import ip_address

            bound = [unmap(ip_address(host)) for host in hosts]
            for ip in addresses:
                if any(_reaches(unmap(ip), at) for at in bound):
                    return ip
        return None


def _bound(sock: _socket.socket) -> tuple[str, int] | None:
    if sock.family not in (_socket.AF_INET, _socket.AF_INET6):
        return None
    name = sock.getsockname()
    return name[0].partition("%")[0], name[1]


def _reaches(target: IP, bound: IP) -> bool:
    if target == bound:
        return True
    if target.is_unspecified:
        return bound.is_unspecified or bound.is_loopback
    return bound.is_unspecified and (target.is_loopback or _is_ours(target))


def _is_ours(ip: IP) -> bool:
    """Whether the machine has this address: it can be bound. Asked only for the port of a wildcard listener."""
    family = _socket.AF_INET if ip.version == 4 else _socket.AF_INET6
    probe = _socket.socket(family, _socket.SOCK_DGRAM)
    try:
        probe.bind((str(ip), 0))
    except OSError:
        return False
    finally:
        probe.close()
    return True

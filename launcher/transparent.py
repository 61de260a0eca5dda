"""Makes every address of the sandbox's network namespace lead to the door: routes, and one nftables table.

Any address is a local one (`local default dev lo`), so nothing leaves, datagrams to a port where nobody listens are
refused at once, and TCP connections are redirected to the door's own port; those to loopback, and to port 53, where
the door's name server listens on every address, are left alone. The messages are pyroute2's (see `netlink_messages`).
Runs in the forked child only, which has the capabilities of the namespace.
"""

import os
import select
import sys
from _socket import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    IPPROTO_IPV6,
    IPV6_V6ONLY,
    SOCK_CLOEXEC,
    SOCK_DGRAM,
    SOCK_RAW,
    SOCK_STREAM,
)
from _socket import socket as Socket

from doorward.launcher.interface import TRANSPARENT_PORT, Door
from doorward.launcher.netlink_messages import REDIRECT, ROUTES

_NETLINK_ROUTE = 0  # <linux/netlink.h>
_NETLINK_SOCK_DIAG = 4
_NETLINK_NETFILTER = 12
_IP_PKTINFO = 8  # <linux/in.h>
_IPV6_RECVPKTINFO = 49  # <linux/in6.h>
_IPV6_FREEBIND = 78
_ICMP, _ICMPV6, _SOL_RAW = 1, 58, 255  # <linux/in.h>, <linux/in6.h>
_FILTER = 1  # ICMP_FILTER and ICMPV6_FILTER, <linux/icmp.h>, <linux/icmpv6.h>: each bit set is a type kept out
_DNS = 53
_BACKLOG = 1024
_PATIENCE_S = 2.0

Opened = tuple[str, int, Socket]
"""A socket with its kind and port, as the door is told them."""


class CaptureRefused(Exception):
    """The kernel does not take the routes or the table. The text says which, and why."""


def capture() -> None:
    """Lay the routes and the table. Raises CaptureRefused; nothing is redirected then."""
    if sys.byteorder != "little":  # the messages are in the byte order of those who encoded them
        raise CaptureRefused("its messages are not there for this machine's byte order")
    for family, message in ROUTES:
        number = _told(_NETLINK_ROUTE, message)
        if number and not (family == AF_INET6 and not _has_ipv6()):
            raise CaptureRefused(f"the kernel does not take the routes ({os.strerror(number).lower()})")
    number = _told(_NETLINK_NETFILTER, REDIRECT)
    if number:
        raise CaptureRefused(f"the kernel does not take an nftables table ({os.strerror(number).lower()})")


def open_captured() -> list[Opened]:
    """The sockets to which captured connections and questions about names come."""
    opened: list[Opened] = []
    try:
        for family, own, any_address in ((AF_INET, "127.0.0.1", "0.0.0.0"), (AF_INET6, "::1", "::")):
            if family == AF_INET6 and not _has_ipv6():
                break
            opened.append(("transparent", TRANSPARENT_PORT, listener(family, own, TRANSPARENT_PORT)))
            opened.append(("dns_udp", _DNS, datagrams(family, any_address, _DNS)))
            opened.append(("dns_tcp", _DNS, listener(family, any_address, _DNS)))
    except BaseException:
        close(opened)
        raise
    return opened


def open_granted(door: Door) -> list[Opened]:
    """The sockets of what was granted besides: ports of the host's loopback, and of datagrams. Raises OSError."""
    opened: list[Opened] = []
    try:
        for family, own, any_address in ((AF_INET, "127.0.0.1", "0.0.0.0"), (AF_INET6, "::1", "::")):
            if family == AF_INET6 and not _has_ipv6():
                break
            opened += [("loopback", port, listener(family, own, port)) for port in door.loopback]
            if door.udp:
                opened += unreachable(family)
            opened += [("udp", port, datagrams(family, any_address, port)) for port in door.udp]
    except BaseException:
        close(opened)
        raise
    return opened


def unreachable(family: int) -> list[Opened]:
    """A raw socket by which the door tells senders of datagrams that nobody takes them (icmp(7)). It hears nothing.
    None where the kernel refuses it: they are dropped in silence then."""
    try:
        made = Socket(family, SOCK_RAW | SOCK_CLOEXEC, _ICMPV6 if family == AF_INET6 else _ICMP)
    except OSError:
        return []
    try:
        if family == AF_INET6:
            made.setsockopt(_ICMPV6, _FILTER, b"\xff" * 32)
            made.setsockopt(IPPROTO_IPV6, _IPV6_FREEBIND, 1)
        else:
            made.setsockopt(_SOL_RAW, _FILTER, b"\xff" * 4)
    except BaseException:
        made.close()
        raise
    return [("unreachable", 0, made)]


def open_diagnosis() -> Opened:
    """A socket by which the door asks which process a connection belongs to (sock_diag(7)). Raises OSError."""
    return "diagnosis", 0, Socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)


def close(opened: list[Opened]) -> None:
    """Close all of them."""
    for _, _, each in opened:
        each.close()


def datagrams(family: int, address: str, port: int) -> Socket:
    """A socket for datagrams to `port` that tells the address each was sent to (ip(7), IP_PKTINFO)."""
    made = Socket(family, SOCK_DGRAM | SOCK_CLOEXEC)
    try:
        if family == AF_INET6:
            made.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)
            made.setsockopt(IPPROTO_IPV6, _IPV6_RECVPKTINFO, 1)
            # an answer comes from the address that was asked, which is on no interface (ipv6_can_nonlocal_bind())
            made.setsockopt(IPPROTO_IPV6, _IPV6_FREEBIND, 1)
        else:
            made.setsockopt(0, _IP_PKTINFO, 1)  # SOL_IP
        made.bind((address, port))
    except BaseException:
        made.close()
        raise
    return made


def listener(family: int, address: str, port: int) -> Socket:
    """A listening stream socket. Raises OSError."""
    made = Socket(family, SOCK_STREAM | SOCK_CLOEXEC)
    try:
        if family == AF_INET6:
            made.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)
        made.bind((address, port))
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def _has_ipv6() -> bool:
    """Whether ::1 is there: a kernel may be without IPv6, or have it switched off for new namespaces."""
    try:
        probe = Socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC)
    except OSError:
        return False
    try:
        probe.bind(("::1", 0))
    except OSError:
        return False
    finally:
        probe.close()
    return True


def _told(protocol: int, message: bytes) -> int:
    """Send one message, or a batch that asks for the acknowledgement of its last; the error number, 0 for none."""
    try:
        channel = Socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol)
    except OSError as error:
        return error.errno or 1
    try:
        channel.send(message)
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        if not poll.poll(_PATIENCE_S * 1000):
            return 110  # ETIMEDOUT
        # nlmsghdr of 16 bytes, then the error of nlmsgerr; the first that comes is the one that counts
        answer = channel.recv(65536)
        return -int.from_bytes(answer[16:20], sys.byteorder, signed=True)
    except OSError as error:
        return error.errno or 1
    finally:
        channel.close()

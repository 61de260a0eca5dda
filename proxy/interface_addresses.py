"""The addresses of this machine's own interfaces, so that a public one of them counts as local.

One netlink dump (rtnetlink(7), RTM_GETADDR): the kernel answers at once, no process is started and no file is read.
Where it cannot be had the start goes on: every other part of the address guard holds without it, and a notice says what
does not.
"""

from __future__ import annotations

import _socket
import os
import struct

from doorward.named_tuple import NamedTuple
from doorward.typing_names import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

# netlink(7), linux/netlink.h, linux/rtnetlink.h, linux/if_addr.h
_HEADER: Final = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ADDRESS: Final = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, interface
_ATTRIBUTE: Final = struct.Struct("=HH")  # length, type
_ERROR: Final = struct.Struct("=i")
_NLMSG_ERROR, _NLMSG_DONE, _NLMSG_OVERRUN, _RTM_NEWADDR, _RTM_GETADDR = 2, 3, 4, 20, 22
_NLM_F_REQUEST, _NLM_F_DUMP, _NLM_F_DUMP_INTR = 0x1, 0x300, 0x10
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_AF_INET, _AF_INET6 = 2, 10

_SEQUENCE: Final = 1
_MOST_BYTES: Final = 1 << 16  # of one datagram; the kernel fills at most 32 KiB
_MOST_DATAGRAMS: Final = 4096
_PATIENCE_S: Final = 0.1  # for each datagram; the kernel has it ready
_ATTEMPTS: Final = 3  # an address that comes or goes during a dump makes it useless


class InterfaceAddresses(NamedTuple):
    """`addresses` packed (4 or 16 bytes), in the kernel's order, each once; `notice` is a sentence for a person where
    they cannot be had."""

    addresses: tuple[bytes, ...]
    notice: str = ""


class Datagrams(Protocol):
    """What is needed of a netlink socket."""

    def send(self, data: bytes, /) -> int:
        """Send one request."""

    def recvfrom(self, most: int, /) -> tuple[bytes, object]:
        """Receive one datagram and its sender, `(port, groups)`."""

    def close(self) -> None:
        """Close it."""


def interface_addresses(open_socket: Callable[[], Datagrams] | None = None) -> InterfaceAddresses:
    """Every address of every interface, IPv4 and IPv6, of the network namespace of this thread. Raises nothing."""
    try:
        if open_socket is None and not hasattr(_socket, "AF_NETLINK"):
            from doorward.proxy.getifaddrs import interface_addresses_of_libc

            return InterfaceAddresses(tuple(dict.fromkeys(interface_addresses_of_libc())))
        netlink = (open_socket or _open_netlink)()
        try:
            for _ in range(_ATTEMPTS):
                found = _dump(netlink)
                if found is not None:
                    return InterfaceAddresses(tuple(dict.fromkeys(found)))
            why = "they keep changing"
        finally:
            netlink.close()
    except TimeoutError:
        why = "the kernel does not answer"
    except OSError as error:
        why = (error.strerror or str(error)).lower()
    except (AttributeError, struct.error, ValueError):  # no netlink on this system, or an answer of another form
        why = "this system does not tell them"
    return InterfaceAddresses(
        (),
        f"the addresses of this machine's interfaces cannot be read ({why}); a public one of them counts as any other "
        "public address",
    )


def _open_netlink() -> Datagrams:
    netlink = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, _socket.NETLINK_ROUTE)
    netlink.settimeout(_PATIENCE_S)
    return netlink


def _dump(netlink: Datagrams) -> list[bytes] | None:
    """One dump; None if it was disturbed. Raises OSError, and what a malformed answer leads to."""
    length = _HEADER.size + _ADDRESS.size
    header = _HEADER.pack(length, _RTM_GETADDR, _NLM_F_REQUEST | _NLM_F_DUMP, _SEQUENCE, 0)
    netlink.send(header + _ADDRESS.pack(0, 0, 0, 0, 0))
    found: list[bytes] = []
    undisturbed = True
    for _ in range(_MOST_DATAGRAMS):
        data, sender = netlink.recvfrom(_MOST_BYTES)
        if sender == (0, 0):  # the kernel
            done, whole = read_messages(data, found)
            undisturbed = undisturbed and whole
            if done:
                return found if undisturbed else None
    raise ValueError("a dump without an end")


def read_messages(data: bytes, found: list[bytes]) -> tuple[bool, bool]:
    """Add the addresses that one datagram tells to `found`. Whether the dump ends with it, and whether it is a
    faithful one so far. Raises OSError for an error the kernel reports; struct.error or ValueError for other bytes."""
    at = 0
    faithful = True
    while at + _HEADER.size <= len(data):
        length, kind, flags, sequence, _ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size or at + length > len(data):
            raise ValueError("a netlink message of impossible length")
        if sequence == _SEQUENCE:
            faithful = faithful and not flags & _NLM_F_DUMP_INTR
            if kind == _NLMSG_DONE:
                return True, faithful
            if kind == _NLMSG_OVERRUN:
                raise ValueError("the kernel lost messages")
            if kind == _NLMSG_ERROR:
                number = -_ERROR.unpack_from(data, at + _HEADER.size)[0]
                raise OSError(number, os.strerror(number))
            if kind == _RTM_NEWADDR:
                ip = _own_address(data, at + _HEADER.size, at + length)
                if ip is not None:
                    found.append(ip)
        at += _aligned(length)
    return False, faithful


def _own_address(data: bytes, at: int, end: int) -> bytes | None:
    """The address that one message is about. On a point-to-point link IFA_ADDRESS is the far end's, IFA_LOCAL ours."""
    family = _ADDRESS.unpack_from(data, at)[0]
    if family not in (_AF_INET, _AF_INET6):
        return None
    at += _ADDRESS.size
    local = address = b""
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size or at + length > end:
            raise ValueError("a netlink attribute of impossible length")
        if kind == _IFA_LOCAL:
            local = data[at + _ATTRIBUTE.size : at + length]
        elif kind == _IFA_ADDRESS:
            address = data[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)
    own = local or address
    if not own:
        return None
    if len(own) != (4 if family == _AF_INET else 16):
        raise ValueError("a netlink address of impossible length")
    return own


def _aligned(length: int) -> int:
    return (length + 3) & ~3

"""The addresses of this machine's interfaces from the C library, where there is no netlink (macOS): getifaddrs(3)."""

from __future__ import annotations

import ctypes
import os

# <sys/socket.h> of macOS; on Linux AF_INET6 is 10
_AF_INET, _AF_INET6 = 2, {True: 30, False: 10}


class _Entry(ctypes.Structure):
    """struct ifaddrs, as far as it is read: the same on macOS and Linux."""

    _fields_ = (
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("flags", ctypes.c_uint),
        ("address", ctypes.c_void_p),
    )


def interface_addresses_of_libc(*, bsd: bool = True) -> list[bytes]:
    """Every IPv4 and IPv6 address, packed. `bsd` says that a socket address begins with its length. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.getifaddrs.argtypes = (ctypes.c_void_p,)
    libc.freeifaddrs.argtypes = (ctypes.c_void_p,)
    first = ctypes.c_void_p()
    if libc.getifaddrs(ctypes.byref(first)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    found: list[bytes] = []
    try:
        at = first.value
        while at:
            entry = _Entry.from_address(at)
            if entry.address:
                ip = read_socket_address(ctypes.string_at(entry.address, 2), entry.address, bsd=bsd)
                if ip is not None:
                    found.append(ip)
            at = entry.next
    finally:
        libc.freeifaddrs(first)
    return found


def read_socket_address(head: bytes, at: int, *, bsd: bool) -> bytes | None:
    """The packed address in the socket address at `at`; `head` are its first two bytes (sockaddr_in, sockaddr_in6)."""
    family = head[1] if bsd else int.from_bytes(head, "little")
    if family == _AF_INET:
        return ctypes.string_at(at + 4, 4)
    if family == _AF_INET6[bsd]:
        return ctypes.string_at(at + 8, 16)
    return None

"""The ports a person grants: of the host's loopback, and of servers inside that are published. Read, checked, opened.

Imported only by runs that have any.
"""

from __future__ import annotations

import os
import socket

from doorward.errors import UsageError
from doorward.launcher.interface import PROXY_PORT, TRANSPARENT_PORT
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ALL = "all"
AUTO = "auto"

_RESERVED = {53: "the sandbox's name server", PROXY_PORT: "the proxy", TRANSPARENT_PORT: "captured connections"}


class MalformedPort(ValueError):
    """The entry is no port. The text is one plain clause."""


class Published(NamedTuple):
    """A server at `inside` of the sandbox's loopback is reached at `outside` of the host's."""

    inside: int
    outside: int


def loopback_ports(entry: object) -> tuple[int, ...] | str:
    """`5432`, `5432,8080` or `all`. Raises MalformedPort."""
    if isinstance(entry, str) and entry.strip() == ALL:
        return ALL
    ports = tuple(_port(part) for part in (entry.split(",") if isinstance(entry, str) else [entry]))
    for port in ports:
        if port in _RESERVED:
            raise MalformedPort(f"port {port} inside is {_RESERVED[port]}'s own")
    return ports


def published_port(entry: object) -> Published | str:
    """`8000`, `8000:18000` or `auto`. Raises MalformedPort."""
    if isinstance(entry, str) and entry.strip() == AUTO:
        return AUTO
    inside, colon, outside = entry.partition(":") if isinstance(entry, str) else (entry, "", "")
    first = _port(inside)
    if first in _RESERVED:
        raise MalformedPort(f"port {first} inside is {_RESERVED[first]}'s own")
    return Published(first, _port(outside) if colon else first)


def _port(text: object) -> int:
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    if isinstance(text, str):
        digits = text.strip()
        if digits.isascii() and digits.isdigit() and len(digits) <= 5 and digits[0] != "0" and int(digits) <= 65535:
            return int(digits)
    raise MalformedPort("a port is a whole number from 1 to 65535")


def listen_on_host(published: Iterable[Published]) -> list[tuple[int, socket.socket]]:
    """A listener on the host's loopback for each, IPv4 and, where it can be had, IPv6, with the port inside it stands
    for. Raises UsageError where a port is taken."""
    opened: list[tuple[int, socket.socket]] = []
    try:
        for inside, outside in published:
            for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                try:
                    opened.append((inside, _listener(family, address, outside)))
                except OSError as error:
                    if family == socket.AF_INET6:
                        continue  # a machine without it, or a server that is there alone
                    raise UsageError(
                        f"doorward: port {outside} of this machine cannot be listened on: "
                        f"{os.strerror(error.errno or 0).lower()}; publish at another: --publish {inside}:PORT"
                    ) from None
    except BaseException:
        for _, each in opened:
            each.close()
        raise
    return opened


def _listener(family: int, address: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
        made.listen(128)
    except BaseException:
        made.close()
        raise
    return made


def ports_with_servers() -> tuple[int, ...]:
    """Ports that have a server on this machine's loopback or on every address now, but for those the sandbox needs."""
    found: set[int] = set()
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{name}", encoding="ascii") as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            local, state = line.split()[1], line.split()[3]
            address, _, port = local.partition(":")
            # in the machine's byte order, four bytes at a time; 0A is LISTEN (proc(5), <net/tcp_states.h>)
            loopback = address in ("0100007F", "00000000000000000000000001000000") or not address.strip("0")
            if state == "0A" and loopback:
                found.add(int(port, 16))
    return tuple(sorted(found - _RESERVED.keys()))

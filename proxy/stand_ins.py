"""The addresses that stand for names inside a sandbox: handed out by the door's name server, read back at a connect.

- IPv4 from 198.18.0.0/15, which is set aside for tests of network devices (RFC 2544) and routed nowhere; IPv6 from
  fd64:6f6f:7277::/48, a block of our own (RFC 4193), whose last 32 bits are the name's IPv4 stand-in.
- A name keeps its address while it is in the table. The table is bounded: the name that was unused for longest goes
  first, and never one that a connection is open to. Its address is given away again last of all.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from doorward.plain_collections import OrderedDict, deque
from doorward.proxy.resolver import IP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

BLOCK: Final = IPv4Network("198.18.0.0/15")
BLOCK_IPV6: Final = IPv6Network("fd64:6f6f:7277::/48")

NAMES: Final = 65_536
"""Names in the table at once, half of what the block could name: so a freed address rests."""

_FIRST: Final = int(BLOCK.network_address) + 1
_LAST: Final = int(BLOCK.broadcast_address) - 2  # the one behind it is the sandbox's own (launcher/netlink_messages.py)
_PREFIX: Final = int(BLOCK_IPV6.network_address)
_LOW: Final = (1 << 32) - 1


class _Entry:
    """One name: its IPv4 stand-in as a number, and how many connections are open to it."""

    __slots__ = ("address", "held", "name")

    def __init__(self, name: str, address: int) -> None:
        self.name = name
        self.address = address
        self.held = 0


class StandIns:
    """The table of one run. `reserved` are blocks that rules name: nothing of them stands for a name."""

    def __init__(self, capacity: int = NAMES, reserved: Iterable[IPv4Network | IPv6Network] = ()) -> None:
        self._capacity = capacity
        self._reserved = tuple(network for network in reserved if network.overlaps(BLOCK))
        self._by_name: OrderedDict[str, _Entry] = OrderedDict()  # the one unused for longest first
        self._by_address: dict[int, _Entry] = {}
        self._next = _FIRST
        self._freed: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._by_name)

    def address_of(self, name: str) -> IPv4Address | None:
        """The stand-in of a name; None when every place of the table is held by a connection."""
        number = self.number_of(name)
        return None if number is None else IPv4Address(number)

    def number_of(self, name: str) -> int | None:
        """The same as a number."""
        entry = self._by_name.get(name)
        if entry is None:
            address = self._free_address()
            if address is None:
                return None
            entry = self._by_name[name] = self._by_address[address] = _Entry(name, address)
        else:
            self._by_name.move_to_end(name)
        return entry.address

    def keeps(self, name: str, address: IPv4Address) -> bool:
        """Whether the name still has this stand-in; it counts as used then."""
        entry = self._by_name.get(name)
        if entry is None or entry.address != int(address):
            return False
        self._by_name.move_to_end(name)
        return True

    def name_of(self, ip: IP) -> str | None:
        """The name an address stands for; None where it stands for none."""
        entry = self._entry(ip)
        return None if entry is None else entry.name

    def hold(self, ip: IP) -> None:
        """A connection to the address is open: its name stays. Nothing where the address stands for none."""
        entry = self._entry(ip)
        if entry is not None:
            entry.held += 1
            self._by_name.move_to_end(entry.name)

    def release(self, ip: IP) -> None:
        """The connection has ended; one call for each `hold`."""
        entry = self._entry(ip)
        if entry is not None and entry.held:
            entry.held -= 1

    def _entry(self, ip: IP) -> _Entry | None:
        value = int(ip)
        if ip.version == 6:
            if value & ~_LOW != _PREFIX:
                return None
            value &= _LOW
        return self._by_address.get(value)

    def _free_address(self) -> int | None:
        if len(self._by_name) >= self._capacity and not self._let_one_go():
            return None
        while self._next <= _LAST:
            address, self._next = self._next, self._next + 1
            if not self._reserved or not any(IPv4Address(address) in network for network in self._reserved):
                return address
        return self._freed.popleft() if self._freed else None

    def _let_one_go(self) -> bool:
        for name, entry in self._by_name.items():
            if not entry.held:
                del self._by_name[name], self._by_address[entry.address]
                self._freed.append(entry.address)
                return True
        return False


def stands_for_names(ip: IP) -> bool:
    """Whether the address is of the blocks that stand for names."""
    return ip in BLOCK if ip.version == 4 else ip in BLOCK_IPV6


def ipv6_stand_in(address: IPv4Address) -> IPv6Address:
    """The IPv6 stand-in that goes with an IPv4 one."""
    return IPv6Address(_PREFIX | int(address))


def pointed_at(labels: tuple[bytes, ...]) -> IP | None:
    """The address a reverse look-up is about (RFC 1035 §3.5, RFC 3596 §2.5); None for another name."""
    lowered = [label.lower() for label in labels]
    if lowered[-2:] == [b"in-addr", b"arpa"] and len(lowered) == 6:
        parts = [label.decode("latin-1") for label in reversed(lowered[:4])]
        try:
            return IPv4Address(".".join(parts))
        except ValueError:
            return None
    if lowered[-2:] == [b"ip6", b"arpa"] and len(lowered) == 34 and all(len(label) == 1 for label in lowered[:32]):
        try:
            return IPv6Address(int(b"".join(reversed(lowered[:32])), 16))
        except ValueError:
            return None
    return None

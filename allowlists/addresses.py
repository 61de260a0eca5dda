"""Which addresses are the public network, and which stay shut unless a rule names them.

- IPv4-mapped IPv6 is the same host as the IPv4 address: `unmap` first, then judge.
- Other forms that carry an IPv4 address (compatible, NAT64, 6to4, Teredo, ISATAP) are hosts of their own, but they may
  lead to what they carry: the carried address is classified too, and a deny of it holds for them (`carried`).
- The well-known NAT64 prefix with a public address in it is public: on an IPv6-only network every IPv4 site has
  such an address. 6to4, Teredo and local-use NAT64 never are.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

from doorward.allowlists.special_purpose import (
    IPV4_BLOCKS,
    IPV6_BLOCKS,
    METADATA_ADDRESSES,
)
from doorward.allowlists.special_purpose import AddressClass as AddressClass
from doorward.plain_collections import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    IPAddress = IPv4Address | IPv6Address
    IPNetwork = IPv4Network | IPv6Network
else:
    # `ipaddress` is 3 ms of a start. It is imported where an address is read: a run whose rules hold none has no need
    # of it before its first connection.
    IPAddress = IPNetwork = object

_NEVER_PINNED = frozenset(
    {
        AddressClass.THIS_NETWORK,
        AddressClass.LOOPBACK,
        AddressClass.LINK_LOCAL,
        AddressClass.METADATA,
        AddressClass.MULTICAST,
        AddressClass.BROADCAST,
    }
)

_LOW_32 = 0xFFFF_FFFF
_CARRYING = frozenset({0, 0x64, 0x2001, 0x2002})  # the first 16 bits of every form but ISATAP


def unmap(ip: IPAddress) -> IPAddress:
    """The IPv4 address of an IPv4-mapped one (RFC 4291 §2.5.5.2), else the address itself without its zone."""
    if ip.version == 4:
        return ip
    from ipaddress import IPv4Address, IPv6Address

    value = int(ip)
    if value >> 32 == 0xFFFF:
        return IPv4Address(value & _LOW_32)
    return IPv6Address(value) if ip.scope_id else ip


def unmapped_number(packed: bytes) -> int:
    """The number of a packed address (4 or 16 bytes) as `unmap` makes it."""
    value = int.from_bytes(packed, "big")
    return value & _LOW_32 if len(packed) == 16 and value >> 32 == 0xFFFF else value


def unmap_network(network: IPNetwork) -> IPNetwork:
    """The IPv4 network of a mapped one, else the network itself."""
    if network.version == 6 and network.prefixlen >= 96:
        inside = network.network_address.ipv4_mapped
        if inside is not None:
            from ipaddress import IPv4Network

            return IPv4Network((int(inside), network.prefixlen - 96))
    return network


def carried(value: int) -> tuple[int, ...]:
    """The IPv4 addresses an unmapped IPv6 address may lead to, likeliest first; () for most. All as numbers, since
    this is asked for every address."""
    # ISATAP, ::0:5efe:a.b.c.d and ::200:5efe:a.b.c.d under any prefix (RFC 5214 §6.1)
    isatap = (value & _LOW_32,) if value >> 32 & 0xFDFF_FFFF == 0x0000_5EFE else ()
    first = value >> 112
    return isatap if first not in _CARRYING else (*_carried_under(first, value), *isatap)


def _carried_under(first: int, value: int) -> tuple[int, ...]:
    """`first` are the first 16 bits of `value`."""
    low = value & _LOW_32
    top_96 = value >> 32
    if first == 0:
        if top_96 == 0 and low > 1:
            return (low,)  # compatible, ::a.b.c.d (RFC 4291 §2.5.5.1)
        return (low,) if top_96 == 0xFFFF_0000 else ()  # ::ffff:0:a.b.c.d (RFC 2765 §2.1)
    if first == 0x2002:
        return (value >> 80 & _LOW_32,)  # 6to4 (RFC 3056 §2)
    if first == 0x2001:
        if value >> 96 != 0x2001_0000:
            return ()
        return (low ^ _LOW_32, value >> 64 & _LOW_32)  # Teredo client, server (RFC 4380 §4)
    if top_96 == 0x64_FF9B << 64:
        return (low,)  # 64:ff9b::/96 (RFC 6052 §2.1)
    if value >> 80 == 0x64_FF9B_0001:
        # 64:ff9b:1::/48 (RFC 8215) may be cut into /96, /64, /56 or /48; RFC 6052 §2.2 says where each keeps it
        candidates = (
            low,
            value >> 24,
            (value >> 40 & 0xFF_FFFF) | (value >> 64 & 0xFF) << 24,
            (value >> 40 & 0xFFFF) | (value >> 64 & 0xFFFF) << 16,
        )
        # an unused cut reads as 0.0.0.0/8, which would only hide the true one
        return tuple(dict.fromkeys(c & _LOW_32 for c in candidates if c & _LOW_32 > 0xFF_FFFF))
    return ()


def exact_only(kind: AddressClass) -> bool:
    """Metadata and link-local open only for the exact address, never for a range around it."""
    return kind is AddressClass.METADATA or kind is AddressClass.LINK_LOCAL


def classify(ip: IPAddress) -> AddressClass:
    """What the address is for. A carried IPv4 address that is not public decides."""
    value = int(ip)
    if ip.version == 4:
        return _registry(4).kind_of(value)
    if value >> 32 == 0xFFFF:  # mapped (RFC 4291 §2.5.5.2)
        return _registry(4).kind_of(value & _LOW_32)
    own = _registry(6).kind_of(value)
    if exact_only(own):
        return own
    for inside in carried(value):
        kind = _registry(4).kind_of(inside)
        if kind is not AddressClass.GLOBAL:
            return kind
    return own


def is_local(ip: IPAddress) -> bool:
    """True when the address is not globally reachable: shut unless a rule names it."""
    return classify(ip) is not AddressClass.GLOBAL


def pinnable(ip: IPAddress) -> bool:
    """True when a preset may pin a name to the address: a host of some network, this machine's own ends excepted."""
    return classify(ip) not in _NEVER_PINNED


def opens(networks: Iterable[IPNetwork], ip: IPAddress) -> bool:
    """True when naming these networks opens the unmapped address; metadata and link-local want the exact address."""
    exact = exact_only(classify(ip))
    return any(
        network.version == ip.version and ip in network and (not exact or network.prefixlen == network.max_prefixlen)
        for network in networks
    )


def opens_local(network: IPNetwork) -> bool:
    """True when the network is wider than a special-purpose block, so that naming it opens local addresses too."""
    if network.prefixlen == network.max_prefixlen:
        return False
    from ipaddress import ip_network

    registry = _registry(network.version)
    return any(
        kind is not AddressClass.GLOBAL and block != network and block.subnet_of(network)  # type: ignore[arg-type]
        for block, kind in ((ip_network(text), kind) for text, kind in registry.rows)
    )


class _Registry:
    """Blocks flattened into a sorted list of where each class begins, so that one bisection classifies."""

    def __init__(self, blocks: tuple[tuple[str, AddressClass], ...], otherwise: AddressClass) -> None:
        from bisect import bisect_right

        self._right = bisect_right
        self.rows = blocks
        starts = {0: otherwise}
        for _, first, after, kind in sorted(_span(text, kind) for text, kind in blocks):
            # wide blocks are in first, so the block lies within one class: what follows it goes on as before
            around = starts[max(start for start in starts if start <= first)]
            starts[first] = kind
            starts.setdefault(after, around)
        self._starts = sorted(starts)
        self._kinds = [starts[start] for start in self._starts]

    def kind_of(self, value: int) -> AddressClass:
        return self._kinds[self._right(self._starts, value) - 1]


def _span(block: str, kind: AddressClass) -> tuple[int, int, int, AddressClass]:
    """Prefix length, first address, the one after the last."""
    text, _, bits = block.partition("/")
    family, width = (AF_INET6, 128) if ":" in text else (AF_INET, 32)
    # not ip_network: all blocks are read at every start, and this is twenty times as fast
    first = int.from_bytes(inet_pton(family, text), "big")
    length = int(bits or width)
    return length, first, first + (1 << width - length), kind


def _metadata(width: str) -> tuple[tuple[str, AddressClass], ...]:
    return tuple((text, AddressClass.METADATA) for text in METADATA_ADDRESSES if (":" in text) is (width == "ipv6"))


# Built when the first address is judged: many runs have none.
@lru_cache(2)
def _registry(version: int) -> _Registry:
    if version == 4:
        return _Registry(IPV4_BLOCKS + _metadata("ipv4"), AddressClass.GLOBAL)
    return _Registry(IPV6_BLOCKS + _metadata("ipv6"), AddressClass.RESERVED)

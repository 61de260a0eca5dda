"""The pattern of a rule: which hosts, which ports.

| written | hosts |
|---|---|
| `example.com` | that name alone |
| `*.example.com` | names below it, one label or more, not the name itself |
| `**.example.com` | both |
| `*` | any name with a dot, and any public address; as a deny everything |
| `192.0.2.7`, `[2001:db8::7]` | that address |
| `192.0.2.0/24`, `2001:db8::/32`, `[2001:db8::/32]` | the addresses of the block, written as literals |

Each may carry `:port`, `:from-to` or `:*`.
"""

from __future__ import annotations

from doorward.allowlists.addresses import IPAddress, IPNetwork, unmap_network
from doorward.allowlists.host import (
    Address,
    Host,
    MalformedHost,
    Name,
    parse_host,
    parse_port,
    parse_rule_host,
)
from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Inclusive ranges, in the order written.
Ports = tuple[tuple[int, int], ...]

WEB_PORTS: Ports = ((80, 80), (443, 443))
EVERY_PORT: Ports = ((1, 65535),)


class Kind(StrEnum):
    EXACT = "exact"
    BELOW = "below"
    ZONE = "zone"
    ANY = "any"
    NETWORK = "network"


class Pattern(NamedTuple):
    """`name` is set for EXACT, BELOW and ZONE; `network` for NETWORK, where a literal is a block of one address."""

    kind: Kind
    name: str = ""
    network: IPNetwork | None = None

    @property
    def text(self) -> str:
        """The canonical spelling, which parse_pattern reads back."""
        if self.network is not None:
            single = self.network.prefixlen == self.network.max_prefixlen
            text = str(self.network.network_address) if single else str(self.network)
            return f"[{text}]" if self.network.version == 6 else text
        return {Kind.EXACT: "", Kind.BELOW: "*.", Kind.ZONE: "**.", Kind.ANY: "*"}[self.kind] + self.name


class MalformedPattern(ValueError):
    """The text is no pattern. The message is one plain clause, without the text itself."""


def parse_pattern(text: str) -> tuple[Pattern, Ports | None]:
    """The pattern and, where the text carries them, its ports. Raises MalformedPattern."""
    if not text:
        raise MalformedPattern("the entry is empty")
    if text != text.strip():
        raise MalformedPattern("blanks stand around the entry")
    if "://" in text:
        raise MalformedPattern("a rule is a host, not a URL: no scheme")
    if "@" in text:
        raise MalformedPattern("a rule is a host: no user name")
    host, port = _split(text)
    ports = None if port is None else parse_ports(port)
    if "/" in host:
        return Pattern(Kind.NETWORK, network=_network(host)), ports
    if host == "*":
        return Pattern(Kind.ANY), ports
    kind = Kind.EXACT
    if host.startswith("*"):
        stars, dot, rest = host.partition(".")
        if dot and stars in {"*", "**"}:
            kind, host = (Kind.BELOW if stars == "*" else Kind.ZONE), rest
    if "*" in host:
        raise MalformedPattern("a star stands only alone or as a leading `*.` or `**.`")
    try:
        found = parse_rule_host(host)
    except MalformedHost as error:
        raise MalformedPattern(str(error)) from None
    if isinstance(found, Name):
        return Pattern(kind, found.text), ports
    if kind is not Kind.EXACT:
        raise MalformedPattern("a star does not go with an address; a block is written as ADDRESS/BITS")
    return Pattern(Kind.NETWORK, network=_only(found.ip)), ports


def parse_ports(text: str) -> Ports:
    """`443`, `8000-8010` or `*`. Raises MalformedPattern."""
    if text == "*":
        return EVERY_PORT
    low, dash, high = text.partition("-")
    try:
        first = parse_port(low)
        last = parse_port(high) if dash else first
    except MalformedHost:
        raise MalformedPattern(
            "after the colon stands a port from 1 to 65535, a range such as 8000-8010, or *"
        ) from None
    if last < first:
        raise MalformedPattern("the port range ends before it begins")
    return ((first, last),)


def parse_network(text: str) -> IPNetwork:
    """An address or block without ports, as `addresses` lists them; brackets optional. Raises MalformedPattern."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return _network(inner)


def has_port(ports: Ports, port: int) -> bool:
    for low, high in ports:  # noqa: SIM110  asked for every request; a generator triples its cost
        if low <= port <= high:
            return True
    return False


def ports_cover(wide: Iterable[tuple[int, int]], narrow: Ports) -> bool:
    """True when every port of `narrow` is one of `wide`."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(wide):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return all(any(low <= first and last <= high for low, high in merged) for first, last in narrow)


def ports_text(ports: Ports) -> str:
    """For messages: `every port`, `port 8443`, `ports 80 and 443`."""
    if ports == EVERY_PORT:
        return "every port"
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in ports]
    if len(texts) == 1:
        return ("port " if ports[0][0] == ports[0][1] else "ports ") + texts[0]
    return f"ports {', '.join(texts[:-1])} and {texts[-1]}"


def pattern_for(host: Host) -> Pattern:
    """The pattern that matches this host alone."""
    if isinstance(host, Address):
        return Pattern(Kind.NETWORK, network=_only(host.ip))
    return Pattern(Kind.EXACT, host.text)


def _split(text: str) -> tuple[str, str | None]:
    """Host part and port part; a bracket around an IPv6 block is taken off, one around an address is kept."""
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise MalformedPattern("the bracket of the IPv6 address is not closed, or something follows it")
        return (host[1:] if "/" in host else host + bracket), (rest[1:] if rest else None)
    if text.count(":") > 1:
        if "/" in text:
            return text, None  # a bare IPv6 block; the slash leaves no doubt
        raise MalformedPattern("an IPv6 address needs brackets, so that a port can be told from it")
    host, colon, port = text.partition(":")
    return host, (port if colon else None)


def _only(ip: IPAddress) -> IPNetwork:
    """The network of this address alone."""
    from ipaddress import ip_network

    return ip_network(ip)


def _network(text: str) -> IPNetwork:
    host, slash, bits = text.partition("/")
    try:
        address = parse_host(f"[{host}]" if ":" in host else host)
    except MalformedHost:
        address = None
    if not isinstance(address, Address):
        raise MalformedPattern("a rule is a host, not a URL: no path" if slash else "not an address or a block")
    if slash and not (bits.isascii() and bits.isdigit()):
        raise MalformedPattern("after the slash of a block stands a number of bits, or a rule is a host without a path")
    from ipaddress import ip_network

    try:
        loose = ip_network(text, strict=False)
    except ValueError:
        raise MalformedPattern("the block has more bits than the address") from None
    if str(loose.network_address) != str(ip_network(host).network_address):
        raise MalformedPattern("the address has bits beyond the block's length set")
    return unmap_network(loose)

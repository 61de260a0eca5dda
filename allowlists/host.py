"""One canonical form for every host: a lower-case name or an address. Nothing else is ever matched.

- A name is ASCII: letters, digits, hyphen and underscore (service labels need it), labels of 1–63, 253 in all
  (RFC 1035 §2.3.4). One trailing dot (the DNS root) is dropped; case is folded.
- Only a dotted quad and bracketed IPv6 are literals (RFC 3986 §3.2.2). Whatever a C resolver would read as an
  address by other rules (`127.1`, `0x7f.1`, `2130706433`, `0177.0.0.1`) is malformed, so it is never looked up.
- IPv4 in IPv6 clothing (`::ffff:127.0.0.1`) is unmapped here, before anyone judges it.
- Whatever cannot be parsed raises `MalformedHost`; callers answer 400 and neither dial nor look up.
"""

from __future__ import annotations

from doorward.allowlists.addresses import IPAddress, unmap
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address


class Name(NamedTuple):
    """A host name: lower case, A-labels, no trailing dot."""

    text: str


class Address(NamedTuple):
    """A literal address, never in IPv4-mapped form. Build it with `address_host` when the bytes are at hand."""

    ip: IPAddress


Host = Name | Address


class MalformedHost(ValueError):
    """The text is no host, or its port is no port. The message is one plain sentence."""


_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-.")
_HEX = frozenset("0123456789abcdef")
_LONGEST_LABEL = 63  # RFC 1035 §2.3.4
_LONGEST_NAME = 253


def parse_host(text: str) -> Host:
    """The host of a request. Raises MalformedHost; never guesses and never strips."""
    if text.startswith("["):
        return address_host(_bracketed(text))
    if not text:
        raise MalformedHost("the host is empty")
    if not text.isascii():  # before lower(): the Kelvin sign folds to an ASCII k
        raise MalformedHost("the host has characters outside ASCII; a request carries the xn-- form")
    if ":" in text:
        raise MalformedHost("the host has a colon: an IPv6 address needs brackets, a port does not belong to the host")
    name = text.lower()
    if name.endswith("."):
        name = name[:-1]
    if not _is_name(name):
        raise MalformedHost(_why_no_name(name))
    if _ends_in_number(name):
        return Address(_dotted_quad(text))
    return Name(name)


# By hand, not by `re`: the proxy reads its rules before the command may start, and `re` is 4 ms of that.
def _is_name(name: str) -> bool:
    """Labels of lower-case letters, digits, "-" and "_", each 1 to 63 long, the whole at most 253."""
    return (
        0 < len(name) <= _LONGEST_NAME
        and _LETTERS.issuperset(name)
        and name[0] != "."
        and name[-1] != "."
        and ".." not in name
        and (len(name) <= _LONGEST_LABEL or max(map(len, name.split("."))) <= _LONGEST_LABEL)
    )


def _ends_in_number(name: str) -> bool:
    """WHATWG URL "ends in a number": such a host is an address to some resolvers, so it must be a plain dotted quad."""
    last = name[name.rfind(".") + 1 :]
    return last.isdigit() or (last[:2] == "0x" and _HEX.issuperset(last[2:]))


def parse_rule_host(text: str) -> Host:
    """As parse_host, for text a person wrote: Unicode names go through IDNA (UTS 46)."""
    if text.isascii():
        return parse_host(text)
    from doorward.allowlists.unicode_names import to_ascii  # idna costs milliseconds and is rarely needed

    host = parse_host(to_ascii(text))
    if isinstance(host, Address):
        # full-width digits and the like fold to ASCII ones; an address must be written as one
        raise MalformedHost(f"the host is not a name but another spelling of {host_text(host)}")
    return host


def address_host(ip: IPAddress) -> Address:
    """The host for an address that came as bytes (SOCKS5, transparent capture) or from a literal."""
    return Address(unmap(ip))


def parse_address(text: str) -> IPAddress:
    """A bare address as configuration writes it (`10.0.0.7`, `::1`, `[::1]`), unmapped. Raises MalformedHost."""
    if text.startswith("["):
        return unmap(_bracketed(text))
    return unmap(_ipv6(text) if ":" in text else _dotted_quad(text))


def parse_port(text: str) -> int:
    """A port of 1–65535 in plain decimal digits; no sign, blank, leading zero or default. Raises MalformedHost."""
    if text.isascii() and text.isdigit() and len(text) <= 5 and text[0] != "0" and int(text) <= 65535:
        return int(text)
    raise MalformedHost("the port must be a whole number from 1 to 65535" if text else "the port is empty")


def parse_host_port(text: str, default_port: int | None = None) -> tuple[Host, int]:
    """`HOST:PORT`, or `HOST` when a default is given; IPv6 in brackets. Raises MalformedHost."""
    host, port = _split_port(text, default_port)
    return parse_host(host), port


def parse_rule_host_port(text: str, default_port: int | None = None) -> tuple[Host, int]:
    """As parse_host_port, for text a person wrote: Unicode names go through IDNA (UTS 46)."""
    host, port = _split_port(text, default_port)
    return parse_rule_host(host), port


def _split_port(text: str, default_port: int | None) -> tuple[str, int]:
    end = text.rfind("]") if text.startswith("[") else -1
    colon = text.find(":", end + 1)
    if colon >= 0:
        if end >= 0 and colon != end + 1:
            raise MalformedHost("something stands between the bracket and the port")
        if text.find(":", colon + 1) >= 0:
            raise MalformedHost("the host has several colons: an IPv6 address needs brackets")
        return text[:colon], parse_port(text[colon + 1 :])
    if default_port is None:
        raise MalformedHost("the port is missing")
    return text, default_port


def host_text(host: Host) -> str:
    """The canonical text, IPv6 without brackets."""
    return host.text if isinstance(host, Name) else str(host.ip)


def authority_host(host: Host) -> str:
    """The canonical text as a URL or a rule has it, IPv6 in brackets."""
    text = host_text(host)
    return f"[{text}]" if ":" in text else text


def authority_text(host: Host, port: int) -> str:
    """`name:port` or `[v6]:port`, for messages and hints."""
    return f"{authority_host(host)}:{port}"


def _bracketed(text: str) -> IPv6Address:
    if not text.endswith("]"):
        raise MalformedHost("the bracket of the IPv6 address is not closed, or something follows it")
    return _ipv6(text[1:-1])


def _ipv6(text: str) -> IPv6Address:
    if "%" in text:
        raise MalformedHost("the IPv6 address carries a zone, which means nothing outside one machine")
    from ipaddress import IPv6Address

    try:
        return IPv6Address(text)
    except ValueError:
        raise MalformedHost("what stands in the brackets is not an IPv6 address") from None


def _dotted_quad(text: str) -> IPv4Address:
    from ipaddress import IPv4Address

    try:
        return IPv4Address(text)  # refuses leading zeros, missing parts and a trailing dot
    except ValueError:
        raise MalformedHost(
            "the host looks like a number; an IPv4 address is four decimal parts without leading zeros"
        ) from None


def _why_no_name(name: str) -> str:
    if len(name) > _LONGEST_NAME:
        return "the host is longer than 253 characters"
    if not name or name.startswith(".") or ".." in name or name.endswith("."):
        return "the host has an empty label"
    if any(len(label) > 63 for label in name.split(".")):
        return "a label of the host is longer than 63 characters"
    return "the host has a character that no host name has (only letters, digits, hyphen, underscore and dot)"

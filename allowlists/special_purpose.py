"""The address blocks that are not the public network: IANA's special-purpose registries and cloud metadata.

Sources: "IANA IPv4 Special-Purpose Address Registry" and "IANA IPv6 Special-Purpose Address Registry" (RFC 6890,
RFC 8190), the multicast blocks (RFC 5771, RFC 4291 §2.7), and the providers' own documentation for metadata. Python's
`is_global` is not used: it differs from version to version and knows neither embedded forms nor metadata.
"""

from doorward.plain_enum import StrEnum


class AddressClass(StrEnum):
    """What an address is for. Everything but `GLOBAL` stays shut unless a rule names it."""

    GLOBAL = "global"
    THIS_NETWORK = "this_network"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    SHARED = "shared"
    LINK_LOCAL = "link_local"
    METADATA = "metadata"
    PROTOCOL = "protocol"
    DOCUMENTATION = "documentation"
    BENCHMARKING = "benchmarking"
    MULTICAST = "multicast"
    BROADCAST = "broadcast"
    TRANSLATED = "translated"
    DISCARD = "discard"
    RESERVED = "reserved"
    OWN = "own"


#: For messages: "10.0.0.7 is <description>".
DESCRIPTIONS: dict[AddressClass, str] = {
    AddressClass.GLOBAL: "a public address",
    AddressClass.THIS_NETWORK: "an unspecified address, which leads to this machine",
    AddressClass.LOOPBACK: "a loopback address",
    AddressClass.PRIVATE: "a private address",
    AddressClass.SHARED: "a carrier-grade NAT address",
    AddressClass.LINK_LOCAL: "a link-local address",
    AddressClass.METADATA: "a cloud metadata address, which hands out credentials",
    AddressClass.PROTOCOL: "an address reserved for protocol use",
    AddressClass.DOCUMENTATION: "a documentation address",
    AddressClass.BENCHMARKING: "a benchmarking address",
    AddressClass.MULTICAST: "a multicast address",
    AddressClass.BROADCAST: "the broadcast address",
    AddressClass.TRANSLATED: "an address of a translation or tunnel prefix",
    AddressClass.DISCARD: "a discard address",
    AddressClass.RESERVED: "a reserved address",
    AddressClass.OWN: "an address of this machine",
}

_C = AddressClass

#: Registry rows whose "Globally Reachable" is False or N/A, and the True rows inside them. Most specific wins.
IPV4_BLOCKS: tuple[tuple[str, AddressClass], ...] = (
    ("0.0.0.0/8", _C.THIS_NETWORK),  # RFC 791 §3.2; Linux connects 0.0.0.0 to loopback
    ("10.0.0.0/8", _C.PRIVATE),  # RFC 1918
    ("100.64.0.0/10", _C.SHARED),  # RFC 6598
    ("127.0.0.0/8", _C.LOOPBACK),  # RFC 1122 §3.2.1.3
    ("169.254.0.0/16", _C.LINK_LOCAL),  # RFC 3927
    ("172.16.0.0/12", _C.PRIVATE),  # RFC 1918
    ("192.0.0.0/24", _C.PROTOCOL),  # RFC 6890 §2.1
    ("192.0.0.0/29", _C.PROTOCOL),  # RFC 7335, IPv4 service continuity
    ("192.0.0.8/32", _C.PROTOCOL),  # RFC 7600, dummy address
    ("192.0.0.9/32", _C.GLOBAL),  # RFC 7723, Port Control Protocol anycast
    ("192.0.0.10/32", _C.GLOBAL),  # RFC 8155, TURN anycast
    ("192.0.0.170/31", _C.PROTOCOL),  # RFC 8880, NAT64/DNS64 discovery
    ("192.0.2.0/24", _C.DOCUMENTATION),  # RFC 5737, TEST-NET-1
    ("192.31.196.0/24", _C.GLOBAL),  # RFC 7535, AS112
    ("192.52.193.0/24", _C.GLOBAL),  # RFC 7450, AMT
    ("192.88.99.0/24", _C.TRANSLATED),  # RFC 7526, 6to4 relay anycast, withdrawn
    ("192.88.99.2/32", _C.TRANSLATED),  # RFC 6751, 6a44 relay anycast
    ("192.168.0.0/16", _C.PRIVATE),  # RFC 1918
    ("192.175.48.0/24", _C.GLOBAL),  # RFC 7534, AS112 direct delegation
    ("198.18.0.0/15", _C.BENCHMARKING),  # RFC 2544; the sandbox's own DNS answers come from it
    ("198.51.100.0/24", _C.DOCUMENTATION),  # RFC 5737, TEST-NET-2
    ("203.0.113.0/24", _C.DOCUMENTATION),  # RFC 5737, TEST-NET-3
    ("224.0.0.0/4", _C.MULTICAST),  # RFC 5771
    ("240.0.0.0/4", _C.RESERVED),  # RFC 1112 §4
    ("255.255.255.255/32", _C.BROADCAST),  # RFC 8190
)

#: As above. Outside 2000::/3 nothing is allocated as global unicast (IANA IPv6 address space), so `::/0` is reserved.
IPV6_BLOCKS: tuple[tuple[str, AddressClass], ...] = (
    ("::/0", _C.RESERVED),
    ("::/128", _C.THIS_NETWORK),  # RFC 4291 §2.5.2
    ("::1/128", _C.LOOPBACK),  # RFC 4291 §2.5.3
    ("::ffff:0:0/96", _C.TRANSLATED),  # RFC 4291 §2.5.5.2, mapped; unmapped before it is judged
    ("64:ff9b::/96", _C.GLOBAL),  # RFC 6052, NAT64; what it embeds is judged too
    ("64:ff9b:1::/48", _C.TRANSLATED),  # RFC 8215, local-use NAT64
    ("100::/64", _C.DISCARD),  # RFC 6666
    ("100:0:0:1::/64", _C.PROTOCOL),  # RFC 9780, dummy prefix
    ("2000::/3", _C.GLOBAL),  # RFC 4291 §2.4, global unicast
    ("2001::/23", _C.PROTOCOL),  # RFC 2928
    ("2001::/32", _C.TRANSLATED),  # RFC 4380, Teredo
    ("2001:1::1/128", _C.GLOBAL),  # RFC 7723, Port Control Protocol anycast
    ("2001:1::2/128", _C.GLOBAL),  # RFC 8155, TURN anycast
    ("2001:1::3/128", _C.GLOBAL),  # RFC 9665, DNS-SD registration anycast
    ("2001:2::/48", _C.BENCHMARKING),  # RFC 5180
    ("2001:3::/32", _C.GLOBAL),  # RFC 7450, AMT
    ("2001:4:112::/48", _C.GLOBAL),  # RFC 7535, AS112
    ("2001:10::/28", _C.PROTOCOL),  # RFC 4843, ORCHID, withdrawn
    ("2001:20::/28", _C.GLOBAL),  # RFC 7343, ORCHIDv2
    ("2001:30::/28", _C.GLOBAL),  # RFC 9374, drone remote identity
    ("2001:db8::/32", _C.DOCUMENTATION),  # RFC 3849
    ("2002::/16", _C.TRANSLATED),  # RFC 3056, 6to4
    ("2620:4f:8000::/48", _C.GLOBAL),  # RFC 7534, AS112 direct delegation
    ("3fff::/20", _C.DOCUMENTATION),  # RFC 9637
    ("5f00::/16", _C.PROTOCOL),  # RFC 9602, SRv6 segment identifiers
    ("fc00::/7", _C.PRIVATE),  # RFC 4193
    ("fe80::/10", _C.LINK_LOCAL),  # RFC 4291 §2.5.6
    ("fec0::/10", _C.PRIVATE),  # RFC 3879, site-local, withdrawn
    ("ff00::/8", _C.MULTICAST),  # RFC 4291 §2.7
)

#: Addresses at which a cloud hands its machine's credentials or configuration to whoever asks.
METADATA_ADDRESSES: tuple[str, ...] = (
    "169.254.169.254",  # Amazon EC2, Azure, Google, DigitalOcean, Oracle, OpenStack and most others
    "fd00:ec2::254",  # Amazon EC2 over IPv6
    "169.254.170.2",  # Amazon ECS task credentials
    "169.254.170.23",  # Amazon EKS pod identity
    "fd00:ec2::23",  # Amazon EKS pod identity over IPv6
    "fd20:ce::254",  # Google Compute Engine over IPv6
    "fe80::a9fe:a9fe",  # OpenStack over IPv6
    "168.63.129.16",  # Azure host agent; in public address space, so no block covers it
    "100.100.100.100",  # Alibaba Cloud's platform range; Tailscale's local service
    "100.100.100.200",  # Alibaba Cloud
    "169.254.0.23",  # Tencent Cloud
    "169.254.42.42",  # Scaleway
    "fd00:42::42",  # Scaleway over IPv6
    "169.254.169.250",  # Rancher
    "192.0.0.192",  # Oracle Cloud Classic
)

#: Names that lead to those addresses from inside a cloud. A wildcard never covers them, only their exact name does.
METADATA_NAMES: frozenset[str] = frozenset(
    {
        "metadata",
        "metadata.goog",
        "metadata.google.internal",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
        "rancher-metadata",
    }
)

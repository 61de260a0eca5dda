"""Address classes: every registry block, every embedded form, every metadata address."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.addresses import (
    AddressClass,
    carried,
    classify,
    is_local,
    opens,
    opens_local,
    pinnable,
    unmap,
    unmap_network,
)
from doorward.allowlists.special_purpose import DESCRIPTIONS, IPV4_BLOCKS, IPV6_BLOCKS, METADATA_ADDRESSES


def embedded(ip: IPv4Address | IPv6Address) -> tuple[IPv4Address, ...]:
    return () if ip.version == 4 else tuple(map(IPv4Address, carried(int(ip))))


def _neighbour(ip: IPv4Address | IPv6Address, step: int) -> IPv4Address | IPv6Address:
    """The address beside this one; the first and the last of all have themselves."""
    try:
        return ip + step
    except ValueError:
        return ip


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("93.184.216.34", "global"),
        ("0.0.0.0", "this_network"),
        ("0.1.2.3", "this_network"),
        ("10.255.255.255", "private"),
        ("11.0.0.0", "global"),
        ("100.63.255.255", "global"),
        ("100.64.0.0", "shared"),
        ("100.127.255.255", "shared"),
        ("127.0.0.0", "loopback"),
        ("127.127.127.127", "loopback"),
        ("128.0.0.0", "global"),
        ("169.254.1.1", "link_local"),
        ("172.15.255.255", "global"),
        ("172.16.0.0", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.1", "protocol"),
        ("192.0.0.8", "protocol"),
        ("192.0.0.9", "global"),
        ("192.0.0.10", "global"),
        ("192.0.0.11", "protocol"),
        ("192.0.0.170", "protocol"),
        ("192.0.0.171", "protocol"),
        ("192.0.1.0", "global"),
        ("192.0.2.1", "documentation"),
        ("192.31.196.1", "global"),
        ("192.52.193.1", "global"),
        ("192.88.99.1", "translated"),
        ("192.88.99.2", "translated"),
        ("192.168.255.255", "private"),
        ("192.175.48.1", "global"),
        ("198.17.255.255", "global"),
        ("198.18.0.0", "benchmarking"),
        ("198.19.255.255", "benchmarking"),
        ("198.20.0.0", "global"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.255", "documentation"),
        ("223.255.255.255", "global"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.254", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "this_network"),
        ("::1", "loopback"),
        ("100::1", "discard"),
        ("100:0:0:1::1", "protocol"),
        ("100:0:0:2::1", "reserved"),
        ("2001:100::1", "protocol"),
        ("2001:1ff:ffff::1", "protocol"),
        ("2001:200::1", "global"),
        ("2001:1::1", "global"),
        ("2001:1::2", "global"),
        ("2001:1::3", "global"),
        ("2001:1::4", "protocol"),
        ("2001:2::1", "benchmarking"),
        ("2001:2:1::1", "protocol"),
        ("2001:3::1", "global"),
        ("2001:4:112::1", "global"),
        ("2001:4:113::1", "protocol"),
        ("2001:10::1", "protocol"),
        ("2001:20::1", "global"),
        ("2001:30::1", "global"),
        ("2001:40::1", "protocol"),
        ("2001:db8::1", "documentation"),
        ("2606:2800:220:1::1", "global"),
        ("2620:4f:8000::1", "global"),
        ("3fff::1", "documentation"),
        ("3fff:fff::1", "documentation"),
        ("3fff:1000::1", "global"),
        ("4000::1", "reserved"),
        ("5f00::1", "protocol"),
        ("fc00::1", "private"),
        ("fdff::1", "private"),
        ("fe00::1", "reserved"),
        ("fe80::1", "link_local"),
        ("febf::1", "link_local"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("1::1", "reserved"),
    ],
)
def test_registry_blocks_and_their_edges(text: str, kind: str) -> None:
    """P-IP-06 and the whole of both IANA registries."""
    assert classify(ip_address(text)) == kind
    assert is_local(ip_address(text)) is (kind != "global")


_ROWS = [(ip_network(block), kind) for block, kind in (*IPV4_BLOCKS, *IPV6_BLOCKS)]
_EDGES = [edge for network, _ in _ROWS for edge in (network.network_address, network.broadcast_address)]
_NEAR = st.sampled_from([near for edge in _EDGES for near in (edge, _neighbour(edge, -1), _neighbour(edge, 1))])


@given(_NEAR | st.ip_addresses())
def test_the_flattened_tables_agree_with_the_longest_match(ip: IPv4Address | IPv6Address) -> None:
    if str(ip) in METADATA_ADDRESSES or embedded(ip) or unmap(ip) != ip:
        return
    matching = [(network.prefixlen, kind) for network, kind in _ROWS if network.version == ip.version and ip in network]
    assert classify(ip) is (max(matching)[1] if matching else AddressClass.GLOBAL)


@pytest.mark.parametrize("text", METADATA_ADDRESSES)
def test_metadata_addresses(text: str) -> None:
    """P-IP-07."""
    assert classify(ip_address(text)) is AddressClass.METADATA


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:93.184.216.34", "global"),
        ("::ffff:a9fe:a9fe", "metadata"),
        ("::127.0.0.1", "loopback"),  # compatible
        ("::93.184.216.34", "reserved"),
        ("::ffff:0:10.0.0.1", "private"),  # translated, RFC 2765
        ("64:ff9b::127.0.0.1", "loopback"),
        ("64:ff9b::10.0.0.5", "private"),
        ("64:ff9b::169.254.169.254", "metadata"),
        ("64:ff9b::93.184.216.34", "global"),
        ("64:ff9b::1:93.184.216.34", "reserved"),  # outside the /96
        ("64:ff9b:1::10.0.0.5", "private"),
        ("64:ff9b:1::93.184.216.34", "translated"),
        ("64:ff9b:1:0a00:0:500::", "private"),  # /48: 10.0, then 0.5 after the u octet
        ("64:ff9b:1:7f00:0:100::", "loopback"),
        ("64:ff9b:1:aa0a:0:1:0:0", "private"),  # /56: 10 in bits 56-63, 0.0.1 after
        ("64:ff9b:1:aaaa:a:0:500:0", "private"),  # /64: 10.0.0.5 after the u octet
        ("2002:7f00:1::", "loopback"),
        ("2002:a9fe:a9fe::1", "metadata"),
        ("2002:5db8:d822::1", "translated"),
        ("2001:0:5db8:d822::f5ff:fffa", "private"),  # Teredo client 10.0.0.5
        ("2001:0:a00:1::a247:27dd", "private"),  # Teredo server 10.0.0.1
        ("2001:0:5db8:d822::a247:27dd", "translated"),
        ("2606:2800:220:1:0:5efe:10.0.0.5", "private"),  # ISATAP
        ("2606:2800:220:1:200:5efe:192.168.0.1", "private"),
        ("2606:2800:220:1:200:5efe:93.184.216.34", "global"),
        ("fe80::5efe:93.184.216.34", "link_local"),
        ("fe80::5efe:10.0.0.5", "link_local"),
        ("fd00:ec2::254", "metadata"),
    ],
)
def test_embedded_forms(text: str, kind: str) -> None:
    """Mapped, compatible, NAT64 with local use, 6to4, Teredo, ISATAP: what is carried decides."""
    assert classify(ip_address(text)) == kind


def test_unmap_leaves_every_other_form_alone() -> None:
    assert unmap(ip_address("::ffff:10.0.0.5")) == IPv4Address("10.0.0.5")
    assert unmap(ip_address("::10.0.0.5")) == IPv6Address("::10.0.0.5")
    assert unmap(ip_address("64:ff9b::10.0.0.5")) == IPv6Address("64:ff9b::10.0.0.5")


def test_networks_are_unmapped_from_96_bits_on() -> None:
    assert unmap_network(ip_network("::ffff:10.0.0.0/104")) == ip_network("10.0.0.0/8")
    assert unmap_network(ip_network("::ffff:0:0/96")) == ip_network("0.0.0.0/0")
    assert unmap_network(ip_network("::/0")) == ip_network("::/0")
    assert unmap_network(ip_network("fd00::/100")) == ip_network("fd00::/100")


def test_an_address_may_carry_one_by_its_prefix_and_one_by_its_end() -> None:
    """6to4 with an ISATAP end: both are denied, and either makes it local."""
    both = IPv6Address(0x2002 << 112 | int(IPv4Address("93.184.216.34")) << 80 | 0x5EFE << 32 | 0x0A00_0005)
    assert embedded(both) == (IPv4Address("93.184.216.34"), IPv4Address("10.0.0.5"))
    assert classify(both) is AddressClass.PRIVATE


@given(st.ip_addresses(v=4))
def test_no_clothing_makes_a_local_address_public(ip: IPv4Address) -> None:
    value = int(ip)
    flipped = value ^ 0xFFFF_FFFF
    clothes = [
        0xFFFF << 32 | value,
        0xFFFF_0000 << 32 | value,
        0x64_FF9B << 96 | value,
        0x64_FF9B_0001 << 80 | value,
        0x2002 << 112 | value << 80,
        0x2001_0000 << 96 | flipped,
        0x2606_2800_0220_0001 << 64 | 0x5EFE << 32 | value,
        value if value > 1 else 2,
    ]
    if is_local(ip):
        assert all(is_local(IPv6Address(number)) for number in clothes)


@given(st.ip_addresses())
def test_classification_is_total_and_stable(ip: IPv4Address | IPv6Address) -> None:
    assert classify(ip) in DESCRIPTIONS
    assert classify(unmap(ip)) is classify(ip)
    assert all(isinstance(inside, IPv4Address) for inside in embedded(ip))


def test_naming_a_range_opens_all_but_link_local_and_metadata() -> None:
    ten = [ip_network("10.0.0.0/8")]
    assert opens(ten, ip_address("10.0.0.5")) and not opens(ten, ip_address("11.0.0.5"))
    assert not opens([ip_network("169.254.0.0/16")], ip_address("169.254.169.254"))
    assert not opens([ip_network("169.254.0.0/16")], ip_address("169.254.1.1"))
    assert opens([ip_network("169.254.169.254")], ip_address("169.254.169.254"))
    assert not opens([ip_network("fd00::/8")], ip_address("fd00:ec2::254"))
    assert opens([ip_network("fd00::/8")], ip_address("fd00:ec2::255"))
    assert not opens([ip_network("::/0")], ip_address("10.0.0.5"))


def test_networks_wider_than_a_special_block_open_local_addresses() -> None:
    assert opens_local(ip_network("0.0.0.0/0")) and opens_local(ip_network("::/0"))
    assert opens_local(ip_network("192.0.0.0/8"))
    assert not opens_local(ip_network("10.0.0.0/8"))
    assert not opens_local(ip_network("127.0.0.1/32"))
    assert not opens_local(ip_network("93.184.0.0/16"))


def test_presets_pin_private_but_never_this_machines_ends() -> None:
    assert pinnable(ip_address("10.0.0.5")) and pinnable(ip_address("93.184.216.34"))
    for text in (
        "127.0.0.1",
        "::1",
        "0.0.0.0",
        "169.254.1.1",
        "169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "224.0.0.1",
    ):
        assert not pinnable(ip_address(text))

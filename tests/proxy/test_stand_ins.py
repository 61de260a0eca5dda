"""Addresses that stand for names: stable, bounded, never two names behind one open connection."""

from ipaddress import IPv4Address, ip_address, ip_network

import dns.reversename
import pytest

from doorward.proxy.stand_ins import BLOCK, StandIns, ipv6_stand_in, pointed_at, stands_for_names


def test_a_name_keeps_its_address_and_an_address_its_name():
    table = StandIns()
    first, second = table.address_of("a.test"), table.address_of("b.test")
    assert first != second
    assert table.address_of("a.test") == first
    assert table.name_of(first) == "a.test"
    assert table.name_of(ipv6_stand_in(second)) == "b.test"
    assert first in BLOCK and stands_for_names(first) and stands_for_names(ipv6_stand_in(first))


@pytest.mark.parametrize("text", ["198.18.77.1", "198.19.255.255", "192.0.2.1", "fd64:6f6f:7277::c612:4d01", "::1"])
def test_an_address_nobody_was_given_stands_for_nothing(text):
    table = StandIns()
    table.address_of("a.test")
    assert table.name_of(ip_address(text)) is None
    table.hold(ip_address(text))
    table.release(ip_address(text))


def test_a_hundred_thousand_names_stay_within_the_bound_and_the_oldest_go_first():
    """P-DN-01: a table that grows without end is a way to take the proxy down."""
    table = StandIns()
    first = table.address_of("n0.test")
    kept = table.address_of("kept.test")
    for number in range(1, 100_000):
        table.address_of(f"n{number}.test")
        if number % 1000 == 0:
            assert table.address_of("kept.test") == kept  # used all the time
    assert len(table) == 65_536
    assert table.name_of(first) is None
    assert table.name_of(kept) == "kept.test"


def test_an_address_rests_before_it_is_given_away_again():
    table = StandIns(capacity=2)
    given = [table.address_of(f"n{number}.test") for number in range(1000)]
    assert len(set(given)) == 1000


def test_an_address_is_never_given_away_while_a_connection_to_it_is_open():
    table = StandIns(capacity=4)
    held = table.address_of("held.test")
    table.hold(held)
    table.hold(ipv6_stand_in(held))
    table.release(held)
    given = {table.address_of(f"n{number}.test") for number in range(140_000)}
    assert held not in given
    assert table.name_of(held) == "held.test"
    table.release(held)
    again = {table.address_of(f"m{number}.test") for number in range(140_000)}
    assert held in again and None not in again


def test_a_full_table_of_open_connections_gives_none():
    table = StandIns(capacity=2)
    for name in ("a.test", "b.test"):
        table.hold(table.address_of(name))
    assert table.address_of("c.test") is None
    assert table.address_of("a.test") is not None


def test_what_a_rule_names_stands_for_no_name():
    table = StandIns(reserved=[ip_network("198.18.0.0/28"), ip_network("10.0.0.0/8"), ip_network("::/0")])
    assert table.address_of("a.test") == IPv4Address("198.18.0.16")


@pytest.mark.parametrize("text", ["198.18.0.1", "fd64:6f6f:7277::c612:1", "127.0.0.1", "::1"])
def test_a_reverse_name_is_read_as_dnspython_writes_it(text):
    labels = dns.reversename.from_address(text).labels[:-1]
    assert pointed_at(labels) == ip_address(text)
    assert pointed_at(tuple(label.upper() for label in labels)) == ip_address(text)


@pytest.mark.parametrize("name", [
    "1.2.3.in-addr.arpa", "a.b.c.d.in-addr.arpa", "300.1.1.1.in-addr.arpa", "g" + ".0" * 31 + ".ip6.arpa", "a.test",
])  # fmt: skip
def test_another_name_points_nowhere(name):
    assert pointed_at(tuple(label.encode() for label in name.split("."))) is None

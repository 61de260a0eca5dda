"""Hosts of requests: what is a name, what is a literal, what is malformed."""

from ipaddress import IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.host import (
    Address,
    MalformedHost,
    Name,
    address_host,
    authority_text,
    host_text,
    parse_address,
    parse_host,
    parse_host_port,
    parse_port,
    parse_rule_host,
    parse_rule_host_port,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("api.allowed.test", "api.allowed.test"),
        ("api.allowed.test.", "api.allowed.test"),
        ("API.Allowed.Test", "api.allowed.test"),
        ("XN--BCHER-KVA.test", "xn--bcher-kva.test"),
        ("localhost", "localhost"),
        ("_dmarc.my_service.test", "_dmarc.my_service.test"),
        ("r3---sn-x.test", "r3---sn-x.test"),
        ("1.test", "1.test"),
        ("10.0.0.1.nip.test", "10.0.0.1.nip.test"),
        ("0x7f.1.test", "0x7f.1.test"),
        ("a" * 63 + ".test", "a" * 63 + ".test"),
    ],
)
def test_names_have_one_form(text: str, name: str) -> None:
    """P-DM-01, P-DM-02: a trailing dot and case make no other host."""
    assert parse_host(text) == Name(name)


@pytest.mark.parametrize(
    "text",
    [
        "2130706433",
        "0177.0.0.1",
        "0x7f.1",
        "127.1",
        "017700000001",
        "0x7f000001",
        "2852039166",
        "0251.0376.0251.0376",
        "0",
        "0X7F.0.0.1",
        "127.0.0.01",
        "127.0.0.256",
        "127.0.0.1.",
        "1.2.3.4.5",
        "1.2.3",
        "foo.0x1",
        "foo.7",
        "0x",
    ],
)
def test_other_spellings_of_an_ipv4_address_are_malformed(text: str) -> None:
    """P-IP-01, P-IP-06: what a C resolver would dial is never treated as a name."""
    with pytest.raises(MalformedHost):
        parse_host(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "blocked.test..",
        ".trusted.test",
        "a..test",
        "blocked.test:443",
        "[::1]:80",
        "\tblocked.test",
        " blocked.test",
        "blocked.test\n",
        "blocked.test\r",
        "127.0.0.1\x00.allowed.test",
        "user@allowed.test",
        "allowed.test/",
        "allowed%2etest",
        "bücher.test",
        "allowed。test",
        "１２７.0.0.1",
        "\u212aelvin.test",
        "*.allowed.test",
        "::1",
        "[::1",
        "[]",
        "[::1%lo]",
        "[fe80::1%25eth0]",
        "[127.0.0.1]",
        "[v1.x]",
        "[::1]x",
        "a" * 64 + ".test",
        "a." * 126 + "aa",
        "a b.test",
        "a\udc80.test",
    ],
)
def test_whatever_is_no_host_is_malformed(text: str) -> None:
    """P-DM-13, P-DN-05, P-DM-01 (double dot): one canonicaliser, and what it cannot parse goes nowhere."""
    with pytest.raises(MalformedHost) as error:
        parse_host(text)
    assert str(error.value)


@pytest.mark.parametrize(
    ("text", "ip"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[0:0::1]", "::1"),
        ("[::]", "::"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"),
        ("[0:0:0:0:0:ffff:127.0.0.1]", "127.0.0.1"),
        ("[::FFFF:169.254.169.254]", "169.254.169.254"),
        ("[2001:DB8::7]", "2001:db8::7"),
    ],
)
def test_literals_are_unmapped(text: str, ip: str) -> None:
    """P-IP-02: IPv4 in IPv6 clothing is the IPv4 address."""
    assert parse_host(text) == Address(ip_address(ip))


def test_addresses_that_came_as_bytes_are_unmapped_and_lose_their_zone() -> None:
    assert address_host(ip_address("::ffff:10.0.0.5")) == Address(ip_address("10.0.0.5"))
    assert address_host(IPv6Address("fe80::1%eth0")) == Address(ip_address("fe80::1"))


@pytest.mark.parametrize(
    "port",
    ["", "0", "65536", "99999", "443x", "-1", " 443", "443 ", "0x1bb", "４４３", "+443", "0443", "4_4", "³", "443\n"],
)
def test_bad_ports_have_no_fallback(port: str) -> None:
    """P-PP-14: a bad port is malformed, never 443."""
    with pytest.raises(MalformedHost):
        parse_port(port)
    with pytest.raises(MalformedHost):
        parse_host_port(f"allowed.test:{port}", 443)


def test_port_and_host_are_told_apart() -> None:
    assert parse_host_port("allowed.test:8443") == (Name("allowed.test"), 8443)
    assert parse_host_port("[::1]:8443") == (Address(ip_address("::1")), 8443)
    assert parse_host_port("[::1]", 443) == (Address(ip_address("::1")), 443)
    assert parse_host_port("allowed.test", 443) == (Name("allowed.test"), 443)


def test_a_place_a_person_wrote_may_be_unicode() -> None:
    """P-DM-11."""
    assert parse_rule_host_port("BÜCHER.test:8443") == (Name("xn--bcher-kva.test"), 8443)
    assert parse_rule_host_port("bücher.test", 443) == (Name("xn--bcher-kva.test"), 443)
    assert parse_rule_host_port("[::1]:80") == (Address(ip_address("::1")), 80)
    with pytest.raises(MalformedHost):
        parse_host_port("bücher.test:443")
    with pytest.raises(MalformedHost):
        parse_rule_host_port("bücher.test：443")


@pytest.mark.parametrize(
    "text", ["allowed.test", "[::1]", "::1", "::1:443", "[::1]x:443", "a:b:443", "[::1:443", ":443", ""]
)
def test_a_missing_or_ambiguous_port_is_malformed(text: str) -> None:
    """P-PP-14: CONNECT without a port."""
    with pytest.raises(MalformedHost):
        parse_host_port(text)


def test_unicode_is_for_people_only() -> None:
    """P-DM-11: the log shows the A-label."""
    assert parse_rule_host("BÜCHER.test.") == Name("xn--bcher-kva.test")
    assert parse_rule_host("straße.test") == Name("xn--strae-oqa.test")  # non-transitional
    assert parse_rule_host("bücher。test") == Name("xn--bcher-kva.test")


@pytest.mark.parametrize(
    "text", ["１２７.0.0.1", "127。0。0。1", "bü cher.test", "bü/cher.test", "a\u200bb.test\u0000", "☃.test", "ü" * 64]
)
def test_unicode_that_is_no_name_is_malformed(text: str) -> None:
    with pytest.raises(MalformedHost):
        parse_rule_host(text)


def test_bare_addresses_of_configuration() -> None:
    assert parse_address("::1") == parse_address("[::1]") == ip_address("::1")
    assert parse_address("::ffff:10.0.0.7") == ip_address("10.0.0.7")
    for text in ("db.test", "10.0.0.0/8", "127.1", "::1%lo", ""):
        with pytest.raises(MalformedHost):
            parse_address(text)


_LABELS = st.from_regex(r"\A[A-Za-z0-9_-]{1,20}\Z")
_NAMES = st.lists(_LABELS, min_size=1, max_size=6).map(".".join)


@given(_NAMES | st.ip_addresses().map(str) | st.ip_addresses(v=6).map(lambda ip: f"[{ip}]") | st.text(max_size=40))
def test_canonicalisation_is_idempotent(text: str) -> None:
    """Parsing the canonical text gives the same host again."""
    try:
        host = parse_host(text)
    except MalformedHost:
        return
    written = f"[{host.ip}]" if isinstance(host, Address) and host.ip.version == 6 else host_text(host)
    assert parse_host(written) == host
    assert parse_host_port(authority_text(host, 8443)) == (host, 8443)


@given(st.text(max_size=60))
def test_a_name_is_plain_and_bounded(text: str) -> None:
    """Nothing but letters, digits, hyphen, underscore and dot ever reaches a resolver, and never a number."""
    try:
        host = parse_host(text)
    except MalformedHost:
        return
    if isinstance(host, Name):
        assert set(host.text) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.")
        assert not host.text.endswith(".") and ".." not in host.text
        assert not host.text.rpartition(".")[2].isdigit()


@given(st.ip_addresses(v=4))
def test_both_spellings_of_a_mapped_address_are_one_host(ip: object) -> None:
    """P-IP-02."""
    assert parse_host(f"[::ffff:{ip}]") == parse_host(str(ip))

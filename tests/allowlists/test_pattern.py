"""The grammar of a rule's text."""

from ipaddress import ip_network

import pytest

from doorward.allowlists.host import parse_host
from doorward.allowlists.pattern import (
    EVERY_PORT,
    WEB_PORTS,
    Kind,
    MalformedPattern,
    Pattern,
    has_port,
    parse_network,
    parse_pattern,
    parse_ports,
    pattern_for,
    ports_cover,
    ports_text,
)


@pytest.mark.parametrize(
    ("text", "pattern", "ports"),
    [
        ("example.test", Pattern(Kind.EXACT, "example.test"), None),
        ("Example.TEST.", Pattern(Kind.EXACT, "example.test"), None),
        ("*.example.test", Pattern(Kind.BELOW, "example.test"), None),
        ("**.example.test.", Pattern(Kind.ZONE, "example.test"), None),
        ("*", Pattern(Kind.ANY), None),
        ("*:8443", Pattern(Kind.ANY), ((8443, 8443),)),
        ("bücher.test", Pattern(Kind.EXACT, "xn--bcher-kva.test"), None),
        ("*.bücher.test:443", Pattern(Kind.BELOW, "xn--bcher-kva.test"), ((443, 443),)),
        ("gateway:8080", Pattern(Kind.EXACT, "gateway"), ((8080, 8080),)),
        ("localhost", Pattern(Kind.EXACT, "localhost"), None),
        ("allowed.test:8000-8010", Pattern(Kind.EXACT, "allowed.test"), ((8000, 8010),)),
        ("allowed.test:*", Pattern(Kind.EXACT, "allowed.test"), EVERY_PORT),
        ("[::1]:8443", Pattern(Kind.NETWORK, network=ip_network("::1")), ((8443, 8443),)),
        ("127.0.0.1:4318", Pattern(Kind.NETWORK, network=ip_network("127.0.0.1")), ((4318, 4318),)),
        ("[::ffff:127.0.0.1]", Pattern(Kind.NETWORK, network=ip_network("127.0.0.1")), None),
        ("10.0.0.0/8", Pattern(Kind.NETWORK, network=ip_network("10.0.0.0/8")), None),
        ("10.0.0.0/8:5432", Pattern(Kind.NETWORK, network=ip_network("10.0.0.0/8")), ((5432, 5432),)),
        ("fd00::/8", Pattern(Kind.NETWORK, network=ip_network("fd00::/8")), None),
        ("[fd00::/8]:443", Pattern(Kind.NETWORK, network=ip_network("fd00::/8")), ((443, 443),)),
        ("::ffff:10.0.0.0/104", Pattern(Kind.NETWORK, network=ip_network("10.0.0.0/8")), None),
    ],
)
def test_what_is_written_and_what_it_means(text: str, pattern: Pattern, ports: object) -> None:
    """P-DM-05, P-DM-12, P-IP-02."""
    assert parse_pattern(text) == (pattern, ports)
    assert parse_pattern(pattern.text)[0] == pattern


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " allowed.test ",
        "allowed.test\n",
        "https://*.allowed.test",
        "allowed.test/path",
        "user@allowed.test",
        "ex*ample.test",
        "*.*.test",
        "api.*",
        "**a.test",
        "*a.test",
        "***.a.test",
        "*.",
        "**",
        "**.",
        "*..a.test",
        ".a.test",
        "a..test",
        "a.test..",
        "a.test?x",
        "a.test,b.test",
        "127.1",
        "0x7f.1",
        "2130706433",
        "*.10.0.0.1",
        "10.0.0.5/8",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/",
        "10.0.0.0/255.0.0.0",
        "[fd00::1/8]",
        "fd00::/8:443",
        "fe80::1%lo/64",
        "::1",
        "::1:8443",
        "[::1",
        "[::1]8443",
        "[a.test]",
        "a.test:",
        "a.test:0",
        "a.test:65536",
        "a.test:443x",
        "a.test:-1",
        "a.test: 443",
        "a.test:0x1bb",
        "a.test:４４３",
        "a.test:10-5",
        "a.test:1-",
        "a.test:80,443",
        "a.test:*-5",
    ],
)
def test_what_is_no_pattern(text: str) -> None:
    """P-DM-08, P-DM-09, P-IP-01: only a leading `*.` or `**.` is legal, and a rule is no URL."""
    with pytest.raises(MalformedPattern) as error:
        parse_pattern(text)
    assert str(error.value)


def test_ports() -> None:
    assert parse_ports("443") == ((443, 443),)
    assert has_port(WEB_PORTS, 80) and has_port(WEB_PORTS, 443) and not has_port(WEB_PORTS, 81)
    assert has_port(EVERY_PORT, 1) and has_port(EVERY_PORT, 65535)


def test_ports_covered_by_several_ranges_together() -> None:
    assert ports_cover([(80, 80), (443, 443)], WEB_PORTS)
    assert ports_cover([(1, 100), (101, 200)], ((50, 150),))
    assert not ports_cover([(1, 100), (102, 200)], ((50, 150),))
    assert not ports_cover([], ((1, 1),))


def test_ports_for_a_person() -> None:
    assert ports_text(WEB_PORTS) == "ports 80 and 443"
    assert ports_text(((8443, 8443),)) == "port 8443"
    assert ports_text(((8000, 8010),)) == "ports 8000-8010"
    assert ports_text(EVERY_PORT) == "every port"


def test_networks_of_a_table() -> None:
    assert parse_network("10.0.0.7") == ip_network("10.0.0.7")
    assert parse_network("[::1]") == parse_network("::1") == ip_network("::1")
    assert parse_network("fd00::/8") == ip_network("fd00::/8")
    for text in ("", "db.test", "10.0.0.1/8", "10.0.0.1:80", "127.1"):
        with pytest.raises(MalformedPattern):
            parse_network(text)


def test_the_pattern_of_one_host() -> None:
    assert pattern_for(parse_host("a.test")).text == "a.test"
    assert pattern_for(parse_host("[::1]")).text == "[::1]"

"""Targets: which host and port a request is for, and every spelling that is refused."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.allowlists.decision import Effect, Reason, Source
from doorward.allowlists.host import Address, Host, Name
from doorward.proxy.http1 import BadMessage, RequestHead, RequestReader
from doorward.proxy.target import (
    NameMismatch,
    RefusedTarget,
    SchemeNotAllowed,
    Target,
    names_agree,
    parse_authority,
    parse_target,
)


def head_of(line: str, *hosts: str, version: str = "1.1") -> RequestHead:
    fields = "".join(f"Host: {host}\r\n" for host in hosts)
    head = RequestReader().feed(f"{line} HTTP/{version}\r\n{fields}\r\n".encode("latin-1"))[0]
    assert isinstance(head, RequestHead)
    return head


def target_of(line: str, *hosts: str, version: str = "1.1") -> Target:
    return parse_target(head_of(line, *hosts, version=version))


def refused(line: str, *hosts: str, version: str = "1.1") -> str:
    with pytest.raises(BadMessage) as caught:
        target_of(line, *hosts, version=version)
    assert caught.value.status == 400
    return caught.value.sentence


A = Name("a.test")


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("GET http://a.test/x?y=1", Target("http", A, 80, b"/x?y=1")),
        ("GET http://a.test", Target("http", A, 80, b"/")),
        ("GET http://a.test?x", Target("http", A, 80, b"/?x")),
        ("GET HTTP://A.Test./", Target("http", A, 80, b"/")),
        ("GET http://a.test:80/", Target("http", A, 80, b"/")),
        ("GET http://a.test:8081/", Target("http", A, 8081, b"/")),
        ("GET http://a.test//b.test/", Target("http", A, 80, b"//b.test/")),
        ("GET http://a.test/http://b.test/", Target("http", A, 80, b"/http://b.test/")),
        ("GET http://127.0.0.1:1/", Target("http", Address(ip_address("127.0.0.1")), 1, b"/")),
        ("GET http://[::1]/", Target("http", Address(ip_address("::1")), 80, b"/")),
        ("GET http://[::ffff:127.0.0.1]/", Target("http", Address(ip_address("127.0.0.1")), 80, b"/")),
        ("OPTIONS http://a.test", Target("http", A, 80, b"*")),
        ("OPTIONS http://a.test/", Target("http", A, 80, b"/")),
        ("OPTIONS http://a.test?x", Target("http", A, 80, b"/?x")),
        ("CONNECT a.test:443", Target("connect", A, 443, b"")),
        ("CONNECT A.TEST.:1", Target("connect", A, 1, b"")),
        ("CONNECT [::1]:65535", Target("connect", Address(ip_address("::1")), 65535, b"")),
    ],
)
def test_targets(line: str, target: Target) -> None:
    host = line.split(" ")[1].removeprefix("HTTP://").removeprefix("http://").split("/")[0].split("?")[0]
    assert target_of(line, host) == target


@pytest.mark.parametrize(
    ("line", "host", "agrees"),
    [
        ("GET http://allowed.test/", "allowed.test", True),
        ("GET http://allowed.test/", "ALLOWED.test", True),
        ("GET http://allowed.test/", "allowed.test.", True),
        ("GET http://allowed.test/", "allowed.test:80", True),
        ("GET http://allowed.test:80/", "allowed.test", True),
        ("GET http://allowed.test:8081/", "allowed.test:8081", True),
        ("GET http://127.0.0.1/", "[::ffff:127.0.0.1]", True),
        ("GET http://allowed.test/", "blocked.test", False),
        ("GET http://allowed.test/", "allowed.test:8081", False),
        ("GET http://allowed.test:8081/", "allowed.test", False),
        ("GET http://allowed.test/", "x.allowed.test", False),
        ("CONNECT allowed.test:443", "allowed.test:443", True),
        ("CONNECT allowed.test:443", "Allowed.test", True),
        ("CONNECT allowed.test:8443", "allowed.test", True),
        ("CONNECT allowed.test:443", "allowed.test:80", False),
        ("CONNECT allowed.test:443", "blocked.test:443", False),
        ("CONNECT allowed.test:443", "blocked.test", False),
    ],
)
def test_the_host_header_agrees_or_both_names_are_told(line: str, host: str, agrees: bool) -> None:
    """P-PP-01"""
    if agrees:
        target_of(line, host)
        return
    with pytest.raises(NameMismatch) as caught:
        target_of(line, host)
    decision = caught.value.decision
    assert (decision.effect, decision.reason, decision.source) == (
        Effect.DENY,
        Reason.NAME_MISMATCH,
        Source.MODE_GUARD,
    )
    assert "allowed.test" in decision.message and host in decision.message
    assert caught.value.host_header == host


def test_host_lines_are_counted() -> None:
    """P-PP-01"""
    assert "needs a Host" in refused("GET http://allowed.test/")
    assert "more than one" in refused("GET http://allowed.test/", "allowed.test", "allowed.test")
    assert "more than one" in refused("CONNECT allowed.test:443", "allowed.test", "blocked.test")
    assert target_of("CONNECT allowed.test:443").port == 443
    assert target_of("GET http://allowed.test/", version="1.0").port == 80
    assert "more than one" in refused("GET http://allowed.test/", "allowed.test", "allowed.test", version="1.0")


@pytest.mark.parametrize(
    "host", ["", "a b", "a.test, b.test", "u@a.test", "a.test:", "a.test:0", "127.1", "a..test", "é"]
)
def test_malformed_host_lines(host: str) -> None:
    """P-PP-01, P-IP-01"""
    refused("GET http://a.test/", host)


@pytest.mark.parametrize("port", ["", "0", "65536", "99999", "443x", "-1", "+443", "0x1bb", "0443", "443 ", "000443"])
def test_ports(port: str) -> None:
    """P-PP-14"""
    for text in (f"allowed.test:{port}", f"[::1]:{port}"):
        with pytest.raises(BadMessage):
            parse_authority(text.encode())
        with pytest.raises(BadMessage):
            parse_authority(text.encode(), 80)


def test_a_connect_without_a_port_or_with_a_wide_one() -> None:
    """P-PP-14"""
    refused("CONNECT allowed.test", "allowed.test")
    refused("CONNECT [::1]", "[::1]")
    with pytest.raises(BadMessage):
        parse_authority("allowed.test:４４３".encode())


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0177.0.0.1",
        "0x7f.1",
        "127.1",
        "017700000001",
        "0x7f000001",
        "2852039166",
        "0251.0376.0251.0376",
        "127.0.0.1.",
        "1.2.3.256",
        "[::1%25eth0]",
        "[fe80::1%eth0]",
        "[127.0.0.1]",
        "[a.test]",
        "[::1",
        "::1]",
        "[::1]x",
        "a..test",
        ".a.test",
        "a_b.te st",
        "a%2etest",
        "a" * 64 + ".test",
        "a." * 130 + "test",
        "a.test\\b.test",
        "a.test,b.test",
        "*",
        "",
    ],
)
def test_hosts_that_are_none(host: str) -> None:
    """P-IP-01"""
    with pytest.raises(BadMessage):
        parse_authority(f"{host}:80".encode())


@pytest.mark.parametrize(
    "line",
    [
        "GET http://user@a.test/",
        "GET http://user:pw@a.test/",
        "GET http://a.test@b.test/",
        "GET http://a.test:80@b.test/",
        "CONNECT user@a.test:443",
    ],
)
def test_user_info(line: str) -> None:
    assert "User-info" in refused(line, "a.test")


@pytest.mark.parametrize(
    "line",
    [
        "GET http:///x",
        "GET http://:80/",
        "GET http:a.test/",
        "GET http:/a.test/",
        "GET //a.test/",
        "GET a.test/",
        "GET a.test:80",
        "GET http://a.test/#x",
        "GET http://a.test#x",
        "GET http://::1/",
        "CONNECT http://a.test:443",
        "CONNECT http://a.test/",
        "CONNECT a.test:443/",
        "CONNECT a.test:443?x",
        "CONNECT //a.test:443",
        "CONNECT ::1:443",
        "CONNECT *",
        "CONNECT /",
        "CONNECT :443",
        "CONNECT a.test:443:443",
        "POST gopher://a.test/",
    ],
)
def test_targets_that_are_none(line: str) -> None:
    refused(line, "a.test")


def test_a_path_alone_is_told_that_this_is_a_proxy() -> None:
    assert "This is a proxy" in refused("GET /", "a.test")
    assert "This is a proxy" in refused("OPTIONS *", "a.test")


@pytest.mark.parametrize(
    ("line", "port"),
    [
        ("GET https://a.test/x", 443),
        ("GET HTTPS://a.test:8443/", 8443),
        ("GET ftp://a.test/x", 21),
        ("GET ws://a.test/", 80),
        ("GET gopher://a.test:70/", 70),
    ],
)
def test_other_schemes(line: str, port: int) -> None:
    with pytest.raises(SchemeNotAllowed) as caught:
        target_of(line, "a.test")
    assert isinstance(caught.value, RefusedTarget)
    decision = caught.value.decision
    assert (decision.reason, decision.host, decision.port) == (Reason.SCHEME_NOT_ALLOWED, A, port)
    assert f"CONNECT a.test:{port}" in decision.message


@pytest.mark.parametrize(
    ("header", "default", "agrees"),
    [
        (b"a.test", 80, False),
        (b"a.test:8080", 80, True),
        (b"A.test.", None, True),
        (b"b.test", None, False),
        (b"a.test:81", None, False),
    ],
)
def test_a_host_line_inside_a_tunnel(header: bytes, default: int | None, agrees: bool) -> None:
    assert names_agree(header, A, 8080, default_port=default) is agrees
    with pytest.raises(BadMessage):
        names_agree(b"127.1", A, 8080, default_port=default)


@settings(deadline=None)
@given(st.binary(max_size=30), st.sampled_from([None, 80]))
def test_no_authority_raises_anything_but_bad_message(text: bytes, default_port: int | None) -> None:
    try:
        host, port = parse_authority(text, default_port)
    except BadMessage:
        return
    assert 1 <= port <= 65535
    assert isinstance(host, Host)


@settings(deadline=None)
@given(st.sampled_from(["GET", "CONNECT", "OPTIONS"]), st.from_regex(rb"[!-~]{1,30}", fullmatch=True))
def test_no_target_raises_anything_else(method: str, target: bytes) -> None:
    head = RequestHead(method, target, (1, 1), ((b"Host", b"a.test"),), "none", None, True, False, None)
    try:
        parse_target(head)
    except (BadMessage, RefusedTarget):
        pass

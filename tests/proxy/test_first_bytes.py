"""What a tunnel's client says first must agree with what it asked for."""

from __future__ import annotations

import ssl
from ipaddress import ip_address

import pytest

from doorward.allowlists.host import Address, Host, Name
from doorward.proxy.first_bytes import Agreed, Disagreement, FirstBytes
from doorward.proxy.limits import DEFAULT

ASKED = Name("allowed.test")
LITERAL = Address(ip_address("192.0.2.7"))


def hello(server_name: str | None) -> bytes:
    """A real ClientHello."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=server_name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def judge(
    host: Host = ASKED, port: int = 443, *, named: bool = False, any_tls: bool = False, also: str = ""
) -> FirstBytes:
    return FirstBytes(host, port, DEFAULT, port_named=named, tls_any=any_tls, allows=lambda name: name.text == also)


def finding(first: FirstBytes, data: bytes) -> Agreed | Disagreement | None:
    first.feed(data)
    assert first.data == data
    return first.finding


def agrees(first: FirstBytes, data: bytes) -> bool:
    found = finding(first, data)
    assert found is not None, "undecided"
    return isinstance(found, Agreed)


def test_equal_names_pass_in_any_case() -> None:
    """P-TL-01, second half."""
    assert agrees(judge(), hello("allowed.test"))
    assert agrees(judge(), hello("ALLOWED.test"))


def test_another_name_in_the_hello_is_refused_and_both_are_said() -> None:
    """P-TL-01."""
    found = finding(judge(), hello("blocked.test"))
    assert isinstance(found, Disagreement)
    assert found.said == "blocked.test"
    assert "allowed.test:443" in found.sentence
    assert "blocked.test" in found.sentence


def test_names_that_disagree_never_pass_whatever_the_rule_says() -> None:
    assert not agrees(judge(named=True, any_tls=True, port=8443), hello("blocked.test"))


def test_a_hello_without_a_name() -> None:
    """P-TL-02: fine for an address, refused for a name, lifted by tls = any."""
    assert agrees(judge(LITERAL), hello(None))
    assert not agrees(judge(), hello(None))
    assert not agrees(judge(named=True, port=8443), hello(None))
    assert agrees(judge(any_tls=True), hello(None))


def test_a_name_where_an_address_was_asked_for_needs_its_own_allow() -> None:
    assert not agrees(judge(LITERAL), hello("blocked.test"))
    assert agrees(judge(LITERAL, also="other.test"), hello("other.test"))


def test_a_hello_in_pieces_is_put_together() -> None:
    """P-TL-03: one byte a send hides nothing."""
    whole = hello("blocked.test")
    first = judge()
    for index in range(len(whole)):
        assert first.finding is None
        first.feed(whole[index : index + 1])
    assert isinstance(first.finding, Disagreement)
    assert first.finding.said == "blocked.test"
    assert first.data == whole


def test_a_hello_over_two_records_is_put_together() -> None:
    """P-TL-03."""
    whole = hello("blocked.test")
    body = whole[5:]
    cut = body.index(b"blocked") + 3
    parts = [body[:cut], body[cut:]]
    records = b"".join(whole[:3] + len(part).to_bytes(2, "big") + part for part in parts)
    found = finding(judge(), records)
    assert isinstance(found, Disagreement)
    assert found.said == "blocked.test"


@pytest.mark.parametrize("port", [443, 8443])
@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_pause_inside_the_hello_is_refused_after_the_limit(port: int, cut: int) -> None:
    """P-TL-03: also where the rule names the port, and where it takes any TLS."""
    first = judge(port=port, named=True, any_tls=True)
    first.feed(hello("blocked.test")[:cut])
    assert first.finding is None
    first.timed_out()
    assert isinstance(first.finding, Disagreement)


def test_a_hello_that_ends_half_way_is_refused() -> None:
    first = judge()
    first.feed(hello("allowed.test")[:60])
    first.eof()
    assert isinstance(first.finding, Disagreement)


def test_on_443_anything_but_tls_is_refused() -> None:
    assert not agrees(judge(), b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    assert not agrees(judge(named=True), b"SSH-2.0-x\r\n")
    assert agrees(judge(any_tls=True), b"SSH-2.0-x\r\n")


def test_other_bytes_pass_only_where_the_rule_names_the_port() -> None:
    assert agrees(judge(port=5432, named=True), b"\x00\x00\x00\x08\x04\xd2\x16\x2f")
    assert not agrees(judge(port=80), b"\x00\x00\x00\x08\x04\xd2\x16\x2f")


@pytest.mark.parametrize("data", [b"hello", b"ping", b"PING\r\n", b"*1\r\n$4\r\nPING\r\n", b"EHLO me\r\n", b"x", b"{"])
def test_other_bytes_are_not_kept_waiting(data: bytes) -> None:
    assert agrees(judge(port=6379, named=True), data)


def test_a_cleartext_head_must_name_the_host() -> None:
    for port, named in ((80, False), (8080, True)):
        assert agrees(judge(port=port, named=named), b"GET / HTTP/1.1\r\nHost: Allowed.Test.\r\n\r\n")
        assert not agrees(judge(port=port, named=named), b"GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n")
    assert agrees(judge(port=8080, named=True), b"GET / HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n")
    assert not agrees(judge(port=8080, named=True), b"GET / HTTP/1.1\r\nHost: allowed.test:9090\r\n\r\n")


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: allowed.test\r\nHost: blocked.test\r\n\r\n",
        b"GET / HTTP/1.1\nHost: blocked.test\n\n",
        b"GET / HTTP/1.1\r\nHost : blocked.test\r\n\r\n",
        b"GET http://blocked.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        b"CONNECT blocked.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        b"XYZZY / HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        b"get / http/1.1\r\nHost: blocked.test\r\n\r\n",
        b"GET\t/\tHTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        b"\r\n\r\nGET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
    ],
)
def test_a_head_that_might_name_another_host_is_refused(head: bytes) -> None:
    assert not agrees(judge(port=8080, named=True), head)


def test_a_head_in_pieces_is_put_together() -> None:
    head = b"GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n"
    first = judge(port=8080, named=True)
    for index in range(len(head)):
        assert first.finding is None, head[:index]
        first.feed(head[index : index + 1])
    assert isinstance(first.finding, Disagreement)


def test_a_pause_inside_a_head_is_no_way_round() -> None:
    for begun in (b"G", b"GET ", b"GET / HTTP/1.1\r\nHo", b"\r\n", b"POST /" + b"a" * 100):
        first = judge(port=8080, named=True)
        first.feed(begun)
        assert first.finding is None
        first.timed_out()
        assert isinstance(first.finding, Disagreement), begun


def test_what_began_like_a_head_and_ended_passes_raw() -> None:
    first = judge(port=8080, named=True)
    first.feed(b"GET")
    first.eof()
    assert isinstance(first.finding, Agreed)
    assert first.ended


def test_an_overlong_first_line_is_refused() -> None:
    assert not agrees(judge(port=8080, named=True), b"GET /" + b"a" * 9000)


def test_an_address_takes_a_host_header_of_its_own() -> None:
    assert agrees(judge(LITERAL, 8080, named=True), b"GET / HTTP/1.1\r\nHost: 192.0.2.7:8080\r\n\r\n")
    assert agrees(judge(LITERAL, 8080, named=True), b"GET / HTTP/1.0\r\n\r\n")
    assert not agrees(judge(LITERAL, 8080, named=True), b"GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n")
    assert agrees(judge(LITERAL, 8080, named=True, also="b.test"), b"GET / HTTP/1.1\r\nHost: b.test:8080\r\n\r\n")


def test_the_http2_preface_passes_untouched_where_the_rule_names_the_port() -> None:
    """P-PP-11, second half."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)
    assert agrees(judge(port=8080, named=True), preface)
    assert not agrees(judge(port=80), preface)
    assert not agrees(judge(port=8080, named=True), b"PRI * HTTP/2.0\r\nHost: blocked.test\r\n\r\n")


def test_silence_is_refused_and_an_end_without_a_byte_is_not() -> None:
    first = judge()
    first.timed_out()
    assert isinstance(first.finding, Disagreement)
    first = judge()
    first.eof()
    assert isinstance(first.finding, Agreed)


def test_who_may_speak_first() -> None:
    assert judge(port=25, named=True).server_may_speak
    assert not judge(port=80).server_may_speak
    assert not judge(port=443, named=True).server_may_speak
    assert judge(port=443, named=True, any_tls=True).server_may_speak


def test_hostile_first_bytes_cost_little() -> None:
    """Linear, whatever the bytes: a person's patience is not a test, so only what would take minutes fails here."""
    for data in (b"\r" * 8000 + b"x\n", b" HTTP" * 2000, b"\r\n" * 4000, b"GET " + b"\r" * 8100):
        first = judge(port=8080, named=True)
        for _ in range(20):
            first.feed(data)

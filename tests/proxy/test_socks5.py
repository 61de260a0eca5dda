"""SOCKS5 handshakes, read as transcripts: the client's bytes, the door's bytes, the request."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.allowlists.host import Address, Name
from doorward.proxy.socks5 import Reply, Socks5Event, Socks5Failed, Socks5Request, Socks5Server, reply

HELLO = b"\x05\x01\x00"
NAME = b"\x05\x01\x00\x03\x06a.test\x01\xbb"
V4 = b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"
V6 = b"\x05\x01\x00\x04" + ip_address("::1").packed + b"\x00\x50"


def answer(code: int) -> bytes:
    return b"\x05" + bytes([code]) + b"\x00\x01\x00\x00\x00\x00\x00\x00"


def ask(*pieces: bytes) -> tuple[list[Socks5Event], bytes, bytes]:
    """The events, all that was sent, and the bytes left over."""
    server = Socks5Server()
    events: list[Socks5Event] = []
    sent = b""
    for piece in pieces:
        events += server.feed(piece)
        sent += server.to_send()
    return events, sent, server.leftover()


def test_one_step_after_the_other() -> None:
    server = Socks5Server()
    assert server.feed(HELLO) == []
    assert server.to_send() == b"\x05\x00"
    assert server.to_send() == b""
    assert server.feed(NAME) == [Socks5Request(Name("a.test"), 443)]
    assert server.to_send() == b""
    assert server.feed(b"\x16\x03") == []
    assert server.leftover() == b"\x16\x03"
    assert server.leftover() == b""
    assert server.eof() == []


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (NAME, Socks5Request(Name("a.test"), 443)),
        (V4, Socks5Request(Address(ip_address("127.0.0.1")), 80)),
        (V6, Socks5Request(Address(ip_address("::1")), 80)),
        (
            b"\x05\x01\x00\x04" + ip_address("::ffff:10.0.0.1").packed + b"\x00\x50",
            Socks5Request(Address(ip_address("10.0.0.1")), 80),
        ),
        (b"\x05\x01\x00\x03\x09127.0.0.1\x00\x50", Socks5Request(Address(ip_address("127.0.0.1")), 80)),
        (b"\x05\x01\x00\x03\x07A.TEST.\x00\x50", Socks5Request(Name("a.test"), 80)),
    ],
)
def test_address_types_and_bytes_sent_ahead(request_bytes: bytes, expected: Socks5Request) -> None:
    events, sent, left = ask(HELLO + request_bytes + b"ahead")
    assert (events, sent, left) == ([expected], b"\x05\x00", b"ahead")
    assert isinstance(events[0], Socks5Request)


def test_no_authentication_is_chosen_among_several() -> None:
    assert ask(b"\x05\x03\x02\x00\x01")[1] == b"\x05\x00"


@pytest.mark.parametrize("methods", [b"\x05\x01\x02", b"\x05\x00", b"\x05\x02\x01\xff"])
def test_no_acceptable_method(methods: bytes) -> None:
    events, sent, left = ask(methods + NAME)
    assert isinstance(events[0], Socks5Failed) and events[0].code == 0xFF
    assert (sent, left) == (b"\x05\xff", b"")


def test_another_version_gets_no_answer() -> None:
    events, sent, _ = ask(b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00")
    assert isinstance(events[0], Socks5Failed) and events[0].code == -1
    assert sent == b""


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (b"\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", Reply.COMMAND_NOT_SUPPORTED),
        (b"\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50", Reply.COMMAND_NOT_SUPPORTED),
        (b"\x05\xf0\x00\x03\x06a.test\x00\x50", Reply.COMMAND_NOT_SUPPORTED),
        (b"\x05\x01\x00\x02", Reply.ADDRESS_TYPE_NOT_SUPPORTED),
        (b"\x05\x01\x00\x05\x7f\x00\x00\x01\x00\x50", Reply.ADDRESS_TYPE_NOT_SUPPORTED),
        (b"\x05\x01\x01", Reply.GENERAL_FAILURE),
        (b"\x04\x01\x00", Reply.GENERAL_FAILURE),
        (b"\x05\x01\x00\x03\x00\x00\x50", Reply.GENERAL_FAILURE),
        (b"\x05\x01\x00\x03\x06a.test\x00\x00", Reply.GENERAL_FAILURE),
    ],
)
def test_requests_that_are_refused(request_bytes: bytes, code: Reply) -> None:
    events, sent, left = ask(HELLO, request_bytes + b"tail", b"more")
    assert len(events) == 1 and isinstance(events[0], Socks5Failed)
    assert events[0].code == code
    assert sent == b"\x05\x00" + answer(code)
    assert left == b""


@pytest.mark.parametrize(
    "name",
    [
        b"127.0.0.1\0.allowed.test",
        b"a\0.allowed.test",
        b"a b.test",
        b"a\r\n.test",
        b"\xc3\xa9.test",
        b"a\x7f.test",
        b"127.1",
        b"0x7f.1",
        b"2130706433",
        b"a..test",
        b"[::1",
        b"::1",
        b"a.test:80",
        b"u@a.test",
        b"a" * 64 + b".test",
    ],
)
def test_names_that_are_none(name: bytes) -> None:
    """P-DN-05, P-IP-01"""
    events, sent, _ = ask(HELLO, b"\x05\x01\x00\x03" + bytes([len(name)]) + name + b"\x01\xbb")
    assert isinstance(events[0], Socks5Failed)
    assert "host is malformed" in events[0].sentence
    assert sent == b"\x05\x00" + answer(1)


@pytest.mark.parametrize("byte", range(256))
def test_every_byte_in_a_name(byte: int) -> None:
    """P-DN-05: letters, digits, hyphen, dot and underscore, nothing else."""
    events, _, _ = ask(HELLO, b"\x05\x01\x00\x03\x08ab" + bytes([byte]) + b".test\x01\xbb")
    fine = bytes([byte]).isalnum() or byte in b"-_"
    assert isinstance(events[0], Socks5Request if fine else Socks5Failed)


def test_the_end_inside_the_handshake() -> None:
    for begun in (b"", b"\x05", HELLO, HELLO + NAME[:-1]):
        server = Socks5Server()
        server.feed(begun)
        server.to_send()
        assert [type(event) for event in server.eof()] == [Socks5Failed]
        assert server.to_send() == b""
        assert server.eof() == []
        assert server.feed(NAME) == []


def test_replies() -> None:
    for code in Reply:
        assert reply(code) == answer(code)
    assert [code.value for code in Reply] == [0, 1, 2, 4, 5, 7, 8]


def cut(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


@settings(deadline=None)
@given(
    st.one_of(
        st.sampled_from([HELLO + NAME + b"tail", HELLO + V4, HELLO + V6 + b"\0"]),
        st.binary(max_size=40),
        st.binary(max_size=30).map(lambda tail: HELLO + tail),
        st.binary(max_size=30).map(lambda tail: HELLO + b"\x05\x01\x00" + tail),
    ),
    st.lists(st.integers(0, 1000), max_size=8),
)
def test_any_split_gives_the_same(data: bytes, cuts: list[int]) -> None:
    whole = ask(data)
    assert ask(*cut(data, cuts)) == whole
    assert len(whole[0]) <= 1

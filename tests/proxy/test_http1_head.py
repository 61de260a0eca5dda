"""Heads: what is taken, and everything that is not, byte by byte."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from doorward.proxy.http1 import BadMessage, RequestHead, RequestReader


def refused(data: bytes) -> BadMessage:
    """The error for `data`, which must come with no event, and no later than behind the last byte."""
    reader = RequestReader()
    with pytest.raises(BadMessage) as caught:
        reader.feed(data)
    slow = RequestReader()
    with pytest.raises(BadMessage):
        for position in range(len(data)):
            slow.feed(data[position : position + 1])
    return caught.value


def head_of(data: bytes) -> RequestHead:
    head = RequestReader().feed(data)[0]
    assert isinstance(head, RequestHead)
    return head


GET = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"


def test_a_head_keeps_order_and_case() -> None:
    head = head_of(b"GET http://a.test/ HTTP/1.1\r\nhOST: a.test\r\nX-B: 2\r\nX-A:1\r\nX-B:\t3 \t\r\nX-E:\r\n\r\n")
    assert head.headers == ((b"hOST", b"a.test"), (b"X-B", b"2"), (b"X-A", b"1"), (b"X-B", b"3"), (b"X-E", b""))
    assert (head.method, head.target, head.version) == ("GET", b"http://a.test/", (1, 1))
    assert (head.framing, head.length, head.keep_alive) == ("none", None, True)


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4",
        b"Transfer-Encoding: chunked\r\ncontent-length: 0",
        b"Transfer-Encoding: gzip\r\nContent-Length: 4",
    ],
)
def test_two_framings(framing: bytes) -> None:
    """P-PP-04"""
    head = b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n" + framing + b"\r\n\r\n"
    assert refused(head + b"0\r\n\r\nGET http://blocked.test/ HTTP/1.1\r\n\r\n").status == 400


@pytest.mark.parametrize(
    "lengths",
    [
        (b"5", b"6"),
        (b"5", b"5"),
        (b"5, 6",),
        (b"5, 5",),
        (b"5,5",),
        (b"+5",),
        (b"-1",),
        (b"5 5",),
        (b"",),
        (b"1_0",),
        ("٥".encode(),),
        (b"0x5",),
        (b"5;",),
        (b'"5"',),
        (b"5\0",),
        (b"9" * 30,),
        (b"9" * 19,),
    ],
)
def test_odd_lengths(lengths: Sequence[bytes]) -> None:
    """P-PP-05"""
    fields = b"".join(b"Content-Length: " + length + b"\r\n" for length in lengths)
    assert refused(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n" + fields + b"\r\n12345").status == 400


@pytest.mark.parametrize(
    "coding", [b"gzip, chunked", b"chunked, chunked", b"identity", b"xchunked", b"chunked;q=1", b"", b"chunked, "]
)
def test_other_codings(coding: bytes) -> None:
    post = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: " + coding + b"\r\n\r\n0\r\n\r\n"
    assert refused(post).status in (400, 501)


def test_a_coding_in_http_1_0() -> None:
    assert refused(b"POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status == 400


@pytest.mark.parametrize(
    "fields",
    [
        b"Host: a.test\nX: 1\r\n",
        b"Host: a.test\r\nX: 1\n",
        b"Host : a.test\r\n",
        b"Host\t: a.test\r\n",
        b" Host: a.test\r\n",
        b"X: 1\r\n\tfolded\r\n",
        b"X: 1\r\n folded\r\n",
        b"X: 1\r\n \r\n",
        b"X: a\0b\r\n",
        b"X: a\rb\r\n",
        b"X: a\x7fb\r\n",
        b"X: a\x01b\r\n",
        b"X\r\n",
        b": a\r\n",
        b"X(: a\r\n",
        b"X\xe9: a\r\n",
        b"X: 1\r\r\n",
    ],
)
def test_sloppy_lines(fields: bytes) -> None:
    """P-PP-06, P-DN-05"""
    assert refused(b"GET http://a.test/ HTTP/1.1\r\n" + fields + b"\r\n").status == 400


@pytest.mark.parametrize("place", ["name", "value", "target"])
def test_every_byte_in_every_place(place: str) -> None:
    """P-PP-06: what HTTP allows passes unchanged, everything else is refused."""
    token = b"!#$%&'*+-.^_`|~" + bytes(range(0x30, 0x3A)) + bytes(range(0x41, 0x5B)) + bytes(range(0x61, 0x7B))
    allowed = {
        "name": token,
        "value": b"\t" + bytes(range(0x20, 0x7F)) + bytes(range(0x80, 0x100)),
        "target": bytes(range(0x21, 0x7F)),
    }[place]
    for byte in range(256):
        mark = bytes([byte])
        data = {
            "name": b"GET http://a.test/ HTTP/1.1\r\nX" + mark + b"X: v\r\n\r\n",
            "value": b"GET http://a.test/ HTTP/1.1\r\nX: v" + mark + b"v\r\n\r\n",
            "target": b"GET http://a.test/x" + mark + b"x HTTP/1.1\r\n\r\n",
        }[place]
        if byte in allowed:
            head = head_of(data)
            assert (
                head.headers
                == {
                    "name": ((b"X" + mark + b"X", b"v"),),
                    "value": ((b"X", b"v" + mark + b"v"),),
                    "target": (),
                }[place]
            )
        elif place == "name" and mark == b":":
            assert head_of(data).headers == ((b"X", b"X: v"),)
        else:
            assert refused(data).status in (400, 501), mark


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET http://a.test/", 400),
        (b"GET http://a.test/ HTTP/0.9", 400),
        (b"GET http://a.test/ HTTP/1.2", 505),
        (b"GET http://a.test/ HTTP/2.0", 505),
        (b"GET http://a.test/ HTTP/3.0", 505),
        (b"GET http://a.test/ HTTP/1.10", 400),
        (b"GET http://a.test/ HTTP/1", 400),
        (b"GET http://a.test/ http/1.1", 400),
        (b"GET http://a.test/ HTTPS/1.1", 400),
        (b"GET  http://a.test/ HTTP/1.1", 400),
        (b"GET http://a.test/  HTTP/1.1", 400),
        (b"GET http://a.test/ HTTP/1.1 ", 400),
        (b" GET http://a.test/ HTTP/1.1", 400),
        (b"GET\thttp://a.test/ HTTP/1.1", 400),
        (b"GET http://a.test/ x HTTP/1.1", 400),
        (b"GET  HTTP/1.1", 400),
        (b"GET http://a.test/\r HTTP/1.1", 400),
        (b"GET http://a.t\0est/ HTTP/1.1", 400),
        (b"get http://a.test/ HTTP/1.1", 501),
        (b"Get http://a.test/ HTTP/1.1", 501),
        (b"FROB http://a.test/ HTTP/1.1", 501),
        (b"G(T http://a.test/ HTTP/1.1", 400),
        (b"PRI * HTTP/1.0", 501),
        (b"PRI http://a.test/ HTTP/1.1", 501),
        (b"CONNECT a.test HTTP/1.1 x", 400),
        (b"http://a.test/", 400),
    ],
)
def test_sloppy_request_lines(line: bytes, status: int) -> None:
    """P-PP-06"""
    assert refused(line + b"\r\nHost: a.test\r\n\r\n").status == status


def test_a_line_that_ends_in_lf_alone_is_refused_at_once() -> None:
    """P-PP-06: not only when the client's patience is over."""
    assert refused(b"GET http://a.test/ HTTP/1.1\nHost: a.test\n\n").status == 400
    assert refused(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\n").status == 400


def test_bytes_that_are_no_http_are_refused_at_once() -> None:
    assert refused(b"\x16\x03\x01\x02\x00").status == 400
    assert refused(b"\x04\x01\x00\x50").status == 400


def test_http2_preface() -> None:
    """P-PP-11"""
    error = refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
    assert error.status == 505
    assert "CONNECT" in error.sentence


def test_expectations() -> None:
    """P-PP-08: the reader says that the client waits."""
    post = b"POST http://a.test/ HTTP/1.%d\r\nHost: a.test\r\nExpect: 100-Continue\r\nContent-Length: %d\r\n\r\n"
    assert head_of(post % (1, 4)).expect_continue
    assert not head_of(post % (1, 0)).expect_continue
    assert not head_of(post % (0, 4)).expect_continue
    assert not head_of(GET).expect_continue

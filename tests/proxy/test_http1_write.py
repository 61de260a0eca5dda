"""The exact bytes that leave the proxy."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.proxy.http1 import Body, End, Headers, RequestHead, RequestReader, Trailers
from doorward.proxy.http1_response import ResponseHead, ResponseReader
from doorward.proxy.http1_write import (
    CONTINUE,
    chunk,
    connect_established,
    connect_head_for_parent,
    last_chunk,
    passed_through,
    request_head_for_origin,
    request_head_for_parent,
    response_head_for_client,
    simple_response,
)
from doorward.proxy.target import parse_target


def head_of(data: bytes) -> RequestHead:
    head = RequestReader().feed(data)[0]
    assert isinstance(head, RequestHead)
    return head


def forwarded(data: bytes, via: bytes = b"") -> bytes:
    head = head_of(data)
    return request_head_for_origin(head, parse_target(head), via)


def answered(
    data: bytes, method: str = "GET", *, keep_alive: bool = True, client_version: tuple[int, int] = (1, 1)
) -> bytes:
    head = ResponseReader(method, upgrading=True).feed(data)[0]
    assert isinstance(head, ResponseHead)
    return response_head_for_client(head, keep_alive, client_version)


def test_order_case_and_values_are_kept() -> None:
    assert forwarded(
        b"GET http://A.test/x?y HTTP/1.1\r\nAccept: */*\r\nhost: a.TEST:80\r\n"
        b"X-b:  2 \r\nx-A: \xe9\r\nX-b: 3\r\nX-E:\r\n\r\n"
    ) == (b"GET /x?y HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nX-b: 2\r\nx-A: \xe9\r\nX-b: 3\r\nX-E: \r\n\r\n")


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        (b"a.test", b"a.test"),
        (b"a.test:80", b"a.test"),
        (b"a.test:8080", b"a.test:8080"),
        (b"127.0.0.1", b"127.0.0.1"),
        (b"[::1]", b"[::1]"),
        (b"[0::1]:8080", b"[::1]:8080"),
        (b"[::ffff:10.0.0.1]:80", b"10.0.0.1"),
    ],
)
def test_host_comes_from_the_target(authority: bytes, host: bytes) -> None:
    """P-PP-02"""
    out = forwarded(b"GET http://%b/ HTTP/1.1\r\nHost: %b\r\n\r\n" % (authority, authority))
    assert out == b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host


def test_an_http_1_0_request_gets_a_host() -> None:
    assert forwarded(b"GET http://a.test/ HTTP/1.0\r\n\r\n", b"door") == (
        b"GET / HTTP/1.1\r\nHost: a.test\r\nVia: 1.0 door\r\n\r\n"
    )


def test_proxy_credentials_stay_and_others_go() -> None:
    """P-PP-12"""
    assert (
        forwarded(
            b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"
            b"Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\n"
            b"Authorization: Basic YTpi\r\nCookie: c\r\n\r\n"
        )
        == b"GET / HTTP/1.1\r\nHost: a.test\r\nAuthorization: Basic YTpi\r\nCookie: c\r\n\r\n"
    )


def test_what_belongs_to_one_hop_stays() -> None:
    assert (
        forwarded(
            b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX-One: 1\r\nX-Two: 2\r\n"
            b"Connection: x-one,Close , X-Three\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: websocket\r\n"
            b"connection: X-FOUR\r\nX-Four: 4\r\nX-Three: 3\r\n\r\n"
        )
        == b"GET / HTTP/1.1\r\nHost: a.test\r\nX-Two: 2\r\n\r\n"
    )


def test_every_connection_line_counts() -> None:
    """P-PF-06: also where there are hundreds, and for fields that stand before them."""
    options = [b"x-%x" % number for number in range(6000)]
    names = b"".join(b"Connection: " + b",".join(options[at : at + 25]) + b"\r\n" for at in range(0, 6000, 25))
    data = b"GET http://a.test/ HTTP/1.1\r\nX-0: 1\r\nHost: a.test\r\n" + names + b"X-176F: 1\r\nX-1770: 1\r\n\r\n"
    assert forwarded(data) == b"GET / HTTP/1.1\r\nHost: a.test\r\nX-1770: 1\r\n\r\n"


def test_connection_cannot_take_the_framing_or_the_host_away() -> None:
    """P-PP-04: a nominated Content-Length would leave a body that nobody announced."""
    assert (
        forwarded(
            b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 003\r\n"
            b"Connection: content-length, host\r\n\r\n"
        )
        == b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\n"
    )
    assert (
        forwarded(
            b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n"
            b"Connection: transfer-encoding\r\n\r\n"
        )
        == b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    )


def test_an_upgrade_goes_on() -> None:
    """P-PP-10"""
    assert forwarded(
        b"GET http://a.test/ws HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: k\r\n\r\n"
    ) == (
        b"GET /ws HTTP/1.1\r\nHost: a.test\r\nSec-WebSocket-Key: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    )


def test_an_h2c_upgrade_is_dropped() -> None:
    for connection in (b"Upgrade, HTTP2-Settings", b"Upgrade"):
        assert (
            forwarded(
                b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: %b\r\nUpgrade: h2c\r\n"
                b"HTTP2-Settings: AAMA\r\nAccept: */*\r\n\r\n" % connection
            )
            == b"GET / HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n"
        )


def test_an_expectation_goes_on() -> None:
    """P-PP-08"""
    assert b"\r\nExpect: 100-continue\r\n" in forwarded(
        b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
    )
    # an old client would take the 100 for the answer, so the server must not be asked for one (RFC 9110 §10.1.1)
    assert b"Expect" not in forwarded(
        b"POST http://a.test/ HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
    )


def test_via_tells_loops() -> None:
    """P-PP-16"""
    get = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n%b\r\n"
    assert not passed_through(head_of(get % b""), b"door-1")
    assert not passed_through(head_of(get % b"Via: 1.1 door-12, 1.0 xdoor-1\r\nVia: HTTP/1.1\r\n"), b"door-1")
    assert not passed_through(head_of(get % b"X-Via: 1.1 door-1\r\n"), b"door-1")
    assert passed_through(head_of(get % b"Via: 1.0 other\r\nvia: 1.1 x (y), HTTP/1.1 door-1 (z)\r\n"), b"door-1")
    once = forwarded(get % b"", b"door-1")
    assert once == b"GET / HTTP/1.1\r\nHost: a.test\r\nVia: 1.1 door-1\r\n\r\n"
    assert passed_through(head_of(once), b"door-1")


def test_a_head_for_an_upstream_proxy() -> None:
    def to_parent(data: bytes) -> bytes:
        head = head_of(data)
        return request_head_for_parent(head, parse_target(head), b"door", b"Basic cGFyZW50")

    assert to_parent(b"GET http://a.test:8080/x HTTP/1.1\r\nHost: a.test:8080\r\nProxy-Authorization: own\r\n\r\n") == (
        b"GET http://a.test:8080/x HTTP/1.1\r\nHost: a.test:8080\r\nProxy-Authorization: Basic cGFyZW50\r\n"
        b"Via: 1.1 door\r\n\r\n"
    )
    assert to_parent(b"OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n").startswith(
        b"OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n"
    )
    assert connect_head_for_parent(b"a.test:443") == b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"
    assert connect_head_for_parent(b"a.test:443", b"Basic x") == (
        b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nProxy-Authorization: Basic x\r\n\r\n"
    )


def test_a_response_head() -> None:
    data = (
        b"HTTP/1.1 200 Fine\r\nserver: x\r\nSet-Cookie: a\r\nset-cookie: b\r\n"
        b"Keep-Alive: 5\r\nConnection: keep-alive, X-H\r\n"
        b"X-H: 1\r\nContent-Length: 3\r\nProxy-Authenticate: Basic\r\n\r\n"
    )
    kept = b"HTTP/1.1 200 Fine\r\nserver: x\r\nSet-Cookie: a\r\nset-cookie: b\r\nContent-Length: 3\r\n"
    assert answered(data) == kept + b"\r\n"
    assert answered(data, keep_alive=False) == kept + b"Connection: close\r\n\r\n"


def test_response_framing() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert answered(chunked) == chunked
    assert answered(chunked, client_version=(1, 0)) == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    assert answered(b"HTTP/1.0 200 OK\r\n\r\n") == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    for method, head in [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 None\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ]:
        assert answered(head, method) == head
    assert answered(b"HTTP/1.1 204 None\r\nContent-Length: 3\r\n\r\n") == b"HTTP/1.1 204 None\r\n\r\n"
    assert answered(b"HTTP/1.1 204 None\r\n\r\n", keep_alive=False) == b"HTTP/1.1 204 None\r\nConnection: close\r\n\r\n"
    assert answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD") == b"HTTP/1.1 200 OK\r\n\r\n"


def test_interim_heads() -> None:
    """P-PP-08, P-PP-09"""
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    assert answered(early, keep_alive=False) == early
    assert answered(b"HTTP/1.1 100 Continue\r\n\r\n") == CONTINUE
    switch = b"HTTP/1.1 101 Switching Protocols\r\nX: 1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    assert answered(switch, keep_alive=False) == (
        b"HTTP/1.1 101 Switching Protocols\r\nX: 1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    )


def test_a_response_may_say_via() -> None:
    head = ResponseReader("GET").feed(b"HTTP/1.1 204 X\r\n\r\n")[0]
    assert isinstance(head, ResponseHead)
    assert response_head_for_client(head, True, via=b"door") == b"HTTP/1.1 204 X\r\nVia: 1.1 door\r\n\r\n"


def test_chunks() -> None:
    """P-PP-07: trailers go on as trailers, but none that frames or routes."""
    assert chunk(b"a" * 26) == b"1a\r\n" + b"a" * 26 + b"\r\n"
    assert chunk(b"") == b""
    assert last_chunk() == b"0\r\n\r\n"
    trailers = ((b"Host", b"blocked.test"), (b"Content-Length", b"9"), (b"X-T", b"1"), (b"Set-Cookie", b"a"))
    assert last_chunk(trailers) == b"0\r\nX-T: 1\r\n\r\n"


@pytest.mark.parametrize("status", [400, 408, 414, 431, 501, 502, 504, 505])
def test_answers_of_its_own(status: int) -> None:
    data = simple_response(status, "bad-request", "é is no host.\r\n", host="b.test", port=80)
    reader = ResponseReader("GET")
    head, body, end = reader.feed(data)
    assert isinstance(head, ResponseHead) and isinstance(body, Body) and isinstance(end, End)
    assert head.status == status
    assert [name for name, _ in head.headers] == [
        b"Content-Type",
        b"Content-Length",
        b"Connection",
        b"x-proxy-error",
    ]
    assert dict(head.headers)[b"x-proxy-error"] == b"bad-request"
    assert not head.keep_alive
    assert list(json.loads(body.data).items()) == [
        ("status", "error"),
        ("error", "bad-request"),
        ("host", "b.test"),
        ("port", 80),
        ("message", "é is no host.\r\n"),
    ]


def test_an_answer_to_head_has_no_body() -> None:
    data = simple_response(502, "dns-failed", "No.", method="HEAD")
    assert data.endswith(b"\r\n\r\n")
    assert b"Content-Length: 0" not in data


def test_an_established_tunnel_has_no_framing() -> None:
    head = ResponseReader("CONNECT").feed(connect_established())[0]
    assert isinstance(head, ResponseHead)
    assert (head.status, head.headers) == (200, ())


names = st.from_regex(rb"X-[A-Za-z0-9!#$%&'*+.^_`|~-]{1,10}", fullmatch=True)
values = st.from_regex(rb"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]{0,10}[!-~\x80-\xff])?)?", fullmatch=True)
fields = st.lists(st.tuples(names, values), max_size=5).map(tuple)


@settings(deadline=None)
@given(
    st.sampled_from(["GET", "POST", "DELETE", "M-SEARCH"]),
    st.sampled_from([b"a.test", b"a.test:8080", b"[::1]", b"127.0.0.1:1"]),
    st.from_regex(rb"/[!\"$->@-~?]{0,10}", fullmatch=True).filter(lambda path: b"#" not in path),
    fields,
    st.sampled_from([("none", None), ("length", 0), ("length", 12), ("chunked", None)]),
)
def test_what_was_written_reads_the_same(
    method: str, authority: bytes, path: bytes, headers: Headers, framing: tuple[str, int | None]
) -> None:
    kind, length = framing
    announce = {
        "none": b"",
        "length": b"Content-Length: %d\r\n" % (length or 0),
        "chunked": b"Transfer-Encoding: chunked\r\n",
    }
    block = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    head = head_of(
        b"%b http://%b%b HTTP/1.1\r\nHost: %b\r\n%b%b\r\n"
        % (method.encode(), authority, path, authority, announce[kind], block)
    )
    target = parse_target(head)
    again = head_of(request_head_for_origin(head, target, b""))
    assert (again.method, again.target) == (method, path)
    assert (again.framing, again.length, again.keep_alive) == (kind, length, True)
    assert tuple(field for field in again.headers if field[0].startswith(b"X-")) == headers
    assert request_head_for_origin(again, target, b"") == request_head_for_origin(head, target, b"")
    to_parent = head_of(request_head_for_parent(head, target, b"door"))
    assert parse_target(to_parent) == target


@settings(deadline=None)
@given(
    st.integers(200, 999).filter(lambda status: status not in (204, 304)),
    st.from_regex(rb"[ -~\x80-\xff]{0,10}", fullmatch=True),
    fields,
    st.sampled_from([b"Content-Length: 7\r\n", b"Transfer-Encoding: chunked\r\n"]),
    st.booleans(),
)
def test_a_response_that_was_written_reads_the_same(
    status: int, phrase: bytes, headers: Headers, framing: bytes, keep_alive: bool
) -> None:
    block = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    head = ResponseReader("GET").feed(b"HTTP/1.1 %d %b\r\n%b%b\r\n" % (status, phrase, block, framing))[0]
    assert isinstance(head, ResponseHead)
    again = ResponseReader("GET").feed(response_head_for_client(head, keep_alive))[0]
    assert isinstance(again, ResponseHead)
    assert again[:3] == head[:3]
    assert (again.framing, again.length, again.keep_alive) == (head.framing, head.length, keep_alive)
    assert tuple(field for field in again.headers if field[0].startswith(b"X-")) == headers


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=5), fields)
def test_chunks_that_were_written_read_the_same(pieces: list[bytes], trailers: Headers) -> None:
    reader = ResponseReader("GET")
    reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    events = reader.feed(b"".join(map(chunk, pieces)) + last_chunk(trailers))
    assert b"".join(event.data for event in events if isinstance(event, Body)) == b"".join(pieces)
    assert [event.headers for event in events if isinstance(event, Trailers)] == ([trailers] if trailers else [])
    assert isinstance(events[-1], End) and reader.reusable

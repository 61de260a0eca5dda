"""Requests, read as transcripts: what goes in, what comes out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from doorward.proxy.http1 import (
    BadMessage,
    Body,
    End,
    Raw,
    RequestEvent,
    RequestHead,
    RequestReader,
    Trailers,
)
from doorward.proxy.limits import Limits


def lines(events: Iterable[RequestEvent]) -> list[str]:
    """The events as lines of a transcript; neighbouring pieces of one body are one line."""
    said: list[str] = []
    body = raw = b""
    for event in [*events, None]:
        if body and not isinstance(event, Body):
            said.append(f"body {body.decode('latin-1')}")
            body = b""
        if raw and not isinstance(event, Raw):
            said.append(f"raw {raw.decode('latin-1')}")
            raw = b""
        match event:
            case RequestHead():
                said.append(f"{event.method} {event.target.decode()}")
            case Body():
                assert event.data
                body += event.data
            case Raw():
                assert event.data
                raw += event.data
            case Trailers():
                fields = (name + b"=" + value for name, value in event.headers)
                said.append("trailers " + b", ".join(fields).decode("latin-1"))
            case End():
                said.append("end")
    return said


def read(*pieces: bytes) -> list[str]:
    reader = RequestReader()
    return lines([event for piece in pieces for event in reader.feed(piece)])


def refused(data: bytes, limits: Limits | None = None) -> BadMessage:
    """The error for `data`, which must come with no event and be the same byte by byte."""
    reader = RequestReader(limits) if limits else RequestReader()
    with pytest.raises(BadMessage) as caught:
        reader.feed(data)
    with pytest.raises(BadMessage):
        reader.feed(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
    slow = RequestReader(limits) if limits else RequestReader()
    with pytest.raises(BadMessage):
        for position in range(len(data)):
            slow.feed(data[position : position + 1])
    return caught.value


def head_of(data: bytes) -> RequestHead:
    head = RequestReader().feed(data)[0]
    assert isinstance(head, RequestHead)
    return head


GET = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"


def test_one_request() -> None:
    assert read(GET) == ["GET http://a.test/", "end"]


def test_a_body_of_a_length() -> None:
    post = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\n"
    assert read(post + b"abcd" + GET) == ["POST http://a.test/", "body abcd", "end", "GET http://a.test/", "end"]
    assert read(post + b"ab", b"cd") == ["POST http://a.test/", "body abcd", "end"]
    assert read(post.replace(b"4", b"0") + GET) == ["POST http://a.test/", "end", "GET http://a.test/", "end"]


def test_a_chunked_body() -> None:
    post = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: CHUNKED\r\n\r\n"
    body = b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"
    assert read(post + body + GET) == ["POST http://a.test/", "body abc0123456789", "end", "GET http://a.test/", "end"]


def test_pipelined_requests_come_in_order() -> None:
    assert read(GET + GET.replace(b"/ ", b"/2 ") + GET[:-2], b"\r\n") == [
        "GET http://a.test/",
        "end",
        "GET http://a.test/2",
        "end",
        "GET http://a.test/",
        "end",
    ]


def test_whole_requests_before_a_malformed_one_are_not_lost() -> None:
    reader = RequestReader()
    assert lines(reader.feed(GET + b"GET http://a.test/ HTTP/1.1\r\nHost : a\r\n\r\n")) == ["GET http://a.test/", "end"]
    assert reader.failed is not None and reader.failed.status == 400
    with pytest.raises(BadMessage):
        reader.feed(b"")


def test_nothing_is_read_behind_the_last_request() -> None:
    close = GET.replace(b"\r\n\r\n", b"\r\nConnection: foo , Close\r\n\r\n")
    assert read(close + b"\0 not HTTP", b"at all") == ["GET http://a.test/", "end"]
    post = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 1\r\n\r\n"
    assert read(post + b"aGET", b" ...") == ["POST http://a.test/", "body a", "end"]


def test_http_1_0_is_always_the_last() -> None:
    head = head_of(b"GET http://a.test/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert head.version == (1, 0)
    assert not head.keep_alive


def test_connect_is_raw_behind_the_head() -> None:
    connect = b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"
    assert read(connect) == ["CONNECT a.test:443"]
    assert read(connect + b"\x16\x03\x01", b"\r\n\r\n") == ["CONNECT a.test:443", "raw \x16\x03\x01\r\n\r\n"]


def test_connect_with_a_body_is_refused() -> None:
    assert refused(b"CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\na").status == 400
    assert refused(b"CONNECT a.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status == 400
    assert read(b"CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 0\r\n\r\nabc") == ["CONNECT a.test:443", "raw abc"]


def test_trailers_stay_trailers_and_the_next_request_starts_at_the_right_byte() -> None:
    """P-PP-07"""
    post = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"3\r\nabc\r\n0\r\nHost: blocked.test\r\nContent-Length: 9\r\nX-T:\t1 \r\n\r\n"
    reader = RequestReader()
    events = reader.feed(post + body + GET)
    assert lines(events) == [
        "POST http://a.test/",
        "body abc",
        "trailers Host=blocked.test, Content-Length=9, X-T=1",
        "end",
        "GET http://a.test/",
        "end",
    ]
    assert isinstance(events[0], RequestHead)
    assert events[0].headers == ((b"Host", b"a.test"), (b"Transfer-Encoding", b"chunked"))


UPGRADE = (
    b"GET http://a.test/ws HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"
)


def test_an_upgrade_that_is_accepted() -> None:
    """P-PP-09, P-PP-10: the client's first bytes wait for the answer and are then passed verbatim."""
    reader = RequestReader()
    events = reader.feed(UPGRADE + b"\x81")
    assert lines(events) == ["GET http://a.test/ws", "end"]
    assert isinstance(events[0], RequestHead) and events[0].upgrade == b"websocket"
    assert reader.feed(b"\x01a") == []
    assert lines(reader.upgrade_answered(True)) == ["raw \x81\x01a"]
    assert lines(reader.feed(b"\r\n\r\n")) == ["raw \r\n\r\n"]
    assert reader.eof() == []


def test_an_upgrade_that_is_declined() -> None:
    reader = RequestReader()
    assert lines(reader.feed(UPGRADE + GET[:10])) == ["GET http://a.test/ws", "end"]
    assert reader.upgrade_answered(False) == []
    assert lines(reader.feed(GET[10:])) == ["GET http://a.test/", "end"]
    assert reader.upgrade_answered(True) == []
    assert lines(reader.feed(GET)) == ["GET http://a.test/", "end"]


@pytest.mark.parametrize(
    "fields",
    [
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket, H2C\r\n",
        b"Upgrade: websocket\r\n",
        b"Connection: Upgrade\r\n",
        b"Connection: Upgrade\r\nUpgrade:\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n",
    ],
)
def test_upgrades_that_do_not_count(fields: bytes) -> None:
    head = head_of(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n" + fields + b"\r\n")
    assert head.upgrade is None


def test_after_a_dropped_h2c_upgrade_requests_go_on() -> None:
    h2c = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert read(h2c + GET) == ["GET http://a.test/", "end", "GET http://a.test/", "end"]


def test_one_empty_line_before_a_request_is_skipped() -> None:
    assert read(b"\r\n" + GET + b"\r\n" + GET) == ["GET http://a.test/", "end"] * 2
    assert refused(b"\r\n\r\n" + GET).status == 400


LIMITS = Limits(request_line=60, head=200, header_count=3, trailers=40)


def test_limits() -> None:
    """P-PF-06: 414 for the line, 431 for the rest, at the very byte."""
    line = b"GET http://a.test/%b HTTP/1.1\r\n"
    fits = LIMITS.request_line - len(line % b"") + 2
    assert len(RequestReader(LIMITS).feed(line % (b"x" * fits) + b"\r\n")) == 2
    assert refused(line % (b"x" * (fits + 1)) + b"\r\n", LIMITS).status == 414
    assert refused(line % (b"x" * 300), LIMITS).status == 414
    assert refused(b"x" * 62, LIMITS).status == 414
    assert len(RequestReader(LIMITS).feed(line % b"" + b"X: 1\r\n" * 3 + b"\r\n")) == 2
    assert refused(line % b"" + b"X: 1\r\n" * 4 + b"\r\n", LIMITS).status == 431
    assert refused(line % b"" + b"X: " + b"1" * 200, LIMITS).status == 431
    assert refused(line % b"" + b"X: " + b"1" * 200 + b"\r\n\r\n", LIMITS).status == 431
    trailers = b"POST http://a.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    assert len(RequestReader(LIMITS).feed(trailers + b"X: 1\r\n" * 3 + b"\r\n")) == 3
    assert refused(trailers + b"X: 1\r\n" * 4 + b"\r\n", LIMITS).status == 431
    assert refused(trailers + b"X: " + b"1" * 40, LIMITS).status == 431


def test_a_hostile_stream_is_not_kept() -> None:
    """P-PF-06: memory stays bounded by the limits."""
    reader = RequestReader()
    with pytest.raises(BadMessage) as caught:
        for _ in range(100):
            reader.feed(b"GET http://a.test/" + b"x" * 1_000_000)
    assert caught.value.status == 414
    many = RequestReader()
    with pytest.raises(BadMessage) as caught:
        many.feed(GET[:-2])
        for _ in range(100_000):
            many.feed(b"X: 1\r\n")
    assert caught.value.status == 431


def test_the_end_of_the_connection() -> None:
    reader = RequestReader()
    assert reader.eof() == []
    reader.feed(GET)
    assert reader.idle and reader.eof() == []
    for unfinished in (b"G", GET[:-1], b"POST http://a.test/ HTTP/1.1\r\nContent-Length: 2\r\n\r\na"):
        cut = RequestReader()
        cut.feed(unfinished)
        assert not cut.idle
        with pytest.raises(BadMessage):
            cut.eof()


MESSAGES = [
    GET,
    b"GET http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nX-Empty:\r\n\r\n",
    b"HEAD http://a.test/ HTTP/1.0\r\n\r\n",
    b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nab\r\nc",
    b"POST http://a.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n5;e\r\n\r\n0\r\n\r\n0\r\n\r\n",
    b"PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-T: 1\r\nY: 2\r\n\r\n",
    b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n\x16\x03\x01\r\n\r\n",
    UPGRADE + b"\x81\x01a",
    b"\r\n",
    b"GET http://a.test/ HTTP/1.1\r\nConnection: close\r\n\r\n",
    b"BAD  http://a.test/ HTTP/1.1\r\n\r\n",
    b"GET http://a.test/ HTTP/1.1\r\nX: 1\n\r\n",
    b"POST http://a.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
]


def outcome(pieces: Iterable[bytes]) -> tuple[list[str], bool]:
    """The transcript, and whether it ended in an error; then without the message that was being read."""
    reader = RequestReader()
    events: list[RequestEvent] = []
    try:
        for piece in pieces:
            events += reader.feed(piece)
        reader.feed(b"")
        events += reader.upgrade_answered(True)
    except BadMessage:
        whole = lines(events)
        while whole and whole[-1] != "end":
            whole.pop()
        return whole, True
    return lines(events), False


def cut(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


@settings(deadline=None)
@given(st.lists(st.sampled_from(MESSAGES), max_size=4), st.lists(st.integers(0, 1000), max_size=8))
@example([MESSAGES[4], MESSAGES[5], GET], list(range(1000)))
def test_any_split_gives_the_same_events(messages: list[bytes], cuts: list[int]) -> None:
    data = b"".join(messages)
    assert outcome([data]) == outcome(cut(data, cuts))


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=2),
    st.lists(st.tuples(st.integers(0, 1000), st.binary(max_size=3)), min_size=1, max_size=3),
    st.lists(st.integers(0, 1000), max_size=8),
)
def test_a_damaged_request_raises_nothing_but_bad_message(
    messages: list[bytes], damages: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    data = b"".join(messages)
    for place, damage in damages:
        place %= len(data) + 1
        data = data[:place] + damage + data[place + len(damage) :]
    assert outcome([data]) == outcome(cut(data, cuts))


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_raise_anything_but_bad_message(pieces: list[bytes]) -> None:
    assert outcome([b"".join(pieces)]) == outcome(pieces)

"""Responses, read as transcripts: what an upstream server sends, what comes out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from doorward.proxy.http1_response import (
    BadMessage,
    Body,
    End,
    Raw,
    ResponseEvent,
    ResponseHead,
    ResponseReader,
    Trailers,
)
from doorward.proxy.limits import Limits


def lines(events: Iterable[ResponseEvent]) -> list[str]:
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
            case ResponseHead():
                said.append(f"{event.status} {event.phrase.decode('latin-1')} {event.framing}")
            case Body():
                body += event.data
            case Raw():
                raw += event.data
            case Trailers():
                said.append("trailers " + ", ".join(f"{n.decode()}={v.decode()}" for n, v in event.headers))
            case End():
                said.append("end")
    return said


def read(reader: ResponseReader, *pieces: bytes) -> list[str]:
    return lines([event for piece in pieces for event in reader.feed(piece)])


def refused(data: bytes, limits: Limits | None = None, method: str = "GET") -> str:
    """The sentence for `data`, which must come with no event, and byte by byte too."""
    reader = ResponseReader(method, limits=limits or Limits())
    with pytest.raises(BadMessage) as caught:
        reader.feed(data)
    assert caught.value.status == 502
    assert not reader.reusable
    slow = ResponseReader(method, limits=limits or Limits())
    with pytest.raises(BadMessage):
        for position in range(len(data)):
            slow.feed(data[position : position + 1])
    return caught.value.sentence


def test_a_body_of_a_length() -> None:
    reader = ResponseReader("GET")
    assert read(reader, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab") == ["200 OK length", "body ab"]
    assert not reader.reusable
    assert read(reader, b"c") == ["body c", "end"]
    assert reader.reusable


def test_a_chunked_body_with_trailers() -> None:
    reader = ResponseReader("GET")
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"
    assert read(reader, data) == ["200 OK chunked", "body abc", "trailers X-T=1", "end"]
    assert reader.reusable


def test_a_body_until_the_close() -> None:
    reader = ResponseReader("GET")
    assert read(reader, b"HTTP/1.1 200 OK\r\n\r\n", b"ab", b"\r\n") == ["200 OK until-close", "body ab\r\n"]
    assert lines(reader.eof()) == ["end"]
    assert reader.eof() == []
    assert not reader.reusable


@pytest.mark.parametrize(
    ("method", "status"), [("HEAD", 200), ("HEAD", 404), ("GET", 204), ("GET", 304), ("POST", 204), ("HEAD", 304)]
)
@pytest.mark.parametrize("framing", [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b""])
def test_responses_without_a_body_whatever_they_say(method: str, status: int, framing: bytes) -> None:
    reader = ResponseReader(method)
    assert read(reader, b"HTTP/1.1 %d X\r\n%b\r\n" % (status, framing)) == [f"{status} X none", "end"]
    assert reader.reusable


def test_an_empty_body() -> None:
    reader = ResponseReader("GET")
    assert read(reader, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") == ["200 OK length", "end"]
    assert reader.reusable


def test_interim_responses_come_first_and_the_final_one_once() -> None:
    """P-PP-08"""
    reader = ResponseReader("POST")
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    assert read(reader, data) == ["100 Continue none", "103 Early Hints none"]
    assert not reader.reusable
    assert read(reader, b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n") == ["413 Too Large length", "end"]


def test_bytes_behind_a_switch_of_protocols() -> None:
    """P-PP-09"""
    reader = ResponseReader("GET", upgrading=True)
    data = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x03abc"
    events = reader.feed(data)
    assert lines(events) == ["101 Switching Protocols none", "raw \x81\x03abc"]
    assert isinstance(events[0], ResponseHead) and events[0].upgraded
    assert read(reader, b"\r\n") == ["raw \r\n"]
    assert reader.eof() == []
    assert not reader.reusable


def test_a_switch_nobody_asked_for() -> None:
    assert "nobody asked" in refused(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert "nobody asked" in refused(b"HTTP/1.1 101 X\r\n\r\n")


def test_an_upgrade_that_is_declined() -> None:
    reader = ResponseReader("GET", upgrading=True)
    assert read(reader, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na") == ["200 OK length", "body a", "end"]


def test_an_answer_to_connect() -> None:
    reader = ResponseReader("CONNECT")
    assert read(reader, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc") == ["200 OK none", "raw abc"]
    refusal = ResponseReader("CONNECT")
    assert read(refusal, b"HTTP/1.1 407 No\r\nContent-Length: 1\r\n\r\na") == ["407 No length", "body a", "end"]


def test_bytes_beyond_the_end_are_nobodys_answer() -> None:
    for excess in (b"x", b"HTTP/1.1 200 OK\r\n\r\n"):
        at_once = ResponseReader("GET")
        assert read(at_once, b"HTTP/1.1 204 X\r\n\r\n" + excess) == ["204 X none", "end"]
        assert not at_once.reusable
        later = ResponseReader("GET")
        read(later, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
        assert later.reusable
        assert later.feed(excess) == []
        assert not later.reusable


def test_whether_the_server_keeps_the_connection() -> None:
    kept = b"HTTP/1.%d 200 OK\r\nContent-Length: 0\r\n%b\r\n"
    for minor, field, keeps in [
        (1, b"", True),
        (1, b"Connection: foo, CLOSE\r\n", False),
        (1, b"Connection: close, keep-alive\r\n", False),
        (0, b"", False),
        (0, b"Connection: Keep-Alive\r\n", True),
    ]:
        reader = ResponseReader("GET")
        reader.feed(kept % (minor, field))
        assert reader.reusable is keeps
    gone = ResponseReader("GET")
    gone.feed(kept % (1, b""))
    assert gone.eof() == []
    assert not gone.reusable


def test_the_connection_ends_too_early() -> None:
    for begun, word in [
        (b"", "without an answer"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "without an answer"),
        (b"HTTP/1.1 2", "inside"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", "inside"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", "inside"),
    ]:
        reader = ResponseReader("GET")
        reader.feed(begun)
        with pytest.raises(BadMessage) as caught:
            reader.eof()
        assert caught.value.status == 502
        assert word in caught.value.sentence


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\nX: 1\n\n",
        b"HTTP/1.1 200 OK\r\nX: 1\n\r\n",
        b"HTTP/1.1 200 OK\r\nX : 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: 1\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
        b"HTTP/1.1 200 O\x01K\r\n\r\n",
        b"HTTP/1.1 200 O\x7fK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 200OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/0.9 200 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n",
        b"\x15\x03\x03\x00\x02",
    ],
)
def test_malformed_responses(head: bytes) -> None:
    """P-PP-04, P-PP-05, P-PP-06, P-PP-07, from the other side."""
    refused(head)


def test_a_bare_status_is_taken() -> None:
    assert read(ResponseReader("GET"), b"HTTP/1.1 204\r\n\r\n") == ["204  none", "end"]
    assert read(ResponseReader("GET"), b"HTTP/1.1 299 \xe9t\xe9\r\nContent-Length: 0\r\n\r\n")[0] == "299 été length"


def test_limits() -> None:
    """P-PF-06"""
    limits = Limits(request_line=40, head=200, header_count=3)
    refused(b"HTTP/1.1 200 " + b"x" * 30 + b"\r\n\r\n", limits)
    refused(b"HTTP/1.1 200 " + b"x" * 400, limits)
    refused(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200, limits)
    refused(b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 4 + b"\r\n", limits)
    assert len(ResponseReader("HEAD", limits=limits).feed(b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 3 + b"\r\n")) == 2


MESSAGES = [
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nabc\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na\r\nb",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\r\r\n4;x\r\nb\r\nc\r\n0\r\nX: 1\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nX: 1\r\n\r\nall of it",
    b"HTTP/1.1 204 None\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabXX",
]


def outcome(method: str, pieces: Iterable[bytes]) -> tuple[list[str], bool, bool]:
    """The transcript (empty if it ended in an error), whether it did, and whether the connection may be used again."""
    reader = ResponseReader(method, upgrading=True)
    events: list[ResponseEvent] = []
    try:
        for piece in pieces:
            events += reader.feed(piece)
    except BadMessage:
        return [], True, False
    return lines(events), False, reader.reusable


def cut(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


@settings(deadline=None)
@given(
    st.sampled_from(["GET", "HEAD", "CONNECT"]),
    st.lists(st.sampled_from(MESSAGES), max_size=3),
    st.lists(st.tuples(st.integers(0, 1000), st.binary(max_size=3)), max_size=2),
    st.lists(st.integers(0, 1000), max_size=8),
)
@example("GET", [MESSAGES[0], MESSAGES[3]], [], list(range(1000)))
def test_any_split_gives_the_same_events(
    method: str, messages: list[bytes], damages: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    data = b"".join(messages)
    for place, damage in damages:
        place %= len(data) + 1
        data = data[:place] + damage + data[place + len(damage) :]
    assert outcome(method, [data]) == outcome(method, cut(data, cuts))


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_raise_anything_but_bad_message(pieces: list[bytes]) -> None:
    assert outcome("GET", [b"".join(pieces)]) == outcome("GET", pieces)


@pytest.mark.parametrize(
    ("method", "data", "body"),
    [
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", b"ab"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", b""),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", None),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", None),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Le", None),
        ("GET", b"HTTP/1.1 200 OK\r\n\r\nab", None),
        ("GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", None),
        ("GET", b"HTTP/1.1 100 Continue\r\n\r\n", None),
        ("GET", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", None),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", None),
    ],
)
def test_a_whole_answer_is_taken_at_once_and_any_other_is_read_on(method: str, data: bytes, body: bytes | None) -> None:
    reader, other = ResponseReader(method), ResponseReader(method)
    expected = other.feed(data)
    whole = reader.whole(data)
    if body is None:
        assert whole is None
        assert reader.feed(data) == expected
    else:
        assert whole == (expected[0], body)
        assert expected[1:] == [*([Body(body)] if body else []), End()]
    assert reader.reusable is other.reusable


def test_an_answer_that_is_malformed_is_so_at_once() -> None:
    reader = ResponseReader("GET")
    with pytest.raises(BadMessage) as caught:
        reader.whole(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na")
    assert caught.value.status == 502
    with pytest.raises(BadMessage):
        reader.feed(b"")

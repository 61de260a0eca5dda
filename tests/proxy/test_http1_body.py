"""Bodies: where one ends, and chunks that are none."""

from __future__ import annotations

import pytest

from doorward.proxy.http1 import BadMessage, Body, End, RequestReader, Trailers
from doorward.proxy.http1_body import BodyDecoder, ChunkedBody, LengthBody
from doorward.proxy.http1_message import BodyEvent
from doorward.proxy.limits import DEFAULT


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


def decode(body: BodyDecoder, *pieces: bytes) -> tuple[list[BodyEvent], bytes]:
    """The events, and what was left behind the body."""
    events: list[BodyEvent] = []
    kept = b""
    for piece in pieces:
        kept += piece
        if not body.done:
            kept = kept[body.take(kept, 0, events) :]
    return events, kept


def test_a_length_ends_at_its_byte() -> None:
    events, rest = decode(LengthBody(5), b"abc", b"deXYZ")
    assert [type(event) for event in events] == [Body, Body, End]
    assert events[:2] == [Body(b"abc"), Body(b"de")]
    assert rest == b"XYZ"


def test_chunks_end_behind_their_empty_line() -> None:
    events, rest = decode(ChunkedBody(400, DEFAULT), b"2\r", b"\nab\r", b"\n0\r\n", b"\r\nXYZ")
    assert [type(event) for event in events] == [Body, End]
    assert events[0] == Body(b"ab")
    assert rest == b"XYZ"


@pytest.mark.parametrize("extension", [b"", b";x", b";x=y", b';x="a b;\\"c"', b";x=1;y;z=2"])
def test_extensions_are_dropped(extension: bytes) -> None:
    events, _ = decode(ChunkedBody(400, DEFAULT), b"2" + extension + b"\r\nab\r\n0" + extension + b"\r\n\r\n")
    assert [type(event) for event in events] == [Body, End]


def test_a_chunk_is_handed_on_before_it_is_whole() -> None:
    body = ChunkedBody(400, DEFAULT)
    events, _ = decode(body, b"FFFFFF\r\nabc")
    assert events == [Body(b"abc")]
    assert not body.done


def test_trailers_lose_the_blanks_around_them() -> None:
    events, rest = decode(ChunkedBody(400, DEFAULT), b"0\r\nA:1\r\nB: \t2 3\t \r\nC:\r\n\r\nX")
    assert [type(event) for event in events] == [Trailers, End]
    assert events[0] == Trailers(((b"A", b"1"), (b"B", b"2 3"), (b"C", b"")))
    assert rest == b"X"


def test_an_upstream_is_never_blamed_on_the_client() -> None:
    for wrong in (b"x\r\n", b"1\r\nabc", b"0\r\nX: " + b"1" * 70_000, b"0\r\n" + b"X: 1\r\n" * 300 + b"\r\n"):
        with pytest.raises(BadMessage) as caught:
            decode(ChunkedBody(502, DEFAULT), wrong)
        assert caught.value.status == 502


@pytest.mark.parametrize(
    "body",
    [
        b"3\r\nabcXX0\r\n\r\n",
        b"3\r\nabc\n0\r\n\r\n",
        b"3\r\nabc\r0\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"+4\r\nabcd\r\n0\r\n\r\n",
        b"-4\r\nabcd\r\n0\r\n\r\n",
        b"0x4\r\nabcd\r\n0\r\n\r\n",
        b"4_0\r\n" + b"a" * 64 + b"\r\n0\r\n\r\n",
        b" 4\r\nabcd\r\n0\r\n\r\n",
        b"4 \r\nabcd\r\n0\r\n\r\n",
        b"4 ;x\r\nabcd\r\n0\r\n\r\n",
        b"4\nabcd\r\n0\r\n\r\n",
        b"4;x\ny\r\nabcd\r\n0\r\n\r\n",
        b"4;x=\x96\r\nabcd\r\n0\r\n\r\n",
        b"4;x y\r\nabcd\r\n0\r\n\r\n",
        b"4;\r\nabcd\r\n0\r\n\r\n",
        b"4;x=\r\nabcd\r\n0\r\n\r\n",
        b'4;x="y\r\nabcd\r\n0\r\n\r\n',
        b"4;\0\r\nabcd\r\n0\r\n\r\n",
        b"\r\n\r\n",
        b"g\r\n",
        b"00000000000000004\r\nabcd\r\n0\r\n\r\n",
        b"4;" + b"x" * 1024 + b"\r\nabcd\r\n0\r\n\r\n",
        b"0\r\nX: 1\n\r\n\r\n",
        b"0\r\nX : 1\r\n\r\n",
        b"0\r\n X: 1\r\n\r\n",
        b"0\r\nX\r\n\r\n",
        b"0\r\nX: \0\r\n\r\n",
        b"0\r\n\n",
    ],
)
def test_sloppy_chunks(body: bytes) -> None:
    """P-PP-06, P-PP-07: nothing of the request comes out, so nothing is dialled."""
    post = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert refused(post + body).status == 400

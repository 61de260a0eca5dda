"""Fuzzes response reading and writing.

Held for every input, for each kind of request: nothing is raised but BadMessage; reading byte by byte gives the same;
what is written for the client reads back as exactly one response with the same content.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import fuzz_runner

with fuzz_runner.instrumented():
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
    from doorward.proxy.http1_write import chunk, last_chunk, response_head_for_client


def read(method: str, upgrading: bool, pieces: Iterable[bytes]) -> tuple[list[ResponseEvent], bytes, bytes, bool]:
    """The events but for content, the content, the raw bytes, and whether the connection may be used again."""
    reader = ResponseReader(method, upgrading=upgrading)
    events: list[ResponseEvent] = []
    try:
        for piece in pieces:
            events += reader.feed(piece)
        if not reader.reusable:
            events += reader.eof()
    except BadMessage as error:
        assert error.status == 502
        assert not reader.reusable
        return [], b"", b"", False
    content = b"".join(event.data for event in events if isinstance(event, Body))
    raw = b"".join(event.data for event in events if isinstance(event, Raw))
    return [event for event in events if not isinstance(event, (Body, Raw))], content, raw, reader.reusable


def check_at_once(data: bytes, method: str) -> None:
    """What is taken as a whole answer is one, and what is not is read on as if nobody had looked."""
    reader, other = ResponseReader(method), ResponseReader(method)
    try:
        whole = reader.whole(data)
        events = None if whole is not None else reader.feed(data)
    except BadMessage as error:
        assert read(method, False, [data])[0] == [] and reader.failed is error
        return
    expected = other.feed(data)
    if whole is not None:
        head, body = whole
        assert expected == [head, Body(body), End()] if body else expected == [head, End()]
    else:
        assert events == expected
    assert reader.reusable is other.reusable


def check(data: bytes) -> None:
    for method in ("GET", "HEAD"):
        check_at_once(data, method)
    for method, upgrading in (("GET", False), ("GET", True), ("HEAD", False), ("CONNECT", False)):
        whole = read(method, upgrading, [data])
        assert whole == read(method, upgrading, (data[place : place + 1] for place in range(len(data))))
        events, content, raw, _ = whole
        if not events:
            continue
        heads = [event for event in events if isinstance(event, ResponseHead)]
        assert all(100 <= head.status < 200 and head.status != 101 for head in heads[:-1])
        assert not (content and raw)
        assert sum(isinstance(event, End) for event in events) <= 1
        if method == "GET" and isinstance(events[-1], End):
            trailers = tuple(field for event in events if isinstance(event, Trailers) for field in event.headers)
            head = heads[-1]
            body = chunk(content) + last_chunk(trailers) if head.framing == "chunked" else content
            out = response_head_for_client(head, True) + body
            again, same, nothing, reusable = read(method, upgrading, [out])
            assert isinstance(again[0], ResponseHead) and isinstance(again[-1], End)
            assert (again[0].status, again[0].framing, same, nothing) == (head.status, head.framing, content, b"")
            assert reusable is (head.framing != "until-close")
            if head.framing == "chunked":
                old = response_head_for_client(head, True, (1, 0)) + content
                assert read(method, upgrading, [old])[1] == content


if __name__ == "__main__":
    sys.exit(fuzz_runner.main("http1_response", check))

"""Fuzzes request reading and writing.

Held for every input: nothing is raised but BadMessage; reading byte by byte gives the same messages; llhttp, given the
same bytes, sees the same messages; what is written for the origin reads back as exactly one message with the same
content, for us and for llhttp (no smuggled second one).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import fuzz_runner
import httptools

with fuzz_runner.instrumented():
    from doorward.proxy.http1 import (
        BadMessage,
        Body,
        End,
        Headers,
        Raw,
        RequestEvent,
        RequestHead,
        RequestReader,
        Trailers,
    )
    from doorward.proxy.http1_write import chunk, last_chunk, request_head_for_origin, request_head_for_parent
    from doorward.proxy.target import RefusedTarget, Target, parse_target

Message = tuple[RequestHead, bytes, Headers, bool]  # head, content, trailers, whole


def messages(events: Iterable[RequestEvent]) -> tuple[list[Message], bytes]:
    """The messages, and the raw bytes behind the last."""
    found: list[Message] = []
    raw = b""
    for event in events:
        if isinstance(event, RequestHead):
            found.append((event, b"", (), False))
        elif isinstance(event, Raw):
            raw += event.data
        else:
            head, content, trailers, whole = found.pop()
            assert not whole
            if isinstance(event, Body):
                assert event.data
                content += event.data
            elif isinstance(event, Trailers):
                trailers = event.headers
            found.append((head, content, trailers, isinstance(event, End)))
    return found, raw


def read(pieces: Iterable[bytes]) -> tuple[list[Message], bytes, bool]:
    """The messages, the raw bytes, and whether it ended in an error; whole messages only, if so."""
    reader = RequestReader()
    events: list[RequestEvent] = []
    failed = False
    try:
        for piece in pieces:
            events += reader.feed(piece)
        reader.feed(b"")
    except BadMessage as error:
        assert error.status in (400, 414, 431, 501, 505)
        failed = True
    found, raw = messages(events)
    return [message for message in found if message[3] or not failed], raw, failed


class Llhttp:
    """What llhttp makes of the same bytes."""

    def __init__(self, data: bytes) -> None:
        self.found: list[tuple[bytes, bytes, list[tuple[bytes, bytes]]]] = []
        self.whole = 0
        self.refused = False
        self._url = b""
        self._parser = httptools.HttpRequestParser(self)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass
        except httptools.HttpParserError:
            self.refused = True

    def on_message_begin(self) -> None:
        self._url = b""
        self.found.append((b"", b"", []))

    def on_url(self, url: bytes) -> None:
        self._url += url
        self.found[-1] = (self._url, b"", [])

    def on_header(self, name: bytes, value: bytes) -> None:
        self.found[-1][2].append((name, value.rstrip(b" \t")))

    def on_body(self, data: bytes) -> None:
        url, content, headers = self.found[-1]
        self.found[-1] = (url, content + data, headers)

    def on_message_complete(self) -> None:
        self.whole += 1


def agrees(found: list[Message], data: bytes) -> None:
    """llhttp must see what we see, as far as we took it."""
    # llhttp stops at an upgrade that we drop, reads on behind a last request, and lets trailers frame messages
    for place, (head, _, trailers, _) in enumerate(found):
        framing = any(name.lower() in (b"content-length", b"transfer-encoding", b"connection") for name, _ in trailers)
        if any(name.lower() == b"upgrade" for name, _ in head.headers) or not head.keep_alive or framing:
            found = found[: place + (not framing)]
            break
    theirs = Llhttp(data)
    assert len(theirs.found) >= len(found), (found, theirs.found)
    assert theirs.whole >= sum(message[3] for message in found), "llhttp refuses a whole message that we take"
    for (head, content, trailers, whole), (url, their_content, headers) in zip(found, theirs.found, strict=False):
        assert url == head.target
        if any(name.lower() == b"upgrade" for name, _ in head.headers):
            assert tuple(headers[: len(head.headers)]) == head.headers  # to llhttp an upgrade has no body
        elif whole:
            assert tuple(headers) == (*head.headers, *trailers)
            assert their_content == content


def check(data: bytes) -> None:
    found, raw, failed = read([data])
    assert (found, raw, failed) == read(data[place : place + 1] for place in range(len(data)))
    agrees(found, data)
    for message in found:
        head, content, trailers, whole = message
        try:
            target = parse_target(head)
        except (BadMessage, RefusedTarget):
            continue
        if whole and head.method != "CONNECT":
            check_written(head, target, content, trailers)


def check_written(head: RequestHead, target: Target, content: bytes, trailers: Headers) -> None:
    body = chunk(content) + last_chunk(trailers) if head.framing == "chunked" else content
    out = request_head_for_origin(head, target, b"door") + body
    again, raw, failed = read([out])
    assert len(again) == 1 and again[0][3] and not raw and not failed, out
    written = again[0][0]
    assert (written.method, written.target, written.framing) == (head.method, target.path, head.framing)
    assert (written.upgrade, again[0][1]) == (head.upgrade, content)
    assert written.length == head.length
    theirs = Llhttp(out)
    assert not theirs.refused and theirs.whole == 1 and theirs.found[0][1] == content, out
    to_parent = RequestReader().feed(request_head_for_parent(head, target, b"door"))[0]
    assert isinstance(to_parent, RequestHead) and parse_target(to_parent) == target


if __name__ == "__main__":
    sys.exit(fuzz_runner.main("http1", check))

"""Fuzzes the SOCKS5 handshake.

Held for every input: nothing is raised; reading byte by byte gives the same; at most one event; what a request leaves
over is exactly the tail of the input; a name that is taken has only the bytes of a host name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import fuzz_runner

with fuzz_runner.instrumented():
    from doorward.allowlists.host import Name
    from doorward.proxy.socks5 import Socks5Event, Socks5Failed, Socks5Request, Socks5Server

_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")


def read(pieces: Iterable[bytes]) -> tuple[list[Socks5Event], bytes, bytes]:
    server = Socks5Server()
    events: list[Socks5Event] = []
    sent = b""
    for piece in pieces:
        events += server.feed(piece)
        sent += server.to_send()
    return events, sent, server.leftover()


def check(data: bytes) -> None:
    events, sent, left = read([data])
    assert (events, sent, left) == read(data[place : place + 1] for place in range(len(data)))
    assert len(events) <= 1
    assert sent in (b"", b"\x05\x00", b"\x05\xff") or (sent[:3] == b"\x05\x00\x05" and len(sent) == 12)
    if events and isinstance(events[0], Socks5Request):
        assert sent == b"\x05\x00"
        assert data.endswith(left)
        assert 1 <= events[0].port <= 65535
        if isinstance(events[0].host, Name):
            assert _NAME.fullmatch(events[0].host.text)
    elif events:
        assert isinstance(events[0], Socks5Failed) and not left


if __name__ == "__main__":
    sys.exit(fuzz_runner.main("socks5", check))

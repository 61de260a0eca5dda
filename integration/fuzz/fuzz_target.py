"""Fuzzes targets: the input is a request line's target, a blank, and a Host line's value.

Held for every input: nothing is raised but what is named; a target that is taken is written back as an authority that
parses to the same; no host that is taken means another one to the C resolver (a numeric spelling it would read itself).
"""

from __future__ import annotations

import socket
import sys

import fuzz_runner

with fuzz_runner.instrumented():
    from doorward.allowlists.host import Address, authority_text
    from doorward.proxy.http1 import BadMessage, RequestHead
    from doorward.proxy.target import RefusedTarget, parse_authority, parse_target


def check(data: bytes) -> None:
    text, _, host = data.partition(b" ")
    for method in ("GET", "CONNECT", "OPTIONS"):
        head = RequestHead(method, text, (1, 1), ((b"hOst", host),), "none", None, True, False, None)
        try:
            target = parse_target(head)
        except RefusedTarget as refused:
            authority = authority_text(refused.target.host, refused.target.port)
            assert authority in refused.decision.message
            continue
        except BadMessage as error:
            assert error.status == 400
            continue
        authority = authority_text(target.host, target.port)
        assert parse_authority(authority.encode("ascii")) == (target.host, target.port)
        assert 1 <= target.port <= 65535
        assert target.path[:1] in (b"/", b"*") or method == "CONNECT"
        if isinstance(target.host, Address):
            continue
        assert target.host.text == target.host.text.lower() and target.host.text.isascii()
        try:
            # AI_NUMERICHOST: no look-up, only what the C library itself takes for an address
            socket.getaddrinfo(target.host.text, None, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            continue
        raise AssertionError(f"{target.host.text!r} is an address to the C library")


if __name__ == "__main__":
    sys.exit(fuzz_runner.main("target", check))

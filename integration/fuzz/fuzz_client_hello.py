"""Fuzzes the ClientHello reader against OpenSSL's server.

Held for every input: nothing is raised; reading byte by byte gives the same; and whenever OpenSSL accepts a hello, the
reader has found a hello with the same name, or has refused it. It never says "no name", "not TLS" or "not
yet" about a hello that names a server.
"""

from __future__ import annotations

import ssl
import sys

import fuzz_runner

with fuzz_runner.instrumented():
    from doorward.proxy.client_hello import BadHello, ClientHello, HelloReader, NeedMore

_NO_HELLO = object()
_heard: list[str | None] = []


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.sni_callback = lambda _, name, __: _heard.append(name)
    return context


_CONTEXT = _context()
# a name that is not ASCII never reaches the callback; the error that says so does
sys.unraisablehook = lambda _: _heard.append("not ASCII")


def openssl_hears(data: bytes) -> str | object | None:
    """The name OpenSSL finds, None where it finds a hello without one, _NO_HELLO where it finds none."""
    _heard.clear()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    incoming.write(data)
    try:
        _CONTEXT.wrap_bio(incoming, outgoing, server_side=True).do_handshake()
    except ssl.SSLError:
        pass
    return _heard[0] if _heard else _NO_HELLO


def check(data: bytes) -> None:
    reader = HelloReader()
    finding = reader.feed(data)
    slow = HelloReader()
    last = slow.feed(b"")
    for place in range(len(data)):
        last = slow.feed(data[place : place + 1])
    assert (type(last), last) == (type(finding), finding)
    assert reader.data == slow.data == data
    heard = openssl_hears(data)
    if heard is _NO_HELLO or isinstance(finding, BadHello):
        return
    if heard is None and data[:1] != b"\x16":
        return  # an SSLv2 hello, which cannot name a server; to us it is not TLS
    assert not isinstance(finding, NeedMore)
    assert isinstance(finding, ClientHello), (finding, heard)
    assert finding.server_name == (heard.lower().removesuffix(".") if isinstance(heard, str) else None)


if __name__ == "__main__":
    sys.exit(fuzz_runner.main("client_hello", check))

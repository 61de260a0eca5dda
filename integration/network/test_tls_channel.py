"""TLS towards an upstream proxy: ends of each direction, records that lie where nobody sees them."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from doorward.proxy.channel import Channel
from doorward.proxy.loop import Loop
from doorward.proxy.tls_channel import TlsChannel

Serve = Callable[[ssl.SSLSocket], None]


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def connect(network: Any, loop: Loop, certificate: Path) -> Any:
    """A channel, before its handshake, to a server over TLS that does as told."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def make(serve: Serve) -> TlsChannel:
        def accept(sock: socket.socket) -> None:
            with context.wrap_socket(sock, server_side=True, suppress_ragged_eofs=False) as secure:
                serve(secure)

        sock = socket.create_connection(("127.0.0.1", network.listener(accept).port))
        sock.setblocking(False)
        return TlsChannel(Channel(loop, sock), "127.0.0.1")

    return make


async def all_of(channel: TlsChannel, deadline: float) -> bytes:
    whole = b""
    while data := await channel.recv(100, deadline):
        whole += data
    return whole


def test_what_was_received_before_the_end_was_said_is_kept(network: Any, loop: Loop, connect: Any) -> None:
    """RFC 8446 §6.1: close_notify ends one direction."""
    sent = threading.Event()

    def serve(secure: ssl.SSLSocket) -> None:
        for number in range(100):
            secure.sendall(b"record %03d." % number)
        sent.set()
        assert secure.recv(100) == b""
        secure.sendall(b"after it")
        secure.unwrap()

    async def main() -> bytes:
        deadline = loop.now + network.wait
        channel = connect(serve)
        await channel.handshake(deadline)
        assert sent.wait(network.wait)
        first = await channel.recv(5, deadline)
        channel.end()
        rest = await all_of(channel, deadline)
        channel.close()
        return first + rest

    assert loop.run(main()) == b"".join(b"record %03d." % number for number in range(100)) + b"after it"


def test_each_direction_has_its_own_end(network: Any, loop: Loop, connect: Any) -> None:
    heard: list[bytes] = []
    over = threading.Event()

    def serve(secure: ssl.SSLSocket) -> None:
        with pytest.raises(ssl.SSLWantReadError):  # it says its end, and waits for ours
            secure.settimeout(0)
            secure.unwrap()
        secure.settimeout(network.wait)
        heard.append(secure.recv(100))
        over.set()

    async def main() -> None:
        deadline = loop.now + network.wait
        channel = connect(serve)
        await channel.handshake(deadline)
        assert await channel.recv(100, deadline) == b""
        await channel.send(b"still here", deadline)
        assert over.wait(network.wait)
        channel.end()
        channel.end()  # harmless a second time
        channel.close()
        channel.end()  # and when it is closed

    loop.run(main())
    assert heard == [b"still here"]


def test_an_end_without_a_word_of_tls_is_an_end(network: Any, loop: Loop, connect: Any) -> None:
    def serve(secure: ssl.SSLSocket) -> None:
        secure.sendall(b"so much")
        secure.shutdown(socket.SHUT_RDWR)

    async def main() -> bytes:
        deadline = loop.now + network.wait
        channel = connect(serve)
        await channel.handshake(deadline)
        whole = await all_of(channel, deadline)
        channel.close()
        return whole

    assert loop.run(main()) == b"so much"

"""The way through an upstream proxy: by address for what is judged here, by name only where that is configured."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doorward.proxy.parent import parse_parent
from doorward.proxy.tls_channel import TlsChannel


class Parent:
    """A proxy that records what it was asked, and answers as told; an accepted CONNECT echoes."""

    def __init__(self, network: Any, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> None:
        self.heads: list[bytes] = []
        self.answer = answer
        self._network = network

    def __call__(self, sock: socket.socket) -> None:
        head, rest = self._network.read_head(sock)
        self.heads.append(head)
        if not head.startswith(b"CONNECT "):
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nparent")
            return
        sock.sendall(self.answer)
        while data := rest or sock.recv(65536):
            if data.startswith(b"GET "):
                self.heads.append(data)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\norigin")
            else:
                sock.sendall(data)
            rest = b""


@pytest.fixture
def behind(network: Any) -> Any:
    """A door behind a parent."""

    def make(parent: Parent, *, scheme: str = "http", **options: Any) -> Any:
        listener = network.listener(parent)
        url = f"{scheme}://user:s3cret%21@127.0.0.1:{listener.port}"
        return network.door(["public.test:*", "corp.example:*"], parent=parse_parent(url), **options)

    return make


def test_a_tunnel_goes_by_the_judged_address(network: Any, behind: Any) -> None:
    parent = Parent(network)
    door = behind(parent)
    door.resolver.set("public.test", ["93.184.216.34"])
    sock = network.tunnel(door, "public.test:8443")
    sock.sendall(b"ping")
    assert network.read_exactly(sock, 4) == b"ping"
    sock.close()
    assert parent.heads[0].startswith(b"CONNECT 93.184.216.34:8443 HTTP/1.1\r\n")
    assert b"\r\nProxy-Authorization: Basic dXNlcjpzM2NyZXQh\r\n" in parent.heads[0]
    record = door.sink.network()[0]
    assert record["address"] == "93.184.216.34"
    assert record["upstream_proxy"].startswith("http://127.0.0.1:")
    everything = json.dumps(door.sink.items)
    assert "s3cret" not in everything
    assert "dXNlcjpz" not in everything


def test_a_plain_request_goes_through_a_tunnel_to_the_judged_address(network: Any, behind: Any) -> None:
    """By name the parent would look it up a second time; by literal the Host would be lost."""
    parent = Parent(network)
    door = behind(parent)
    door.resolver.set("public.test", ["93.184.216.34"])
    reply = network.ask(door, b"GET http://public.test/a HTTP/1.1\r\nHost: public.test\r\nConnection: close\r\n\r\n")
    assert reply.endswith(b"\r\n\r\norigin")
    assert parent.heads[0].startswith(b"CONNECT 93.184.216.34:80 ")
    assert parent.heads[1].startswith(b"GET /a HTTP/1.1\r\nHost: public.test\r\n")
    assert b"proxy-authorization" not in parent.heads[1].lower()


def test_names_that_only_the_parent_resolves_go_by_name(network: Any, behind: Any) -> None:
    parent = Parent(network)
    door = behind(parent, parent_resolves=frozenset(["corp.example"]))
    network.tunnel(door, "corp.example:8443")
    reply = network.ask(door, b"GET http://corp.example/a HTTP/1.1\r\nHost: corp.example\r\nConnection: close\r\n\r\n")
    assert reply.endswith(b"\r\n\r\nparent")
    assert parent.heads[0].startswith(b"CONNECT corp.example:8443 ")
    assert parent.heads[1].startswith(b"GET http://corp.example/a HTTP/1.1\r\nHost: corp.example\r\n")
    assert b"\r\nProxy-Authorization: Basic " in parent.heads[1]
    assert door.resolver.asked == []


def test_a_refused_name_never_gets_to_the_parent(network: Any, behind: Any) -> None:
    parent = Parent(network)
    door = behind(parent, parent_resolves=frozenset(["corp.example", "blocked.test"]))
    door.resolver.set("public.test", ["10.0.0.1"])
    for host in ("blocked.test", "public.test"):
        reply = network.ask(door, f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        assert reply.startswith(b"HTTP/1.1 403 ")
    assert parent.heads == []


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "407"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", "503"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://login.test/\r\nContent-Length: 0\r\n\r\n", "302"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlogin", "200"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlogin\r\n0\r\n\r\n", "200"),
        (b"nonsense\r\n\r\n", "answered badly"),
        (b"", ""),
    ],
)
def test_anything_but_a_clean_2xx_is_502_and_names_the_status(
    network: Any, behind: Any, answer: bytes, says: str
) -> None:
    parent = Parent(network, answer)
    door = behind(parent, limits={} if answer else {"dial_time": 0.3})
    door.resolver.set("public.test", ["93.184.216.34"])
    reply = network.ask(door, b"CONNECT public.test:443 HTTP/1.1\r\nHost: public.test:443\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert network.error_class(reply) == "upstream-failed"
    assert says in json.loads(reply.partition(b"\r\n\r\n")[2])["message"]
    assert says in door.sink.network()[0]["error"]
    assert b"s3cret" not in reply


def test_a_server_that_spoke_together_with_the_2xx_loses_nothing(network: Any, behind: Any) -> None:
    parent = Parent(network, b"HTTP/1.1 200 OK\r\n\r\n220 ready\r\n")
    door = behind(parent)
    door.resolver.set("public.test", ["93.184.216.34"])
    sock = network.tunnel(door, "public.test:25")
    assert network.read_exactly(sock, 11) == b"220 ready\r\n"


def test_a_client_header_never_chooses_the_way(network: Any, behind: Any) -> None:
    parent = Parent(network)
    door = behind(parent)
    door.resolver.set("public.test", ["93.184.216.34"])
    reply = network.ask(
        door,
        b"GET http://public.test/ HTTP/1.1\r\nHost: public.test\r\nForwarded: host=blocked.test\r\n"
        b"X-Forwarded-Host: blocked.test\r\nConnection: close\r\n\r\n",
    )
    assert reply.endswith(b"origin")
    assert parent.heads[0].startswith(b"CONNECT 93.184.216.34:80 ")


def test_the_door_is_not_its_own_parent(network: Any) -> None:
    from doorward.proxy.policy import Policy

    door = network.door(["93.184.216.34:*"])
    parent = parse_parent(f"http://127.0.0.1:{door.port}")
    door.call(lambda: door.server.reload(Policy(door.server.policy.rules, parent=parent)))
    reply = network.ask(door, b"CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: 93.184.216.34:443\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert b"this proxy itself" in reply


@pytest.fixture
def https_parent(network: Any, certificate: Path) -> Any:
    """The URL of a parent over TLS, whose connections `answer` serves."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def make(answer: Callable[[ssl.SSLSocket], None]) -> str:
        def serve(sock: socket.socket) -> None:
            try:
                with context.wrap_socket(sock, server_side=True, suppress_ragged_eofs=False) as secure:
                    answer(secure)
            except OSError:
                pass

        return f"https://user:pw@127.0.0.1:{network.listener(serve).port}"

    return make


@pytest.mark.parametrize("trusted", [True, False])
def test_an_https_parent(network: Any, https_parent: Any, trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not trusted:
        monkeypatch.delenv("SSL_CERT_FILE")
    parent = Parent(network)
    door = network.door(["public.test:*"], parent=parse_parent(https_parent(parent)))
    door.resolver.set("public.test", ["93.184.216.34"])
    if not trusted:
        reply = network.ask(door, b"CONNECT public.test:443 HTTP/1.1\r\nHost: public.test:443\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 502 ")
        assert parent.heads == []
        return
    sock = network.tunnel(door, "public.test:8443")
    data = bytes(range(256)) * 2000
    sock.settimeout(network.wait)
    sock.sendall(b"x")
    assert network.read_exactly(sock, 1) == b"x"
    for start in range(0, len(data), 50_000):
        part = data[start : start + 50_000]
        sock.sendall(part)
        assert network.read_exactly(sock, len(part)) == part
    assert parent.heads[0].startswith(b"CONNECT 93.184.216.34:8443 ")


def test_a_half_close_goes_through_an_https_parent(network: Any, https_parent: Any) -> None:
    heard: list[bytes] = []

    def parent(secure: ssl.SSLSocket) -> None:
        network.read_head(secure)
        secure.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        whole = b""
        while data := secure.recv(65536):
            whole += data
        heard.append(whole)
        secure.sendall(b"answer" * 500_000)
        secure.unwrap()

    door = network.door(["public.test:*"], parent=parse_parent(https_parent(parent)))
    door.resolver.set("public.test", ["93.184.216.34"])
    sock = network.tunnel(door, "public.test:8443")
    sock.settimeout(network.wait)
    sock.sendall(b"question" * 10_000)
    sock.shutdown(socket.SHUT_WR)
    answer = b""
    while data := sock.recv(65536):
        answer += data
    assert heard == [b"question" * 10_000]
    assert answer == b"answer" * 500_000


@pytest.mark.parametrize("at_once", [None, 4096])
def test_an_https_parent_that_takes_little_at_a_time_loses_nothing(
    network: Any, https_parent: Any, at_once: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that could not be sent whole is kept and goes on, also when nothing is sent after it."""
    if at_once is not None:  # less than a record
        handshake = TlsChannel.handshake

        async def little(channel: TlsChannel, deadline: float) -> None:
            channel.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, at_once)
            await handshake(channel, deadline)

        monkeypatch.setattr(TlsChannel, "handshake", little)
    go_on = threading.Event()
    size = 16_000_000 if at_once is None else 2_000_000

    def parent(secure: ssl.SSLSocket) -> None:
        network.read_head(secure)
        secure.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        digest = hashlib.sha256(secure.recv(1))
        secure.sendall(b"wait")
        go_on.wait(network.wait)
        left = size - 1
        while left:
            data = secure.recv(min(left, 65536))
            left -= len(data)
            digest.update(data)
        secure.sendall(digest.digest())

    door = network.door(["public.test:*"], parent=parse_parent(https_parent(parent)))
    door.resolver.set("public.test", ["93.184.216.34"])
    sock = network.tunnel(door, "public.test:8443")
    sock.settimeout(network.wait)
    text = b"0123456789" * (size // 10)
    sender = threading.Thread(target=sock.sendall, args=(text,))
    sender.start()
    assert network.read_exactly(sock, 4) == b"wait"
    go_on.set()
    assert network.read_exactly(sock, 32) == hashlib.sha256(text).digest()
    sender.join(network.wait)

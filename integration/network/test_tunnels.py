"""What flows through a tunnel: names that must agree, bytes that must not change, ends that must be told apart."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import threading
import time
from typing import Any

import pytest

from doorward.proxy.limits import DEFAULT

BIG = os.urandom(2_000_000)


@pytest.fixture
def at_443(network: Any) -> Any:
    """A door whose `allowed.test:443` leads to a listener, as `host` says."""

    def make(handle: Any, rules: list[Any] | None = None, **options: Any) -> tuple[Any, Any]:
        origin = network.listener(handle)
        door = network.door(rules or [{"host": "allowed.test", "addresses": ["127.0.0.1"]}], **options)
        for port in (80, 443):
            door.dialler.routes["127.0.0.1", port] = ("127.0.0.1", origin.port)
        return door, origin

    return make


class Recorder:
    """Keeps what a server read, to the end."""

    def __init__(self, network: Any) -> None:
        self._got: list[bytes] = []
        self._network = network
        self._changed = threading.Condition()

    def __call__(self, sock: socket.socket) -> None:
        data = self._network.read_all(sock)
        with self._changed:
            self._got.append(data)
            self._changed.notify_all()

    def after(self, count: int) -> list[bytes]:
        """What the first `count` connections sent, once they ended."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._got) >= count, self._network.wait)
            return self._got


def test_another_name_in_the_hello_closes_both_sides(network: Any, at_443: Any) -> None:
    """P-TL-01."""
    seen = Recorder(network)
    door, _ = at_443(seen)
    sock = network.tunnel(door, "allowed.test:443")
    sock.sendall(network.client_hello("blocked.test"))
    try:
        assert sock.recv(100) == b""
    except ConnectionResetError:
        pass
    refusal = door.sink.wait_for(lambda items: any(item["type"] == "refusal" for item in items))
    assert seen.after(1) == [b""]
    record = door.sink.network()[0]
    told = next(item["payload"] for item in refusal if item["type"] == "refusal")
    assert told["reason"] == "name_mismatch"
    assert "allowed.test" in told["message"]
    assert "blocked.test" in told["message"]
    assert record["decision"] == "deny"
    assert record["connection"] == told["connection"] == door.sink.of("event")[0]["connection"]
    assert record["bytes_up"] == 0
    assert len(door.sink.of("network")) == 1


@pytest.mark.parametrize("name", ["allowed.test", "ALLOWED.Test"])
def test_the_hello_arrives_as_it_was_sent(network: Any, at_443: Any, name: str) -> None:
    """P-TL-01 (equal names), P-TL-04: byte for byte, ALPN untouched."""
    seen = Recorder(network)
    door, _ = at_443(seen)
    hello = network.client_hello(name, ["h2", "http/1.1"])
    sock = network.tunnel(door, "allowed.test:443")
    sock.sendall(hello)
    sock.shutdown(socket.SHUT_WR)
    assert network.read_all(sock) == b""
    assert seen.after(1) == [hello]


@pytest.mark.parametrize("how", ["bytes", "records", "padded"])
def test_a_hello_in_pieces_hides_nothing(network: Any, at_443: Any, how: str) -> None:
    """P-TL-03."""
    seen = Recorder(network)
    door, _ = at_443(seen)
    hello = network.client_hello("blocked.test")
    sock = network.tunnel(door, "allowed.test:443")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pieces = [hello]
    if how == "bytes":
        pieces = [hello[index : index + 1] for index in range(len(hello))]
    elif how == "records":
        cut = hello[5:].index(b"blocked") + 3
        pieces = [hello[:3] + len(part).to_bytes(2, "big") + part for part in (hello[5 : 5 + cut], hello[5 + cut :])]
    elif how == "padded":
        pad = 17 * 1024
        body = hello[9:]
        at = 2 + 32
        at += 1 + body[at]
        at += 2 + int.from_bytes(body[at : at + 2], "big")
        at += 1 + body[at]
        extensions = struct.pack(">HH", 0xFAFA, pad) + bytes(pad) + body[at + 2 :]
        body = body[:at] + len(extensions).to_bytes(2, "big") + extensions
        message = b"\x01" + len(body).to_bytes(3, "big") + body
        parts = [message[start : start + 16000] for start in range(0, len(message), 16000)]
        pieces = [b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts]
    try:
        for piece in pieces:
            sock.sendall(piece)
        assert sock.recv(100) == b""
    except ConnectionError:
        pass
    door.sink.wait_for(lambda items: any(item["type"] == "refusal" for item in items))
    assert "blocked.test" in door.sink.of("refusal")[0]["message"]
    assert seen.after(1) == [b""]


def test_a_pause_inside_the_hello_is_refused(network: Any, at_443: Any) -> None:
    """P-TL-03: 3 s in the middle; here the limit is shortened with it."""
    seen = Recorder(network)
    door, _ = at_443(seen, limits={"first_bytes_time": 0.1})
    sock = network.tunnel(door, "allowed.test:443")
    sock.sendall(network.client_hello("allowed.test")[:50])
    try:
        assert sock.recv(100) == b""
    except ConnectionResetError:
        pass
    door.sink.wait_for(lambda items: any(item["type"] == "refusal" for item in items))
    assert seen.after(1) == [b""]


def test_a_hello_without_a_name(network: Any, at_443: Any) -> None:
    """P-TL-02: refused for a name, fine for an address, and neither stalls."""
    seen = Recorder(network)
    door, _ = at_443(seen, [{"host": "allowed.test", "addresses": ["127.0.0.1"]}, "127.0.0.1"])
    start = time.monotonic()
    for authority, passes in (("allowed.test:443", False), ("127.0.0.1:443", True)):
        sock = network.tunnel(door, authority)
        hello = network.client_hello(None)
        sock.sendall(hello)
        if passes:
            sock.shutdown(socket.SHUT_WR)
        try:
            assert network.read_all(sock) == b""
        except ConnectionResetError:
            assert not passes
    assert time.monotonic() - start < DEFAULT.first_bytes_time
    assert sorted(seen.after(2)) == [b"", hello]  # either connection may be the first to end


def test_anything_but_tls_on_443_is_closed_unless_the_rule_says_any(network: Any, at_443: Any) -> None:
    for rules, passes in ((None, False), ([{"host": "allowed.test", "addresses": ["127.0.0.1"], "tls": "any"}], True)):
        seen = Recorder(network)
        door, _ = at_443(seen, rules)
        sock = network.tunnel(door, "allowed.test:443")
        sock.sendall(b"SSH-2.0-x\r\n")
        if passes:
            sock.shutdown(socket.SHUT_WR)
        try:
            assert network.read_all(sock) == b""
        except ConnectionResetError:
            assert not passes
        assert seen.after(1) == ([b"SSH-2.0-x\r\n"] if passes else [b""])


def test_a_cleartext_host_must_agree(network: Any, at_443: Any) -> None:
    seen = Recorder(network)
    door, _ = at_443(seen)
    for host, passes in (("blocked.test", False), ("allowed.test", True)):
        head = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        sock = network.tunnel(door, "allowed.test:80")
        sock.sendall(head)
        if passes:
            sock.shutdown(socket.SHUT_WR)
        try:
            network.read_all(sock)
        except ConnectionResetError:
            assert not passes
    assert sorted(seen.after(2)) == [b"", b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"]


@pytest.mark.parametrize("splice", [True, False])
def test_bulk_both_ways_at_once(network: Any, splice: bool) -> None:
    def origin(sock: socket.socket) -> None:
        sender = threading.Thread(target=sock.sendall, args=(BIG,))
        sender.start()
        got = network.read_exactly(sock, len(BIG))
        sender.join()
        sock.sendall(hashlib.sha256(got).digest())

    server = network.listener(origin)
    door = network.door([network.named(server.port)], splice=splice)
    sock = network.tunnel(door, f"allowed.test:{server.port}")
    sender = threading.Thread(target=sock.sendall, args=(BIG,))
    sender.start()
    got = network.read_all(sock)
    sender.join()
    assert got == BIG + hashlib.sha256(BIG).digest()
    sock.close()
    record = door.sink.network()[0]
    assert (record["bytes_up"], record["bytes_down"]) == (len(BIG), len(BIG) + 32)
    assert record["closed_by"] == "server"


def test_the_server_may_speak_first_on_a_named_port(network: Any) -> None:
    def origin(sock: socket.socket) -> None:
        sock.sendall(b"220 ready\r\n")
        assert sock.recv(100) == b"QUIT\r\n"
        sock.sendall(b"221 bye\r\n")

    server = network.listener(origin)
    door = network.door([network.named(server.port)])
    sock = network.tunnel(door, f"allowed.test:{server.port}")
    assert network.read_exactly(sock, 11) == b"220 ready\r\n"
    sock.sendall(b"QUIT\r\n")
    assert network.read_all(sock) == b"221 bye\r\n"


def test_a_half_close_leaves_the_answer_its_way(network: Any) -> None:
    def origin(sock: socket.socket) -> None:
        got = network.read_all(sock)
        sock.sendall(got[::-1])

    server = network.listener(origin)
    door = network.door([network.named(server.port)])
    sock = network.tunnel(door, f"allowed.test:{server.port}")
    sock.sendall(b"abc")
    sock.shutdown(socket.SHUT_WR)
    assert network.read_all(sock) == b"cba"


def test_a_reset_by_the_server_is_a_reset_for_the_client(network: Any) -> None:
    def origin(sock: socket.socket) -> None:
        sock.recv(1)
        sock.sendall(b"half")
        assert sock.recv(1) == b"!"
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    server = network.listener(origin)
    door = network.door([network.named(server.port)])
    sock = network.tunnel(door, f"allowed.test:{server.port}")
    sock.sendall(b"x")
    assert network.read_exactly(sock, 4) == b"half"
    sock.sendall(b"!")
    with pytest.raises(ConnectionResetError):
        network.read_all(sock)
    record = door.sink.network()[0]
    assert record["closed_by"] == "server"
    assert record["error"] == "connection reset by the server"


def test_an_idle_tunnel_is_closed_at_its_limit(network: Any) -> None:
    server = network.listener(network.read_all)
    door = network.door([network.named(server.port)], limits={"tunnel_idle_time": 0.1})
    sock = network.tunnel(door, f"allowed.test:{server.port}")
    sock.sendall(b"x")
    assert network.read_all(sock) == b""
    record = door.sink.network()[0]
    assert record["closed_by"] == "proxy"
    assert record["error"] == "idle for 0.1 s"


def test_a_greedy_stream_leaves_the_others_their_turn(network: Any) -> None:
    """Fairness: a quick exchange is not held up by a tunnel that could go on for ever."""
    stop = threading.Event()

    def origin(sock: socket.socket) -> None:
        kind = sock.recv(5)
        if kind == b"greed":
            part = bytes(1_000_000)
            while not stop.is_set():
                sock.sendall(part)
        else:
            sock.sendall(kind)

    server = network.listener(origin)
    door = network.door([network.named(server.port)])
    greedy = network.tunnel(door, f"allowed.test:{server.port}")
    greedy.sendall(b"greed")

    def read() -> None:
        while not stop.is_set():
            greedy.recv(1_000_000)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(20):
            sock = network.tunnel(door, f"allowed.test:{server.port}")
            start = time.monotonic()
            sock.sendall(b"quick")
            assert network.read_all(sock) == b"quick"
            assert time.monotonic() - start < network.wait
    finally:
        stop.set()
        reader.join()
        greedy.close()

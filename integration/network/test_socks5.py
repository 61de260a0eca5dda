"""SOCKS5 on the same port: replies by their code, names that reach no resolver, and the same judging as CONNECT."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from ports import closed_port

GREETING = b"\x05\x01\x00"


def by_name(name: bytes, port: int, command: int = 1) -> bytes:
    return bytes((5, command, 0, 3, len(name))) + name + port.to_bytes(2, "big")


def by_v4(text: str, port: int) -> bytes:
    return b"\x05\x01\x00\x01" + socket.inet_aton(text) + port.to_bytes(2, "big")


def by_v6(text: str, port: int) -> bytes:
    return b"\x05\x01\x00\x04" + socket.inet_pton(socket.AF_INET6, text) + port.to_bytes(2, "big")


def echo(sock: socket.socket) -> None:
    while data := sock.recv(65536):
        sock.sendall(data)


def ask(network: Any, door: Any, request: bytes) -> tuple[int, socket.socket]:
    """The reply's code, and the socket."""
    sock = network.client(door)
    sock.sendall(GREETING)
    assert network.read_exactly(sock, 2) == b"\x05\x00"
    sock.sendall(request)
    reply = network.read_exactly(sock, 10)
    assert len(reply) == 10, reply
    return reply[1], sock


def test_a_tunnel_by_name_and_by_address(network: Any) -> None:
    origin = network.listener(echo)
    door = network.door([network.named(origin.port), f"127.0.0.1:{origin.port}"])
    for number, request in enumerate((by_name(b"Allowed.test", origin.port), by_v4("127.0.0.1", origin.port)), 1):
        code, sock = ask(network, door, request)
        assert code == 0
        sock.sendall(b"ping")
        assert network.read_exactly(sock, 4) == b"ping"
        sock.close()
        records = door.sink.network(number)  # each comes when the origin, too, has ended
    assert {record["protocol"] for record in records} == {"socks5_tcp"}
    assert [record["host"] for record in records] == ["allowed.test", "127.0.0.1"]


def test_everything_in_one_write(network: Any) -> None:
    origin = network.listener(echo)
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    sock.sendall(GREETING + by_name(b"allowed.test", origin.port) + b"ahead")
    assert network.read_exactly(sock, 17)[12:] == b"ahead"


def test_one_byte_at_a_time(network: Any) -> None:
    origin = network.listener(echo)
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in GREETING + by_name(b"allowed.test", origin.port) + b"x":
        sock.sendall(bytes([byte]))
    assert network.read_exactly(sock, 13)[12:] == b"x"


def test_refused_is_2_and_leaves_a_full_record(network: Any) -> None:
    door = network.door()
    code, sock = ask(network, door, by_name(b"blocked.test", 8443))
    assert code == 2
    assert network.read_all(sock) == b""
    refusal = door.sink.of("refusal")[0]
    assert refusal["protocol"] == "socks5_tcp"
    assert refusal["method"] == "CONNECT"
    assert refusal["hint"] == "--allow blocked.test:8443"
    assert door.resolver.asked == []


def test_what_does_not_resolve_is_4_and_what_does_not_answer_is_5(network: Any) -> None:
    door = network.door([network.named("*"), network.named("*", "gone.test")])
    assert ask(network, door, by_name(b"gone.test", 80))[0] == 4
    with closed_port() as port:
        assert ask(network, door, by_name(b"allowed.test", port))[0] == 5


@pytest.mark.parametrize(("request_", "code"), [
    (by_name(b"allowed.test", 80, command=2), 7),
    (by_name(b"allowed.test", 80, command=3), 7),
    (b"\x05\x01\x00\x09" + bytes(8), 8),
    (by_name(b"127.0.0.1\0.allowed.test", 80), 1),
    (by_name(b"127.1", 80), 1),
    (by_name("b\xfccher.test".encode("latin-1"), 80), 1),
    (by_name(b"allowed.test", 0), 1),
])  # fmt: skip
def test_what_is_not_a_connect_to_a_name(network: Any, request_: bytes, code: int) -> None:
    """P-DN-05: no byte of it reaches a resolver or a dialler."""
    canary = network.canary()
    door = network.door([network.named("*"), network.named("*", "*.allowed.test"), "127.0.0.1:*"])
    door.dialler.routes["127.0.0.1", 80] = ("127.0.0.1", canary.port)
    got, sock = ask(network, door, request_)
    assert got == code
    assert network.read_all(sock) == b""
    assert door.resolver.asked == []
    assert door.dialler.attempts == []
    assert canary.touched == 0


def test_authentication_is_not_taken(network: Any) -> None:
    door = network.door()
    assert network.ask(door, b"\x05\x01\x02") == b"\x05\xff"


def test_a_handshake_that_drips_ends_in_time(network: Any) -> None:
    door = network.door(limits={"head_time": 0.1})
    sock = network.client(door)
    sock.sendall(b"\x05")
    assert network.read_all(sock) == b""
    assert door.sink.of("event")[0]["message"] == "The SOCKS5 handshake was not whole in time."


def test_names_must_agree_here_too(network: Any) -> None:
    """P-TL-01 through SOCKS5."""
    seen = []

    def origin(sock: socket.socket) -> None:
        seen.append(network.read_all(sock))

    server = network.listener(origin)
    door = network.door([network.named(server.port)])
    code, sock = ask(network, door, by_name(b"allowed.test", server.port))
    assert code == 0
    sock.sendall(network.client_hello("blocked.test"))
    try:
        assert network.read_all(sock) == b""
    except ConnectionResetError:
        pass
    assert door.sink.network()[0]["reason"] == "name_mismatch"


def test_mapped_addresses_are_judged_unmapped(network: Any) -> None:
    """P-IP-02 through SOCKS5."""
    origin = network.listener(echo)
    door = network.door([f"127.0.0.1:{origin.port}"])
    code, sock = ask(network, door, by_v6("::ffff:127.0.0.1", origin.port))
    assert code == 0
    sock.sendall(b"x")
    assert network.read_exactly(sock, 1) == b"x"
    assert ask(network, network.door(["*:*"]), by_v6("::ffff:127.0.0.1", origin.port))[0] == 2

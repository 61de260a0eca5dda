"""CONNECT: which tunnels open, which do not, and what is said about it."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest


def echo(sock: socket.socket) -> None:
    while data := sock.recv(65536):
        sock.sendall(data)


def test_a_tunnel_opens_and_carries_bytes(network: Any) -> None:
    origin = network.listener(echo)
    door = network.door([network.named(origin.port)])
    sock = network.tunnel(door, f"allowed.test:{origin.port}")
    sock.sendall(b"ping")
    assert network.read_exactly(sock, 4) == b"ping"
    sock.close()
    opened = door.sink.of("event")[0]
    record = door.sink.network()[0]
    assert opened["type"] == "connection_opened"
    assert record["connection"] == opened["connection"]
    expected = {"version": 1, "decision": "allow", "reason": "allowed", "host": "allowed.test", "port": origin.port,
                "protocol": "https_connect", "address": "127.0.0.1", "bytes_up": 4, "bytes_down": 4, "requests": 1,
                "closed_by": "client", "method": "CONNECT"}  # fmt: skip
    assert {key: record[key] for key in expected} == expected
    assert record["duration_s"] > 0
    assert "error" not in record


def test_bytes_sent_ahead_of_the_answer_go_into_the_tunnel(network: Any) -> None:
    origin = network.listener(echo)
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    authority = f"allowed.test:{origin.port}".encode()
    sock.sendall(b"CONNECT " + authority + b" HTTP/1.1\r\nHost: " + authority + b"\r\n\r\nahead")
    _, rest = network.read_head(sock)
    assert network.read_exactly(sock, 5, rest) == b"ahead"


def test_the_answer_waits_for_the_record(network: Any) -> None:
    origin = network.listener(echo)
    door = network.door([network.named(origin.port)])
    door.sink.hold = True
    sock = network.client(door)
    authority = f"allowed.test:{origin.port}".encode()
    sock.sendall(b"CONNECT " + authority + b" HTTP/1.1\r\nHost: " + authority + b"\r\n\r\n")
    door.sink.wait_for(lambda items: len(items) == 1)
    sock.settimeout(0.05)
    with pytest.raises(TimeoutError):
        sock.recv(1)
    sock.settimeout(network.wait)
    door.call(door.sink.release)
    assert network.read_head(sock)[0].startswith(b"HTTP/1.1 200 ")


def test_a_refused_connect_says_why(network: Any) -> None:
    """P-PP-13, CONNECT half."""
    door = network.door()
    reply = network.ask(door, b"CONNECT blocked.test:8443 HTTP/1.1\r\nHost: blocked.test:8443\r\n\r\nlater bytes")
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Blocked (not_allowed)")
    assert b"\r\nContent-Length: %d" % len(body) in head
    assert b"\r\nConnection: close" in head
    assert network.error_class(reply) == "blocked-by-allowlist"
    told = json.loads(body)
    assert (told["host"], told["port"], told["protocol"], told["method"]) == (
        "blocked.test", 8443, "https_connect", "CONNECT")  # fmt: skip
    assert told["hint"] == "--allow blocked.test:8443"
    assert door.resolver.asked == []


def test_deny_rules_have_a_class_of_their_own(network: Any) -> None:
    door = network.door([network.named("*")], ["allowed.test"])
    reply = network.ask(door, b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n")
    assert network.error_class(reply) == "blocked-by-denylist"
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["reason"] == "denied"


@pytest.mark.parametrize("port", [":", ":0", ":65536", ":99999", ":443x", ":-1", ": 443", ":0x1bb", ":４４３", ""])
def test_a_bad_port_is_400_and_never_443(network: Any, port: str) -> None:
    """P-PP-14."""
    door = network.door([network.named("*")])
    reply = network.ask(door, f"CONNECT allowed.test{port} HTTP/1.1\r\nHost: allowed.test\r\n\r\n".encode())
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert network.error_class(reply) == "bad-request"
    assert door.dialler.attempts == []


def test_only_ports_that_a_rule_names(network: Any) -> None:
    """P-PP-15, CONNECT half."""
    canary = network.canary()
    door = network.door([{"host": "allowed.test", "addresses": ["127.0.0.1"]}])
    for port in (22, 25, 3306, 5432, 6379, canary.port):
        door.dialler.routes["127.0.0.1", port] = ("127.0.0.1", canary.port)
        reply = network.ask(door, f"CONNECT allowed.test:{port} HTTP/1.1\r\nHost: allowed.test:{port}\r\n\r\n".encode())
        assert reply.startswith(b"HTTP/1.1 403 ")
        told = json.loads(reply.partition(b"\r\n\r\n")[2])
        assert told["reason"] == "port_not_allowed"
        assert str(port) in told["message"]
    assert canary.touched == 0
    assert door.dialler.attempts == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "loop.test"]
)
@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0", "::", "::1"])
def test_the_door_does_not_connect_to_itself(network: Any, host: str, bound: str) -> None:
    """P-PP-16: for every listener the process owns, by the bound address."""
    from doorward.proxy.alone import open_listener

    rules = ["127.0.0.0/8:*", "localhost:*", "[::1]:*", "0.0.0.0:*", "[::]:*", network.named("*", "loop.test")]
    door = network.door(rules)
    door.resolver.set("loop.test", ["192.0.2.1", "127.0.0.1"])
    listener = open_listener(bound, 0)
    port = listener.getsockname()[1]
    door.call(lambda: door.server.add_listener(listener))
    reply = network.ask(door, f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    same = bound in ("0.0.0.0", "::") or host not in ("127.0.0.1", "[::ffff:127.0.0.1]", "loop.test", "[::1]") or (
        (bound == "::1") == (host == "[::1]")
    )
    if same:
        assert reply.startswith(b"HTTP/1.1 403 ")
        assert json.loads(reply.partition(b"\r\n\r\n")[2])["reason"] == "proxy_loop"
        assert door.dialler.attempts == []
    else:
        assert reply.startswith(b"HTTP/1.1 502 "), "another machine's port, and nobody listens there"


def test_what_opened_before_is_held_to_what_holds_now(network: Any) -> None:
    """The same bytes again: the same tunnel and records, until the rules change or the door listens there itself."""
    from doorward.proxy.alone import open_listener

    origin = network.listener(echo)
    authority = f"127.0.0.1:{origin.port}"
    door = network.door(["127.0.0.1:*"])
    for count in (1, 2, 3):
        sock = network.tunnel(door, authority)
        sock.sendall(b"ping")
        assert network.read_exactly(sock, 4) == b"ping"
        sock.close()
        assert len(door.sink.network(count)) == count
    first, _, third = ({key: each[key] for key in each if key not in ("connection", "duration_s")}
                       for each in door.sink.network(3))  # fmt: skip
    assert first == third
    origin.close()
    listener = open_listener("127.0.0.1", origin.port)
    door.call(lambda: door.server.add_listener(listener))
    dialled = len(door.dialler.attempts)
    reasons = []
    for _ in range(2):
        reply = network.ask(door, f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        reasons.append(json.loads(reply.partition(b"\r\n\r\n")[2])["reason"])
        door.call(lambda: door.server.reload(door.policy([])))
    assert reasons == ["proxy_loop", "not_allowed_local"]
    assert len(door.dialler.attempts) == dialled


def test_nested_requests_to_itself_end_at_the_first_hop(network: Any) -> None:
    """P-PP-16: nest five deep."""
    door = network.door(["127.0.0.1:*"])
    one = f"CONNECT 127.0.0.1:{door.port} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n\r\n".encode()
    reply = network.ask(door, one * 5)
    assert reply.count(b"HTTP/1.1 ") == 1
    assert reply.startswith(b"HTTP/1.1 403 ")
    assert len(door.sink.of("refusal")) == 1


@pytest.mark.parametrize("credentials", ["", "Proxy-Authorization: Basic eDp5\r\n"])
@pytest.mark.parametrize("relayed", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_the_same_connect_gets_the_same_verdict(network: Any, credentials: str, relayed: bool, second: bool) -> None:
    """P-PP-17."""
    origin = network.origin()
    door = network.door([network.named(origin.port)])

    def relay(sock: socket.socket) -> None:
        with door.connect() as there:
            there.settimeout(0.05)
            sock.settimeout(0.05)
            pairs = {sock: there, there: sock}
            while pairs:
                for side, other in list(pairs.items()):
                    try:
                        data = side.recv(65536)
                    except TimeoutError:
                        continue
                    if not data:
                        return
                    other.sendall(data)

    port = network.listener(relay).port if relayed else door.port
    with socket.create_connection(("127.0.0.1", port), network.wait) as sock:
        if second:
            allowed = f"allowed.test:{origin.port}"
            sock.sendall(f"GET http://{allowed}/ HTTP/1.1\r\nHost: {allowed}\r\n\r\n".encode())
            network.read_exactly(sock, 1, network.read_head(sock)[1])
        sock.sendall(f"CONNECT blocked.test:443 HTTP/1.1\r\nHost: blocked.test:443\r\n{credentials}\r\n".encode())
        reply = network.read_head(sock)[0]
    assert reply.startswith(b"HTTP/1.1 403 ")
    assert network.error_class(reply) == "blocked-by-allowlist"


def test_a_name_that_does_not_resolve_is_no_refusal(network: Any) -> None:
    door = network.door([network.named("443", "gone.test")])
    reply = network.ask(door, b"CONNECT gone.test:443 HTTP/1.1\r\nHost: gone.test:443\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert network.error_class(reply) == "dns-failed"
    assert door.sink.of("refusal") == []


def test_the_http2_preface_passes_inside_a_tunnel(network: Any) -> None:
    """P-PP-11, second half."""
    origin = network.listener(echo)
    door = network.door([network.named(origin.port)])
    sock = network.tunnel(door, f"allowed.test:{origin.port}")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
    sock.sendall(preface)
    assert network.read_exactly(sock, len(preface)) == preface

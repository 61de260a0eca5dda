"""Plain HTTP through the door: what is forwarded, what is refused, and how it is answered."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from ports import closed_port


def get(port: int, name: str = "allowed.test", *, path: str = "/", more: str = "") -> bytes:
    return f"GET http://{name}:{port}{path} HTTP/1.1\r\nHost: {name}:{port}\r\n{more}\r\n".encode()


def answer(network: Any, sock: socket.socket) -> tuple[bytes, bytes]:
    """One answer with a Content-Length: its head and its body."""
    head, rest = network.read_head(sock)
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    return head, network.read_exactly(sock, length, rest)


def test_an_allowed_request_reaches_the_origin_in_origin_form(network: Any) -> None:
    origin = network.origin(b"hello")
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    sock.sendall(get(origin.port, path="/a?b", more="X-Test: kept\r\n"))
    head, body = answer(network, sock)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == b"hello"
    seen = origin.heads[0]
    assert seen.startswith(b"GET /a?b HTTP/1.1\r\nHost: allowed.test:%d\r\n" % origin.port)
    assert b"X-Test: kept\r\n" in seen
    assert b"Via: 1.1 doorward-test\r\n" in seen


def test_requests_on_one_connection_are_judged_one_by_one(network: Any) -> None:
    origin = network.origin(b"hello")
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    for _ in range(3):
        sock.sendall(get(origin.port))
        assert answer(network, sock)[1] == b"hello"
    sock.sendall(get(80, "blocked.test") + get(origin.port))
    refusal = network.read_all(sock)
    assert refusal.startswith(b"HTTP/1.1 403 ")
    assert refusal.count(b"HTTP/1.1") == 1, "nothing behind a refusal is parsed"
    assert origin.touched == 1, "the upstream connection is kept"
    assert len(origin.heads) == 3
    records = {(item["host"], item["decision"]): item for item in door.sink.network(2)}
    assert records["allowed.test", "allow"]["requests"] == 3
    assert records["blocked.test", "deny"]["reason"] == "not_allowed"
    assert door.resolver.asked == ["allowed.test"], "a kept connection needs no look-up, a denied name gets none"


def test_pipelined_requests_are_answered_in_order(network: Any) -> None:
    bodies = [b"one", b"two", b"three"]

    def serve(sock: socket.socket) -> None:
        rest = b""
        for body in bodies:
            _, rest = network.read_head(sock, rest)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    origin = network.listener(serve)
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    sock.sendall(get(origin.port) * 3)
    got = b""
    while b"three" not in got:
        got += sock.recv(65536)
    assert got.index(b"one") < got.index(b"two") < got.index(b"three")


def test_the_refusal_has_every_key_and_is_kept_before_it_is_sent(network: Any) -> None:
    """P-PP-13, plain half; and "logged before seen"."""
    door = network.door()
    door.sink.hold = True
    sock = network.client(door)
    sock.sendall(get(8080, "blocked.test"))
    door.sink.wait_for(lambda items: len(items) == 2)
    sock.settimeout(0.05)
    with pytest.raises(TimeoutError):
        sock.recv(1)
    sock.settimeout(network.wait)
    door.call(door.sink.release)
    reply = network.read_all(sock)
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 ")
    assert b"\r\nContent-Length: %d" % len(body) in head
    assert b"\r\nConnection: close" in head
    assert network.error_class(reply) == "blocked-by-allowlist"
    told = json.loads(body)
    assert list(told) == ["status", "host", "port", "protocol", "method", "decision", "reason", "source", "rule",
                          "message", "hint"]  # fmt: skip
    assert told["hint"] == "--allow blocked.test:8080"
    kept = door.sink.of("refusal")[0]
    assert {key: kept[key] for key in told} == told


def test_target_and_host_must_agree(network: Any) -> None:
    """P-PP-01."""
    canary, origin = network.canary(), network.origin()
    door = network.door([network.named("80"), network.named(origin.port), network.named("80", "blocked.test")])
    door.dialler.routes["127.0.0.1", 80] = ("127.0.0.1", canary.port)
    for hosts in (["blocked.test"], ["allowed.test:8081"], ["allowed.test", "allowed.test"], []):
        lines = "".join(f"Host: {host}\r\n" for host in hosts)
        reply = network.ask(door, f"GET http://allowed.test/ HTTP/1.1\r\n{lines}\r\n".encode())
        assert reply.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 403 ")), hosts
    assert canary.touched == 0
    assert door.dialler.attempts == []
    assert door.resolver.asked == []
    messages = [item["message"] for item in door.sink.of("refusal")]
    assert len(messages) == 2
    assert all("allowed.test:80" in message for message in messages)
    assert "blocked.test" in messages[0]
    sock = network.client(door)
    sock.sendall(get(origin.port).replace(b"Host: allowed", b"Host: ALLOWED"))
    assert answer(network, sock)[1] == b"A"


def test_the_forwarded_host_is_the_judged_one(network: Any) -> None:
    """P-PP-02: with HTTP/1.0 too, whose Host is optional and unchecked by many."""
    origin = network.origin()
    door = network.door([network.named(origin.port)])
    network.ask(door, f"GET http://allowed.test:{origin.port}/ HTTP/1.0\r\n\r\n".encode())
    assert b"\r\nHost: allowed.test:%d\r\n" % origin.port in origin.heads[0]
    reply = network.ask(door, f"GET http://allowed.test:{origin.port}/ HTTP/1.0\r\nHost: blocked.test\r\n\r\n".encode())
    assert reply.startswith(b"HTTP/1.1 403 ")
    assert len(origin.heads) == 1


BAD_BODIES = [
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://blocked.test/ HTTP/1.1\r\n\r\n",
    *(
        b"Content-Length: " + value + b"\r\n\r\nhello"
        for value in (b"5, 6", b"+5", b"-1", b"5 5", b"", b"1_0", "٥".encode(), b"9" * 30, b"5\r\nContent-Length: 6")
    ),
    *(
        b"Transfer-Encoding: chunked\r\n\r\n" + size + b"\r\nabcd\r\n0\r\n\r\n"
        for size in (b"+4", b"-4", b"0x4", b"4_0")
    ),
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n",
]


@pytest.mark.parametrize("tail", BAD_BODIES)
def test_bad_framing_is_refused_and_nothing_behind_it_is_read(network: Any, tail: bytes) -> None:
    """P-PP-04, P-PP-05, P-PP-06 (chunk sizes), P-PP-07 (first half)."""
    origin = network.origin()
    door = network.door([network.named(origin.port), network.named(origin.port, "blocked.test")])
    head = b"POST http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test:%d\r\n" % (origin.port, origin.port)
    reply = network.ask(door, head + tail)
    assert reply.startswith(b"HTTP/1.1 400 "), reply
    assert network.error_class(reply) == "bad-request"
    assert reply.count(b"HTTP/1.1 ") == 1
    assert origin.bodies == []
    with door.connect() as sock:  # the door lives
        sock.sendall(get(origin.port))
        assert answer(network, sock)[1] == b"A"


@pytest.mark.parametrize(
    "raw",
    [
        b"GET http://allowed.test/ HTTP/1.1\nHost: allowed.test\n\n",
        b"GET http://allowed.test/ HTTP/1.1\r\nHost : allowed.test\r\n\r\n",
        b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nX: a\r\n\tb\r\n\r\n",
        b"GET http://allowed.test/\ra HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nX: a\0b\r\n\r\n",
        b"GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n",
        b"GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n",
        b"GET http://user@allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        b"GET http://127.0.0.1\0.allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    ],
)
def test_sloppy_syntax_is_refused_with_nothing_dialled(network: Any, raw: bytes) -> None:
    """P-PP-06, P-PP-11, P-IP-01, P-DN-05 (HTTP half)."""
    door = network.door([network.named("*"), network.named("*", "*.allowed.test"), "127.0.0.0/8:*"])
    reply = network.ask(door, raw)
    assert reply.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 505 ", b"HTTP/1.1 501 ")), reply
    assert b"\r\nConnection: close" in reply
    assert door.dialler.attempts == []
    assert door.resolver.asked == []
    assert door.sink.of("event")[0]["type"] == "malformed_request"


def test_trailers_are_no_headers_and_the_next_request_starts_right(network: Any) -> None:
    """P-PP-07, second half."""
    origin = network.origin()
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    head = b"POST http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test:%d\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"3\r\nabc\r\n0\r\nHost: blocked.test\r\nContent-Length: 9\r\nX-T: 1\r\n\r\n"
    sock.sendall(head % (origin.port, origin.port) + body + get(origin.port, path="/next"))
    network.read_exactly(sock, 1)
    sock.recv(65536)
    origin.wait_for_heads(2)
    assert b"blocked.test" not in b"".join(origin.heads)
    assert origin.heads[1].startswith(b"GET /next HTTP/1.1\r\n")


def test_proxy_credentials_stay_here(network: Any) -> None:
    """P-PP-12."""
    origin = network.origin()
    door = network.door([network.named(origin.port)])
    secret = "Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nAuthorization: Basic b2s=\r\n"
    sock = network.client(door)
    sock.sendall(get(origin.port, more=secret))
    answer(network, sock)
    sock.close()
    assert b"proxy-" not in origin.heads[0].lower()
    assert b"Authorization: Basic b2s=" in origin.heads[0]
    door.sink.network(1)
    assert "eDp5" not in json.dumps(door.sink.items)
    assert "b2s=" not in json.dumps(door.sink.items)


def test_only_ports_that_a_rule_names(network: Any) -> None:
    """P-PP-15, plain half."""
    canary = network.canary()
    door = network.door([{"host": "allowed.test", "addresses": ["127.0.0.1"]}])
    reply = network.ask(door, get(canary.port))
    assert reply.startswith(b"HTTP/1.1 403 ")
    told = json.loads(reply.partition(b"\r\n\r\n")[2])
    assert told["reason"] == "port_not_allowed"
    assert str(canary.port) in told["message"] + told["hint"]
    assert canary.touched == 0
    assert door.resolver.asked == []


def test_https_targets_belong_into_connect(network: Any) -> None:
    door = network.door([network.named("*")])
    reply = network.ask(door, b"GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 403 ")
    assert network.error_class(reply) == "blocked-by-policy"
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["reason"] == "scheme_not_allowed"


def test_a_request_that_came_through_this_door_before_is_a_loop(network: Any) -> None:
    origin = network.origin()
    door = network.door([network.named(origin.port)])
    reply = network.ask(door, get(origin.port, more="Via: 1.1 other, 1.1 doorward-test\r\n"))
    assert reply.startswith(b"HTTP/1.1 403 ")
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["reason"] == "proxy_loop"
    assert origin.heads == []


def test_a_refused_upload_still_gets_its_answer(network: Any) -> None:
    """The 403 arrives though the client is still sending: no reset overtakes it."""
    door = network.door()
    sock = network.client(door)
    sock.sendall(b"POST http://blocked.test/ HTTP/1.1\r\nHost: blocked.test\r\nContent-Length: 8000000\r\n\r\n")
    sock.sendall(b"x" * 8_000_000)
    assert network.read_all(sock).startswith(b"HTTP/1.1 403 ")


def test_the_path_there_fails_with_502_and_its_class(network: Any) -> None:
    door = network.door([network.named("*"), network.named("*", "gone.test")])
    reply = network.ask(door, get(80, "gone.test"))
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert network.error_class(reply) == "dns-failed"
    with closed_port() as port:
        reply = network.ask(door, get(port))
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert network.error_class(reply) == "upstream-failed"
    records = door.sink.network(2)
    assert [record["decision"] for record in records] == ["allow", "allow"]
    assert records[0]["error"].startswith("dns-failed: gone.test does not resolve")
    assert "connection refused" in records[1]["error"]

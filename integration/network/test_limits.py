"""Limits: each gives a named answer, none can be evaded by dripping, and nothing is left behind (P-PF-06)."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest


def get(port: int) -> bytes:
    return f"GET http://allowed.test:{port}/ HTTP/1.1\r\nHost: allowed.test:{port}\r\n\r\n".encode()


def until(condition: Callable[[], bool]) -> None:
    """Ask until it holds, for ten seconds at most."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline


def memory() -> int:
    """Resident bytes of this process, the door's thread included."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_an_overlong_request_line_is_414_and_not_kept(network: Any) -> None:
    door = network.door()
    before = memory()
    sock = network.client(door)
    sock.sendall(b"GET http://allowed.test/")
    part = b"a" * 1_000_000
    for _ in range(100):
        sock.sendall(part)
    assert network.read_all(sock).startswith(b"HTTP/1.1 414 ")
    assert memory() - before < 30_000_000


def test_too_many_header_lines_are_431(network: Any) -> None:
    door = network.door()
    sock = network.client(door)
    sock.sendall(b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n" + b"X: y\r\n" * 100_000)
    assert network.read_all(sock).startswith(b"HTTP/1.1 431 ")


def test_a_dripping_head_is_408_at_its_limit(network: Any) -> None:
    """A byte now and then does not move the deadline: here one every tenth of the limit."""
    door = network.door(limits={"head_time": 0.5})
    sock = network.client(door)
    sock.settimeout(0.05)
    start = time.monotonic()
    reply = b""
    for byte in b"GET http://allowed.test/ HTTP/1.1\r\n" * 10:
        try:
            sock.sendall(bytes([byte]))
            reply = sock.recv(1000)
            break
        except TimeoutError:
            continue
    assert reply.startswith(b"HTTP/1.1 408 ")
    assert network.error_class(reply) == "request-timeout"
    assert 0.4 < time.monotonic() - start < 15  # each byte anew would be 17 s


def test_the_limit_holds_for_every_head_of_a_connection(network: Any) -> None:
    origin = network.origin()
    door = network.door([network.named(origin.port)], limits={"head_time": 0.1})
    sock = network.client(door)
    sock.sendall(get(origin.port) + b"GET ")
    reply = network.read_all(sock)
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in reply


def test_a_client_that_says_nothing_is_let_go(network: Any) -> None:
    door = network.door(limits={"head_time": 0.1})
    assert network.client(door).recv(1) == b""


def test_an_idle_kept_connection_is_let_go_without_a_word(network: Any) -> None:
    origin = network.origin()
    door = network.door([network.named(origin.port)], limits={"idle_time": 0.1})
    sock = network.client(door)
    sock.sendall(get(origin.port))
    assert network.read_all(sock).endswith(b"\r\n\r\nA")


def test_a_stalled_body_is_408(network: Any) -> None:
    origin = network.listener(network.read_all)
    door = network.door([network.named(origin.port)], limits={"idle_time": 0.1})
    reply = network.ask(
        door,
        f"POST http://allowed.test:{origin.port}/ HTTP/1.1\r\nHost: allowed.test:{origin.port}\r\n"
        "Content-Length: 10\r\n\r\nhalf".encode(),
    )
    assert reply.startswith(b"HTTP/1.1 408 ")


def test_a_stalled_answer_is_cut(network: Any) -> None:
    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        network.read_all(sock)

    server = network.listener(origin)
    door = network.door([network.named(server.port)], limits={"idle_time": 0.1})
    sock = network.client(door)
    sock.sendall(get(server.port))
    with pytest.raises(ConnectionResetError):
        network.read_all(sock)
    assert door.sink.network()[0]["error"] == "upstream-timeout: The answer stalled."


def test_two_thousand_idle_connections_and_back(network: Any) -> None:
    """P-PF-06: descriptors and memory return to where they were, and quick requests are served meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 6000:
        pytest.skip("the hard limit of open files is below 6000")
    resource.setrlimit(resource.RLIMIT_NOFILE, (6000, hard))
    try:
        origin = network.origin()
        door = network.door([network.named(origin.port)])
        descriptors = len(os.listdir("/proc/self/fd"))
        before = memory()
        idle = [door.connect() for _ in range(2000)]
        until(lambda: door.call(lambda: door.server.connections) == 2000)
        grown = memory() - before
        sock = network.client(door)
        for _ in range(300):
            sock.sendall(get(origin.port))
            assert network.read_exactly(sock, 1, network.read_head(sock)[1]) == b"A"
        sock.close()
        for each in idle:
            each.close()
        until(lambda: door.call(lambda: door.server.connections) == 0)
        door.call(door.server.pool.close)
        door.sink.network()
        assert grown / 2000 < 20_000, "bytes for each idle connection, both ends in this process"
        until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors + 1)
        assert len(door.loop._timers) < 100
        assert len(door.loop._watches) < 10
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

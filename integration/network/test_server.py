"""The door as a server: reload, drain, the limit of connections, shared ports, and its end."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from doorward.proxy.alone import open_listener


def echo(sock: socket.socket) -> None:
    while data := sock.recv(65536):
        sock.sendall(data)


def get(port: int, name: str = "allowed.test") -> bytes:
    return f"GET http://{name}:{port}/ HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode()


def test_a_reload_changes_the_next_request_and_leaves_tunnels_alone(network: Any) -> None:
    tunnels, origin = network.listener(echo), network.origin()
    door = network.door([network.named(tunnels.port), network.named(origin.port)])
    tunnel = network.tunnel(door, f"allowed.test:{tunnels.port}")
    tunnel.sendall(b"before")
    assert network.read_exactly(tunnel, 6) == b"before"
    kept = network.client(door)
    kept.sendall(get(origin.port))
    network.read_exactly(kept, 1, network.read_head(kept)[1])
    door.call(lambda: door.server.reload(door.policy(["other.test"])))
    tunnel.sendall(b"after")
    assert network.read_exactly(tunnel, 5) == b"after"
    kept.sendall(get(origin.port))
    assert network.read_all(kept).startswith(b"HTTP/1.1 403 ")
    assert len(origin.heads) == 1


def test_a_kept_upstream_connection_is_judged_again_after_a_reload(network: Any) -> None:
    origin = network.origin()
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    for rules in ([network.named(origin.port)], [f"allowed.test:{origin.port}"]):
        sock.sendall(get(origin.port))
        head = network.read_head(sock)
        assert head[0].startswith(b"HTTP/1.1 200 ")
        network.read_exactly(sock, 1, head[1])
        door.call(lambda rules=rules: door.server.reload(door.policy(rules)))
    assert origin.touched == 1
    sock.sendall(get(origin.port))
    assert network.read_all(sock).startswith(b"HTTP/1.1 403 "), "the address is no longer opened"


def test_a_drain_lets_what_is_under_way_finish(network: Any) -> None:
    release = threading.Event()

    def slow(sock: socket.socket) -> None:
        network.read_head(sock)
        assert release.wait(network.wait)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
        network.read_all(sock)

    server = network.listener(slow)
    door = network.door([network.named(server.port)])
    idle, busy = network.client(door), network.client(door)
    busy.sendall(get(server.port))
    door.sink.wait_for(lambda items: len(items) == 1)

    async def drain() -> None:
        await door.server.drain(network.wait)

    door.call(lambda: door.server._group.start(drain()))
    assert idle.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        door.connect()
    release.set()
    reply = network.read_all(busy)
    assert reply.endswith(b"late")
    assert b"\r\nConnection: close\r\n" in reply
    busy.close()
    door._thread.join(network.wait)
    assert not door._thread.is_alive()


def test_a_drain_ends_at_its_limit(network: Any) -> None:
    origin = network.listener(echo)
    door = network.door([network.named(origin.port)])
    sock = network.tunnel(door, f"allowed.test:{origin.port}")

    async def drain() -> None:
        await door.server.drain(0.1)

    door.call(lambda: door.server._group.start(drain()))
    assert network.read_all(sock) == b""
    record = door.sink.network()[0]
    assert record["closed_by"] == "proxy"


def test_beyond_the_limit_of_connections_clients_wait(network: Any) -> None:
    door = network.door(limits={"connections": 2})
    first, second, third = (network.client(door) for _ in range(3))
    third.sendall(get(80, "blocked.test"))
    second.sendall(b"G")
    third.settimeout(0.1)
    with pytest.raises(TimeoutError):
        third.recv(1)
    third.settimeout(network.wait)
    first.close()
    assert network.read_all(third).startswith(b"HTTP/1.1 403 ")


def test_two_processes_may_share_a_port() -> None:
    with open_listener("127.0.0.1", 0, reuse_port=True) as one:
        port = one.getsockname()[1]
        with open_listener("127.0.0.1", port, reuse_port=True) as two:
            assert two.getsockname() == one.getsockname()
        with pytest.raises(OSError):
            open_listener("127.0.0.1", port)


def test_listeners_of_both_families(network: Any) -> None:
    origin = network.origin()
    door = network.door([network.named(origin.port)])
    listener = open_listener("::1", 0)
    port = listener.getsockname()[1]
    door.call(lambda: door.server.add_listener(listener))
    with socket.create_connection(("::1", port), network.wait) as sock:
        sock.sendall(get(origin.port))
        assert network.read_head(sock)[0].startswith(b"HTTP/1.1 200 ")


def test_a_fault_of_ours_costs_one_connection_only(network: Any) -> None:
    door = network.door()

    def broken(host: Any, port: int) -> Any:
        raise RuntimeError("a fault")

    policy = door.policy([])
    policy.decide = broken
    good = door.server.policy
    door.call(lambda: door.server.reload(policy))
    with door.connect() as sock:
        sock.sendall(get(80, "blocked.test"))
        with pytest.raises(ConnectionResetError):
            network.read_all(sock)
    assert [str(fault) for fault in door.faults] == ["a fault"]
    door.faults.clear()
    door.call(lambda: door.server.reload(good))
    assert network.ask(door, get(80, "blocked.test")).startswith(b"HTTP/1.1 403 ")


def test_closing_ends_every_connection_and_keeps_its_record(network: Any) -> None:
    origin = network.listener(echo)
    door = network.door([network.named(origin.port)])
    socks = [network.tunnel(door, f"allowed.test:{origin.port}") for _ in range(5)]
    door.call(door.server.close)
    for sock in socks:
        assert network.read_all(sock) == b""
    door._thread.join(network.wait)
    assert len(door.sink.of("network")) == 5
    assert {record["closed_by"] for record in door.sink.of("network")} == {"proxy"}

"""How it ends: a drain, a second signal, its own death."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]


def refuses(port: int) -> None:
    """Nobody listens there any more, soon."""
    deadline = time.monotonic() + 20
    while True:
        assert time.monotonic() < deadline
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            pass  # it was in the queue when that was closed


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_drain_lets_a_tunnel_finish(start: Start, there: str, workers: str) -> None:
    proxy = start("--allow", there, "--workers", workers)
    _, tunnel = proxy.ask(there)
    proxy.kill(signal.SIGTERM)
    proxy.says("no longer accepting; what is open may finish for 30 s")
    refuses(proxy.ports[0])
    tunnel.sendall(b"still here")
    assert tunnel.recv(100) == b"still here"
    assert proxy.process.poll() is None
    tunnel.close()
    assert proxy.wait() == 0


def test_the_time_to_drain_ends(start: Start, there: str) -> None:
    proxy = start("--allow", there, "--drain", "0.3")
    _, tunnel = proxy.ask(there)
    proxy.kill(signal.SIGINT)
    assert proxy.wait() == 0
    assert tunnel.recv(1) == b""
    tunnel.close()


def test_a_second_signal_ends_at_once(start: Start, there: str, tmp_path: Any) -> None:
    log = tmp_path / "log"
    proxy = start("--allow", there, "--log-json", str(log))
    _, tunnel = proxy.ask(there)
    proxy.kill(signal.SIGTERM)
    proxy.says("no longer accepting")
    proxy.kill(signal.SIGTERM)
    assert proxy.wait() == 0
    assert tunnel.recv(1) == b""
    tunnel.close()
    assert b'"closed_by":"proxy"' in log.read_bytes(), "what was cut is recorded"


def test_an_idle_door_ends_at_once(start: Start, control: Any) -> None:
    proxy = start("--control", control.where)
    idle = proxy.connect()
    before = time.monotonic()
    proxy.kill(signal.SIGTERM)
    assert proxy.wait() == 0
    assert time.monotonic() - before < 10
    idle.close()
    assert not os.path.exists(control.where.removeprefix("unix:")), "the socket is gone with it"


def test_its_death_is_theirs(start: Start, there: str) -> None:
    proxy = start("--allow", there, "--workers", "2")
    _, tunnel = proxy.ask(there)
    pids = [os.pidfd_open(pid) for pid in proxy.workers]
    port = proxy.ports[0]
    proxy.kill(signal.SIGKILL)
    for pidfd in pids:
        assert select.select([pidfd], [], [], 20)[0], "a worker outlives its supervisor"
        os.close(pidfd)
    assert tunnel.recv(1) == b""
    tunnel.close()
    refuses(port)

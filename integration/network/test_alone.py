"""`DoorAlone` in a process of its own: signals, reload, drain."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from doorward.proxy.alone import DoorAlone, open_listener
from doorward.proxy.policy import Policy, policy_from_settings

WAIT = 30.0


def policy(*allow: str) -> Policy:
    rules = [{"rule": rule, "source": "flag", "where": "--allow"} for rule in allow]
    return policy_from_settings({"allow": rules, "hosts": {"a.test": "127.0.0.1"}})


class Alone:
    """The process, its port and its log."""

    def __init__(self, log: Path, first: Policy, reload: Callable[[], Policy | None]) -> None:
        self.log = log
        listener = open_listener("127.0.0.1", 0)
        self.port: int = listener.getsockname()[1]
        ready_read, ready_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(ready_read)

                def keep(run: str, item: Any) -> None:
                    with log.open("a") as file:
                        file.write(json.dumps({"run": run, **item}) + "\n")

                door = DoorAlone([listener], first, keep, reload=reload, drain_time=5)
                door.loop.post(lambda: os.close(ready_write))
                door.serve()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        listener.close()
        os.close(ready_write)
        assert os.read(ready_read, 1) == b""  # it runs, and its signal handlers stand
        os.close(ready_read)
        self.status: int | None = None

    def kill(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def connect(self, authority: str) -> tuple[bytes, socket.socket]:
        sock = socket.create_connection(("127.0.0.1", self.port), WAIT)
        sock.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        return sock.recv(12), sock


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Callable[..., Alone]]:
    made: list[Alone] = []

    def make(first: Policy, reload: Callable[[], Policy | None] = lambda: None) -> Alone:
        made.append(Alone(tmp_path / "log", first, reload))
        return made[-1]

    yield make
    for each in made:
        if each.status is None:
            each.kill(signal.SIGKILL)
            each.wait()


def test_records_are_kept_before_the_answer_and_sigterm_ends_it(alone: Callable[..., Alone]) -> None:
    door = alone(policy())
    reply, sock = door.connect("blocked.test:443")
    assert reply == b"HTTP/1.1 403"
    lines = [json.loads(line) for line in door.log.read_text().splitlines()]
    assert [(line["run"], line["type"]) for line in lines] == [("proxy", "network"), ("proxy", "refusal")]
    sock.close()
    door.kill(signal.SIGTERM)
    assert door.wait() == 0


def test_sighup_reloads_and_a_bad_one_keeps_the_old(alone: Callable[..., Alone]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as origin:
        allowed = f"a.test:{origin.getsockname()[1]}"
        answers: list[Policy | None] = [None, policy(allowed)]
        door = alone(policy(), lambda: answers.pop(0))  # and then an error
        deadline = time.monotonic() + WAIT
        for expected in (b"HTTP/1.1 403", b"HTTP/1.1 403", b"HTTP/1.1 200"):
            reply = b""
            while reply != expected:  # a signal is handled soon, not at once
                assert time.monotonic() < deadline
                reply, sock = door.connect(allowed)
                sock.close()
            door.kill(signal.SIGHUP)
        reply, sock = door.connect(allowed)
        assert reply == b"HTTP/1.1 200"
        sock.close()


@pytest.mark.parametrize("second", [True, False])
def test_a_tunnel_may_finish_after_the_first_sigterm(alone: Callable[..., Alone], second: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as origin:
        allowed = f"a.test:{origin.getsockname()[1]}"
        door = alone(policy(allowed))
        reply, sock = door.connect(allowed)
        assert reply == b"HTTP/1.1 200"
        there, _ = origin.accept()
        while not sock.recv(1000).endswith(b"\r\n\r\n"):
            pass
        door.kill(signal.SIGTERM)
        with pytest.raises(ConnectionError):  # refused, or reset if it was still in the queue
            while True:
                socket.create_connection(("127.0.0.1", door.port), WAIT).close()
        there.sendall(b"still here")
        assert sock.recv(100) == b"still here"
        if second:
            door.kill(signal.SIGINT)
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""
        sock.close()
        there.close()
        assert door.wait() == 0

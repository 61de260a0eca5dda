"""A real `doorward proxy` with a home of its own, and servers on loopback to reach or not."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WAIT = 20.0
"""Seconds after which whatever a test waits for has failed."""

NAME = "allowed.test"


class Proxy:
    """One running `doorward proxy`. `lines` is what it said on stderr."""

    def __init__(
        self, folder: Path, args: tuple[str, ...], env: dict[str, str], wrap: list[str], fds: list[int]
    ) -> None:
        self.home = folder / "home"
        self.process = subprocess.Popen(
            [*wrap, sys.executable, "-P", "-m", "doorward", "proxy", *args],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "DOORWARD_HOME": str(self.home), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=fds,
        )
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(line.decode().rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def says(self, pattern: str, count: int = 1) -> re.Match[str]:
        """Wait until `count` lines match; the last of them."""

        def found() -> list[re.Match[str]]:
            return [match for line in self.lines if (match := re.search(pattern, line))]

        with self._changed:
            self._changed.wait_for(lambda: len(found()) >= count or self._ended, WAIT)
            assert len(found()) >= count, (pattern, self.lines)
            return found()[count - 1]

    def settles(self) -> None:
        """Wait until it accepts, or has ended."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._ended or any("accepting" in line for line in self.lines), WAIT)

    @property
    def ports(self) -> list[int]:
        """The bound ports, once it accepts."""
        return [int(port) for port in re.findall(r":(\d+)(?:,|$)", self.says("accepting on (.*)")[1])]

    @property
    def workers(self) -> list[int]:
        """The process ids of its workers."""
        pid = self.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def connect(self, at: int = 0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports[at]), WAIT)

    def ask(self, authority: str, at: int = 0) -> tuple[bytes, socket.socket]:
        """A CONNECT, the head of its answer (empty where it was cut off), and the socket."""
        sock = self.connect(at)
        sock.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        head = b""
        with contextlib.suppress(ConnectionResetError):
            while not head.endswith(b"\r\n\r\n") and (byte := sock.recv(1)):
                head += byte
        return head, sock

    def status(self, authority: str, at: int = 0) -> int:
        """The status a CONNECT is answered with; 0 for none."""
        head, sock = self.ask(authority, at)
        sock.close()
        return int(head[9:12]) if head else 0

    def becomes(self, authority: str, status: int) -> None:
        """Ask until the answer is that status."""
        deadline = time.monotonic() + WAIT
        while self.status(authority) != status:
            assert time.monotonic() < deadline, self.lines
            select.select([], [], [], 0.05)

    def kill(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Its exit status."""
        status = self.process.wait(WAIT)
        self._reader.join(WAIT)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


class Echo:
    """A server that sends back what it gets; counts its connections."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.touched = 0
        self._stop_read, self._stop = socket.socketpair()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        open_ones: set[socket.socket] = set()
        while True:
            ready, _, _ = select.select([self._listener, self._stop_read, *open_ones], [], [])
            for sock in ready:
                if sock is self._stop_read:
                    for each in open_ones:
                        each.close()
                    return
                if sock is self._listener:
                    self.touched += 1
                    open_ones.add(sock.accept()[0])
                    continue
                try:
                    data = sock.recv(65536)
                    sock.sendall(data)
                except OSError:
                    data = b""
                if not data:
                    open_ones.discard(sock)
                    sock.close()

    def close(self) -> None:
        self._stop.send(b"x")
        self._thread.join(WAIT)
        for sock in (self._listener, self._stop_read, self._stop):
            sock.close()


class Control:
    """A client of the control listener."""

    def __init__(self, where: str) -> None:
        self.where = where

    def connect(self) -> http.client.HTTPConnection:
        if not self.where.startswith("unix:"):
            host, _, port = self.where.rpartition(":")
            return http.client.HTTPConnection(host, int(port), timeout=WAIT)
        client = http.client.HTTPConnection("localhost", timeout=WAIT)
        client.sock = socket.socket(socket.AF_UNIX)
        client.sock.settimeout(WAIT)
        try:
            client.sock.connect(self.where.removeprefix("unix:"))
        except OSError:
            client.sock.close()
            raise
        return client

    def __call__(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
        with contextlib.closing(self.connect()) as client:
            client.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            answer = client.getresponse()
            return answer.status, answer.read()

    def json(self, path: str, method: str = "GET") -> Any:
        return json.loads(self(path, method)[1])

    def metric(self, name: str) -> float:
        """One sample, by its name with labels; 0 where it is not there."""
        for line in self("/metrics")[1].decode().splitlines():
            if line.rpartition(" ")[0] == f"doorward_{name}":
                return float(line.rpartition(" ")[2])
        return 0.0

    def becomes(self, name: str, value: float) -> None:
        """Ask until the sample has that value."""
        deadline = time.monotonic() + WAIT
        while (found := self.metric(name)) != value:
            assert time.monotonic() < deadline, (name, found)
            select.select([], [], [], 0.02)


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as opened:
        yield opened


@pytest.fixture
def start(stack: contextlib.ExitStack, tmp_path: Path) -> Callable[..., Proxy]:
    """Start a proxy and wait until it accepts or ends; `listen` False leaves `--listen` to the test. It has one worker
    unless the test says otherwise, or with `workers` False as many as it has by itself."""
    (tmp_path / "home").mkdir(mode=0o700)

    def make(
        *args: str,
        listen: bool = True,
        workers: bool = True,
        settle: bool = True,
        env: dict[str, str] | None = None,
        wrap: list[str] | None = None,
        fds: list[int] | None = None,
    ) -> Proxy:
        where = ("--listen", "127.0.0.1:0") if listen else ()
        pin = ("-c", f'network.hosts."{NAME}"=127.0.0.1')
        one = ("--workers", "1") if workers and "--workers" not in args else ()
        proxy = Proxy(tmp_path, (*where, *one, *pin, *args), env or {}, wrap or [], fds or [])
        stack.callback(proxy.close)
        if settle:
            proxy.settles()
        return proxy

    return make


@pytest.fixture
def echo(stack: contextlib.ExitStack) -> Echo:
    server = Echo()
    stack.callback(server.close)
    return server


@pytest.fixture
def there(echo: Echo) -> str:
    """`allowed.test:PORT`, which is the echo server."""
    return f"{NAME}:{echo.port}"


@pytest.fixture
def control(tmp_path: Path) -> Control:
    """A client for `--control` with this `where`."""
    return Control(f"unix:{tmp_path}/control")


@pytest.fixture
def configure(tmp_path: Path) -> Callable[[str], Path]:
    """Put a text in the place of $DOORWARD_HOME/config.toml, whole."""

    def write(text: str) -> Path:
        path = tmp_path / "home" / "config.toml"
        fresh = path.with_name("config.new")
        fresh.write_text(text)
        fresh.chmod(0o600)
        fresh.rename(path)
        return path

    return write

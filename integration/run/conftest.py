"""A real `doorward` process in a folder of its own, and origins on the host's loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DEADLINE = 60
"""Seconds any one doorward may take; a hang fails the test."""


class Ran(NamedTuple):
    """What came of one `doorward` process."""

    status: int
    out: bytes
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed


class Doorward:
    """Runs `doorward` with a home and a workspace of its own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "work"
        self.workspace.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "user"),
            "LANG": "C.UTF-8",
            "DOORWARD_HOME": str(self.home),
        }
        (folder / "user").mkdir()

    def argv(self, *args: str | bytes) -> list[str | bytes]:
        """The command line of one doorward."""
        return [sys.executable, "-P", "-m", "doorward", *args]

    def __call__(
        self,
        *args: str | bytes,
        env: Mapping[str, str | bytes] | None = None,
        input: bytes = b"",
        cwd: Path | str | None = None,
    ) -> Ran:
        """Run it to its end."""
        done = subprocess.run(
            self.argv(*args),
            cwd=cwd or self.workspace,
            env={**self.env, **(env or {})},  # type: ignore[arg-type]
            input=input,
            capture_output=True,
            timeout=DEADLINE,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace"))

    def start(self, *args: str | bytes, **more: Any) -> subprocess.Popen[bytes]:
        """Start it and leave it running."""
        return subprocess.Popen(
            self.argv(*args),
            cwd=self.workspace,
            env=self.env,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
        )

    def lines(self, session: str) -> list[dict[str, Any]]:
        """The session's rollout, as `show --json` prints it."""
        shown = self("show", "--json", session)
        assert shown.status == 0, shown.err
        return [json.loads(line) for line in shown.out.splitlines()]

    def rollouts(self) -> list[Path]:
        """Every rollout file of the home."""
        return sorted(self.home.glob("sessions/*/*/*/rollout-*.jsonl"))


@pytest.fixture
def doorward(tmp_path: Path) -> Doorward:
    """A doorward with nothing in its home yet."""
    return Doorward(tmp_path)


class Origin:
    """A small HTTP origin on 127.0.0.1 that counts what reached it."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                head = b""
                while b"\r\n\r\n" not in head and (data := connection.recv(65536)):
                    head += data
                self.requests.append(head)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")

    def reach(self, name: str = "a.test") -> tuple[str, ...]:
        """Options under which `http://NAME:PORT/` is this origin."""
        return ("--allow", f"{name}:{self.port}", "-c", f'network.hosts={{"{name}" = "127.0.0.1"}}')

    def url(self, name: str = "a.test") -> str:
        """The URL a command inside would use."""
        return f"http://{name}:{self.port}/"

    def close(self) -> None:
        """Stop listening."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._thread.join(5)


@pytest.fixture
def origin() -> Iterator[Origin]:
    """An origin that answers `hello`."""
    served = Origin()
    yield served
    served.close()

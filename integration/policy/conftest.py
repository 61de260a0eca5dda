"""A real `doorward` with rules files of its own, and an origin on the host's loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DEADLINE = 60
"""Seconds any one doorward may take; a hang fails the test."""


class Ran(NamedTuple):
    """What came of one `doorward` process."""

    status: int
    out: str
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
        (folder / "user").mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "user"),
            "LANG": "C.UTF-8",
            "DOORWARD_HOME": str(self.home),
        }

    def rules(self, text: str, name: str = "a.rules", folder: Path | None = None) -> Path:
        """Write a rules file, the person's own unless `folder` says otherwise."""
        file = (folder or self.home / "rules") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def __call__(self, *args: str, cwd: Path | None = None) -> Ran:
        """Run it to its end."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "doorward", *args],
            cwd=cwd or self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=DEADLINE,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def rollouts(self) -> list[Path]:
        """Every rollout file of the home."""
        return sorted(self.home.glob("sessions/*/*/*/rollout-*.jsonl"))


@pytest.fixture
def doorward(tmp_path: Path) -> Doorward:
    """A doorward with nothing in its home yet."""
    return Doorward(tmp_path)


@pytest.fixture
def origin() -> Iterator[int]:
    """The port of a small HTTP origin on 127.0.0.1 that answers `hello`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)

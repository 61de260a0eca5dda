"""A real `doorward` whose questions go to the queue, and a bell that rings when one arrives."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DEADLINE = 60
"""Seconds any one wait may take; a hang fails the test."""


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
            "TERM": "xterm",
            "DOORWARD_HOME": str(self.home),
        }
        # the configured command that is called when a question arrives is how the tests hear of it
        self._bell_path = folder / "bell"
        os.mkfifo(self._bell_path)
        self._bell = os.open(self._bell_path, os.O_RDWR | os.O_NONBLOCK)
        self._heard = b""
        self.configure()

    def configure(self, more: str = "") -> None:
        """Write the person's configuration: the queue, the bell, and `more`."""
        self.home.mkdir(exist_ok=True)
        notify = json.dumps(["sh", "-c", f"cat > {self._bell_path}"])
        text = f"approvals.queue = true\napprovals.notify = {notify}\n{more}"
        (self.home / "config.toml").write_text(text)

    def argv(self, *args: str) -> list[str]:
        """The command line of one doorward."""
        return [sys.executable, "-P", "-m", "doorward", *args]

    def start(self, *args: str, **more: Any) -> subprocess.Popen[bytes]:
        """Start it and leave it running."""
        return subprocess.Popen(
            self.argv(*args),
            cwd=self.workspace,
            env=self.env,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
        )

    def __call__(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.argv(*args),
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )

    def question(self) -> dict[str, Any]:
        """The next question that arrives."""
        while b"\n" not in self._heard:
            readable, _, _ = select.select([self._bell], [], [], DEADLINE)
            assert readable, "no question has arrived"
            self._heard += os.read(self._bell, 65536)
        line, _, self._heard = self._heard.partition(b"\n")
        document: dict[str, Any] = json.loads(line)
        return document

    def quiet(self) -> bool:
        """True if no question has arrived that was not read."""
        return not self._heard and not select.select([self._bell], [], [], 0)[0]

    def waiting(self) -> list[dict[str, Any]]:
        """What `approvals list --json` says."""
        listed: list[dict[str, Any]] = json.loads(self("approvals", "list", "--json").stdout)
        return listed

    def answer(self, *args: str) -> None:
        """`approvals ARGS`, which must succeed."""
        done = self("approvals", *args)
        assert done.returncode == 0, done.stderr

    def lines(self, session: str) -> list[dict[str, Any]]:
        """The session's rollout, as `show --json` prints it."""
        shown = self("show", "--json", session)
        assert shown.returncode == 0, shown.stderr
        return [json.loads(line) for line in shown.stdout.splitlines()]

    def close(self) -> None:
        """The bell rings no more."""
        os.close(self._bell)


def ended(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The observation that a `run --json` prints."""
    out, err = process.communicate(timeout=DEADLINE)
    assert out, err
    document: dict[str, Any] = json.loads(out)
    return document


@pytest.fixture
def observation() -> Any:
    """`ended`, for tests that cannot import it."""
    return ended


@pytest.fixture
def doorward(tmp_path: Path) -> Iterator[Doorward]:
    """A doorward with nothing in its home but the configuration."""
    made = Doorward(tmp_path)
    yield made
    made.close()


class Origin:
    """A small HTTP origin on 127.0.0.1."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
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
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")

    @property
    def pin(self) -> tuple[str, str]:
        """The option that makes b.test this origin, and allows it to nobody."""
        return ("-c", 'network.hosts={"b.test" = "127.0.0.1"}')

    @property
    def url(self) -> str:
        """Where a command inside would find it."""
        return f"http://b.test:{self.port}/"

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

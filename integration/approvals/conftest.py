"""A real `doorward` whose questions go to the queue, and a bell that rings when one arrives."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import doorward_command
import pytest
from origin import Origin

DEADLINE = 60
"""Seconds any one wait may take; a hang fails the test."""


class Doorward(doorward_command.Doorward):
    """Hears of questions, and answers them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.env["TERM"] = "xterm"
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
        listed: list[dict[str, Any]] = json.loads(self("approvals", "list", "--json").out)
        return listed

    def answer(self, *args: str) -> None:
        """`approvals ARGS`, which must succeed."""
        done = self("approvals", *args)
        assert done.status == 0, done.err

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


@pytest.fixture
def origin() -> Iterator[Origin]:
    """`b.test`, which answers `hello`."""
    served = Origin("b.test")
    yield served
    served.close()

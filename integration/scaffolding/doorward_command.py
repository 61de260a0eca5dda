"""The installed `doorward` as a person would run it, with a home and a workspace of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

DEADLINE = 60
"""Seconds any one doorward may take; a hang fails the test."""


class Ran(NamedTuple):
    """What came of one `doorward` process."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """What it said on stdout."""
        return self.out.decode("utf-8", "surrogateescape")

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        assert self.out, self.err
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed


class Doorward:
    """Runs `doorward` with a home, a workspace and a user's home of its own, all below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "work"
        self.user = folder / "user"
        for made in (self.workspace, self.user):
            made.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),
            "LANG": "C.UTF-8",
            "DOORWARD_HOME": str(self.home),
        }

    def argv(self, *args: str | bytes) -> list[str | bytes]:
        """The command line of one doorward."""
        return [sys.executable, "-P", "-m", "doorward", *args]

    def __call__(
        self,
        *args: str | bytes,
        env: Mapping[str, str | bytes] | None = None,
        input: bytes = b"",
        cwd: Path | str | None = None,
        deadline: float = DEADLINE,
    ) -> Ran:
        """Run it to its end."""
        done = subprocess.run(
            self.argv(*args),
            cwd=cwd or self.workspace,
            env={**self.env, **(env or {})},  # type: ignore[arg-type]
            input=input,
            capture_output=True,
            timeout=deadline,
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

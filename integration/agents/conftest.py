"""A project, a doorward home, and a way to run commands in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DEADLINE = 120
"""Seconds any one process may take."""


class Place:
    """A project with a doorward home and a user's home of its own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.project = base / "project"
        self.home = base / "home"
        self.user = base / "user"
        for folder in (self.project, self.home, self.user):
            folder.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),
            "LANG": "C.UTF-8",
            "DOORWARD_HOME": str(self.home),
        }

    def run(self, *argv: str, input: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """One process in the project, to its end."""
        return subprocess.run(
            argv, input=input, capture_output=True, text=True, cwd=self.project, env=self.env | env,
            check=False, timeout=DEADLINE,
        )  # fmt: skip

    def doorward(self, *args: str, input: str = "") -> subprocess.CompletedProcess[str]:
        """One doorward."""
        return self.run(*doorward(*args), input=input)

    def sessions(self) -> list[dict[str, Any]]:
        """`doorward sessions --json`."""
        found: list[dict[str, Any]] = json.loads(self.doorward("sessions", "--json").stdout)
        return found


def doorward(*args: str) -> list[str]:
    return [sys.executable, "-P", "-m", "doorward", *args]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for tool in ("bwrap", "bash"):
        if sys.platform != "linux" or shutil.which(tool) is None:
            if os.environ.get("CI") == "true" and sys.platform == "linux":
                pytest.fail(f"CI must have {tool}")
            pytest.skip(f"{tool} is not installed")
    return Place(tmp_path)

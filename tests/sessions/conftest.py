"""A home in a temporary folder, and shorthands for the files in it."""

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doorward.sessions.damage import Damage
from doorward.sessions.home import Home
from doorward.sessions.line import Line
from doorward.sessions.reading import read_lines
from doorward.sessions.rollout import Rollout


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


@pytest.fixture
def new(home: Home) -> Callable[..., str]:
    """Makes a closed session with some records in it; gives its path."""

    def make(records: int = 0, **options: Any) -> str:
        with Rollout.create(home, **{"cwd": "/work", **options}) as rollout:
            for index in range(records):
                rollout.append("network", {"turn": 1, "index": index})
        return rollout.path

    return make


@pytest.fixture
def write(home: Home) -> Callable[..., str]:
    """Puts a file of one's own where a session's would be; `content` is bytes, or records to be written as JSON."""

    def place(name: str, content: bytes | list[Any], day: str = "2025/11/29") -> str:
        folder = f"{home.sessions}/{day}"
        os.makedirs(folder, exist_ok=True)
        path = f"{folder}/rollout-2025-11-29T10-00-00-{name}.jsonl"
        if isinstance(content, list):
            content = b"".join(json.dumps(record).encode() + b"\n" for record in content)
        Path(path).write_bytes(content)
        return path

    return place


@pytest.fixture
def lines() -> Callable[[str], list[Line]]:
    """The good records of a file."""

    def read(path: str) -> list[Line]:
        return [line for line in read_lines(path) if isinstance(line, Line)]

    return read


@pytest.fixture
def damages() -> Callable[[str], list[Damage]]:
    """The damaged lines of a file."""

    def read(path: str) -> list[Damage]:
        return [line for line in read_lines(path) if isinstance(line, Damage)]

    return read


@pytest.fixture
def in_child() -> Callable[[Callable[[], object]], tuple[object, int]]:
    """Runs a function in a forked child; gives what it returned (as JSON; None without) and the wait status.

    For what must not happen to the test process: file-size limits, SIGKILL.
    """

    def run(function: Callable[[], object]) -> tuple[object, int]:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reader)
                result = json.dumps(function()).encode()
                os.write(writer, result)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            result = pipe.read()
        _, status = os.waitpid(child, 0)
        return (json.loads(result) if result else None), status

    return run

"""What the two ends of a long record tell."""

import os
from pathlib import Path

import pytest

from doorward.sessions.home import Home
from doorward.sessions.line import Line
from doorward.sessions.long_line import summarised
from doorward.sessions.rollout import Rollout


def of(path: str, offset: int, length: int) -> Line | None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return summarised(descriptor, number=2, offset=offset, length=length)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("size", [10, 5000, 100_000])
def test_a_record_of_ours(home: Home, size: int) -> None:
    with Rollout.create(home, cwd="/work", name="x") as rollout:
        line = rollout.append("observation", {"turn": 1, "text": "x" * size})
    assert of(rollout.path, line.offset, line.length) == line._replace(
        number=2, payload={"omitted_bytes": line.length}, whole=False
    )


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"timestamp":"2025-11-29T10:00:00Z","type":"compacted","payload":{"x":"y"}}', "compacted"),
        (b'{"timestamp":"2025-11-29T10:00:00Z","type":"compacted","payload":{"x":"y"}}  \r', "compacted"),
        (b'{"timestamp":"2025-11-29T10:00:00Z","type":"compacted","payload":{"x":"y"', None),
        (b'{"type":"compacted","timestamp":"2025-11-29T10:00:00Z","payload":{"x":"y"}}', None),
        (b"", None),
    ],
)
def test_a_record_of_others(tmp_path: Path, content: bytes, kind: str | None) -> None:
    (tmp_path / "file").write_bytes(content)
    line = of(str(tmp_path / "file"), 0, len(content))
    assert (line and line.type) == kind
    assert line is None or (line.ordinal, line.metadata) == (None, {})

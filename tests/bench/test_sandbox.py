"""The sandbox benchmark's comparisons and its table; nothing here looks at a clock or starts a sandbox."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark loads the Linux launcher")
if sys.platform == "linux":
    import sandbox
    import sandbox_works as works
    from sandbox import Row
    from timing import DidNotWork


def test_rounds_are_compared_one_by_one() -> None:
    """A slow moment falls on both of a round; medians taken apart would mix rounds."""
    assert sandbox.ratio([2, 40, 6], [1, 20, 3]) == 2
    assert sandbox.difference([11, 110, 12], [1, 100, 2]) == 10


def test_the_first_round_only_warms_up() -> None:
    values = iter((9.0, 1.0, 2.0))
    assert sandbox.interleaved(2, {"a": lambda: next(values)}) == {"a": [1.0, 2.0]}


def test_a_bound_that_is_missed_says_so() -> None:
    rows = [
        Row("set-up", "ms", 5.0, 16.0, 11.0, 10, True),
        Row("masks", "ms", 5.0, 10.0, 2.0, 3),
        Row("told", "ms", 5.0, 10.0, 2.0, None),
    ]
    lines = sandbox.table(rows).splitlines()
    assert "+11.0 ms" in lines[1] and lines[1].endswith("MISSED")
    assert "2.00×" in lines[2] and lines[2].endswith("holds")
    assert not lines[3].endswith(("holds", "MISSED"))


def test_what_it_works_on_is_there(tmp_path: Path) -> None:
    works.tree(str(tmp_path / "tree"), 2000)
    assert sum(1 for path in (tmp_path / "tree").rglob("*.py")) == 1998
    assert sum(1 for path in (tmp_path / "tree").rglob("*.key")) == 2
    works.many_secrets(str(tmp_path / "many"), 5)
    assert len(list((tmp_path / "many").glob("*.key"))) == 5


def test_the_loop_of_calls_prints_one_figure(tmp_path: Path) -> None:
    try:
        program = works.loop_of_calls(str(tmp_path))
    except DidNotWork as error:
        pytest.skip(str(error))
    for way in range(len(works.CALLS)):
        done = subprocess.run([program, "100", str(way)], capture_output=True, text=True, check=True, timeout=30)
        assert float(done.stdout) > 0

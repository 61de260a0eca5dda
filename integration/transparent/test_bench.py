"""The benchmark of capture, tried small: it measures all that it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench" / "transparent.py"


def test_it_measures_everything() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH), "--rounds", "3", "--runs", "1", "--json"],
        capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    figures = json.loads(done.stdout)
    assert len(figures) == 44
    differences = {"captured, over that"}
    assert all(value > 0 for name, (value, _) in figures.items() if name not in differences)

"""bench/sessions.py runs to its end, small, and gives every row."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench" / "sessions.py"


def test_a_small_run_gives_every_row(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--sessions", "20", "--megabytes", "1"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    rows = done.stdout.splitlines()
    assert len(rows) == 15
    assert all(any(unit in row for unit in (" ms", " µs", " MB/s", " s ")) for row in rows)
    assert list(tmp_path.iterdir()) == []

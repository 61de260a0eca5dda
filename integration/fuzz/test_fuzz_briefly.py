"""Runs every fuzz target for two seconds: the harness works, the corpus passes, and nothing easy is found."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TARGETS = sorted(HERE.glob("fuzz_*.py"))


@pytest.mark.parametrize(
    "script", [path for path in TARGETS if path.name != "fuzz_runner.py"], ids=lambda path: path.stem
)
def test_two_seconds_without_a_finding(script: Path) -> None:
    command = [sys.executable, str(script), "--seconds", "2"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    executed = re.search(r"(\d+) executions in 2 s\b.*no finding", result.stdout)
    assert executed is not None and int(executed[1]) > 50, result.stdout + result.stderr


def test_a_finding_is_told(tmp_path: Path) -> None:
    """The harness itself must be able to fail."""
    (tmp_path / "corpus" / "always").mkdir(parents=True)
    (tmp_path / "corpus" / "always" / "seed").write_bytes(b"seed")
    (tmp_path / "fuzz_runner.py").write_text((HERE / "fuzz_runner.py").read_text())
    script = tmp_path / "fuzz_always.py"
    script.write_text(
        "import sys, fuzz_runner\n"
        "def check(data):\n"
        "    assert b'\\0' not in data\n"
        "sys.exit(fuzz_runner.main('always', check))\n"
    )
    result = subprocess.run(
        [sys.executable, str(script), "--seconds", "5"], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode != 0
    assert "AssertionError" in result.stdout + result.stderr


def test_the_corpus_has_a_folder_for_every_target() -> None:
    names = {path.stem.removeprefix("fuzz_") for path in TARGETS} - {"runner"}
    assert names == {path.name for path in (HERE / "corpus").iterdir()}
    assert all(0 < seed.stat().st_size <= 4096 for seed in (HERE / "corpus").glob("*/*"))

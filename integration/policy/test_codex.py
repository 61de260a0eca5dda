"""`doorward policy check` prints what `codex execpolicy check` prints: recorded, and live where the binary is at hand.

`codex_execpolicy.json` holds rules files, commands and what codex printed of them. `CODEX_BINARY` (or a `codex` on
PATH) names the binary for the live comparison; it must be of the recorded version.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "codex_execpolicy.json").read_text("utf-8"))
PAIRS = [
    pytest.param(pair, id=f"{'+'.join(pair['rules'])}-{number}") for number, pair in enumerate(RECORDED["pairs"])
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every rules file."""
    folder = tmp_path_factory.mktemp("rules")
    for name, text in (RECORDED["rules"] | RECORDED["refused"]).items():
        (folder / f"{name}.rules").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def codex() -> str:
    """The real binary. Not on the machines of CI, so the recorded output is what holds there."""
    binary = os.environ.get("CODEX_BINARY") or shutil.which("codex")
    if binary is None:
        pytest.skip("no codex binary (CODEX_BINARY or PATH): only the recorded output is compared")
    told = subprocess.run([binary, "--version"], check=False, capture_output=True, text=True, timeout=60)
    version = told.stdout.strip()
    if version != RECORDED["codex"]:
        pytest.skip(f"this is {version}, and {RECORDED['codex']} was recorded")
    return binary


def arguments(pair: dict[str, Any], files: Path) -> list[str]:
    rules = [word for name in pair["rules"] for word in ("--rules", str(files / f"{name}.rules"))]
    resolve = ["--resolve-host-executables"] if pair["resolve"] else []
    return [*rules, *resolve, "--", *pair["argv"]]


def ours(given: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    from doorward.__main__ import main

    status = main(["policy", "check", *given])
    captured = capfd.readouterr()
    return status, captured.out, captured.err


def test_there_are_enough_pairs() -> None:
    assert len(PAIRS) >= 60


@pytest.mark.parametrize("pair", PAIRS)
def test_the_recorded_output(pair: dict[str, Any], files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ours(arguments(pair, files), capfd) == (0, pair["printed"].replace("CWD", str(Path.cwd())), "")


def test_side_by_side(codex: str, files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for pair in RECORDED["pairs"]:
        given = arguments(pair, files)
        theirs = subprocess.run([codex, "execpolicy", "check", *given], capture_output=True, timeout=60, check=True)
        assert ours(given, capfd)[1].encode() == theirs.stdout, pair


@pytest.mark.parametrize("name", RECORDED["refused"])
def test_what_codex_refuses_is_refused_with_file_and_line(
    name: str, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = ours(["--rules", str(files / f"{name}.rules"), "--", "a"], capfd)
    line = RECORDED["refused"][name].count("\n", 0, RECORDED["refused"][name].find("_rule")) + 1
    assert (status, out) == (2, "")
    assert err.startswith(f"doorward: {files / name}.rules:{line}: ")
    assert err.count("\n") == 1


def test_codex_refuses_the_same_files(codex: str, files: Path) -> None:
    for name in RECORDED["refused"]:
        given = [codex, "execpolicy", "check", "--rules", str(files / f"{name}.rules"), "--", "a"]
        assert subprocess.run(given, check=False, capture_output=True, timeout=60).returncode != 0, name


def test_pretty_is_pretty_the_same_way(codex: str, files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    given = ["--pretty", "--rules", str(files / "alternatives.rules"), "--", "git", "push"]
    theirs = subprocess.run([codex, "execpolicy", "check", *given], capture_output=True, timeout=60, check=True)
    assert ours(given, capfd)[1].encode() == theirs.stdout


def test_it_works_as_a_program(files: Path) -> None:
    """Bytes that are no UTF-8 pass through as they came."""
    given = [sys.executable, "-m", "doorward", "policy", "check", "--rules", str(files / "plain.rules"), "--"]
    done = subprocess.run([*given, b"git", b"status", b"\xff"], capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout)["decision"] == "allow"

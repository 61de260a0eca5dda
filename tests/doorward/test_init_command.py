"""`doorward init`: a proposal, written only when told to, never over what is there."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.commands import init, trust
from doorward.commands.dispatch import guarded
from doorward.configuration import load

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    (folder / "package.json").write_text("{}")
    (folder / ".env").write_text("A=1")
    return folder


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*args: str, command: Callable[[list[str]], int] = init.main) -> tuple[int, str, str]:
        status = guarded(command, list(args))
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def test_it_only_prints(run: Run, project: Path) -> None:
    status, out, err = run()
    assert status == 0 and tomllib.loads(out)["network"]["allow"] == ["@npm"] and "nothing was written" in err
    assert not (project / ".doorward").exists()
    assert json.loads(run("--json")[1])["secrets"] == [".env"]


def test_what_it_writes_counts_once_the_project_is_trusted(run: Run, project: Path, tmp_path: Path) -> None:
    assert run("--write")[0] == 0
    text = (project / ".doorward" / "config.toml").read_text()
    assert run(command=trust.main)[0] == 0
    loaded = load(home=str(tmp_path / "home"), cwd=str(project), env={"HOME": str(tmp_path)})
    assert [entry for entry, _ in loaded.entries("network.allow")] == ["@npm"]
    assert loaded.strings("filesystem.deny_read") == (".env",)
    status, out, err = run("--write")
    assert (status, out) == (1, "") and "is there already" in err
    assert (project / ".doorward" / "config.toml").read_text() == text


def test_a_link_in_its_place_is_refused(run: Run, project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project / ".doorward").symlink_to(tmp_path / "elsewhere")
    assert run("--write")[0] == 1 and not [*(tmp_path / "elsewhere").iterdir()]

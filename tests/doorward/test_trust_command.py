"""`doorward trust`: three states, one key for a folder however it is spelled."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.commands import check, trust
from doorward.commands.dispatch import guarded
from doorward.configuration import load

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`real/p`, the working folder; `real/p2` beside it; `link` leads to `real`."""
    folder = tmp_path / "real" / "p"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "real" / "p2").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*args: str, command: Callable[[list[str]], int] = trust.main) -> tuple[int, str, str]:
        status = guarded(command, list(args))
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def level(folder: Path | str) -> str:
    """What a run in `folder` would go by."""
    return load(os.environ["DOORWARD_HOME"], str(folder), os.environ).project_trust


@pytest.mark.parametrize("spelling", ["", ".", "../p/", "{tmp}/link/p", "{tmp}/real/./p", "{tmp}/real/p/sub/.."])
def test_every_spelling_is_kept_under_one_key(run: Run, project: Path, tmp_path: Path, spelling: str) -> None:
    """P-AP-23"""
    args = [spelling.format(tmp=tmp_path)] if spelling else []
    assert run(*args)[0] == 0
    kept = tomllib.loads((tmp_path / "home" / "config.toml").read_text())
    assert kept == {"projects": {str(project): {"trust_level": "trusted"}}}
    for inside in (project, project / "sub", tmp_path / "link" / "p", f"{project}/"):
        assert level(inside) == "trusted"
    for outside in (tmp_path / "real" / "p2", tmp_path / "real"):
        assert level(outside) == "unknown"


def test_there_are_three_states(run: Run, project: Path) -> None:
    assert level(project) == "unknown"
    assert run("--untrusted")[0] == 0 and level(project) == "untrusted"
    status, out, err = run("--json")
    assert status == 0 and level(project) == "trusted" and "now trusted" in err
    assert json.loads(out) == {"path": str(project), "trust_level": "trusted", "root": str(project)}
    assert json.loads(run("--list", "--json")[1]) == [{"path": str(project), "trust_level": "trusted"}]
    assert run("--forget")[0] == 0 and level(project) == "unknown"
    assert run("--list")[1] == ""
    assert "nothing was said" in run("--forget")[2]


def test_another_spelling_in_the_file_is_changed_not_contradicted(run: Run, project: Path, tmp_path: Path) -> None:
    """P-AP-23"""
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / "config.toml"
    file.write_text(f'[projects."{tmp_path}/link/p/"] # by hand\ntrust_level = "untrusted"\n')
    assert run()[0] == 0 and level(project) == "trusted"
    assert file.read_text() == f'[projects."{tmp_path}/link/p/"] # by hand\ntrust_level = "trusted"\n'
    assert run("--forget")[0] == 0 and level(project) == "unknown"


def worktree(repository: Path, folder: Path) -> None:
    """What `git worktree add` leaves (gitrepository-layout(5))."""
    administration = repository / ".git" / "worktrees" / "w"
    administration.mkdir(parents=True)
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {administration}\n")
    (administration / "gitdir").write_text(f"{folder}/.git\n")
    (administration / "commondir").write_text("../..\n")


def test_a_worktree_is_its_repository(run: Run, project: Path, tmp_path: Path) -> None:
    """P-AP-23"""
    tree = tmp_path / "w"
    worktree(project, tree)
    status, out, err = run("--json", str(tree))
    assert status == 0 and json.loads(out)["path"] == str(project) and "git worktree of" in err
    assert level(tree) == level(project) == "trusted"
    assert run("--forget", str(tree))[0] == 0 and level(tree) == level(project) == "unknown"
    # where something nearer says otherwise, the folder asked for is named too
    assert run("--untrusted", str(tmp_path))[0] == 0
    assert run(str(tree))[0] == 0 and level(tree) == "trusted"


def test_a_link_to_a_folder_and_what_it_leads_to_are_one(run: Run, project: Path, tmp_path: Path) -> None:
    """P-AP-23"""
    assert run("--untrusted", str(tmp_path / "link"))[0] == 0
    assert level(project) == "untrusted", "what lies below inherits"
    assert run(str(tmp_path / "link" / "p"))[0] == 0
    assert (level(project), level(project.parent)) == ("trusted", "untrusted")
    status, _, err = run("--forget")
    assert status == 0 and level(project) == "untrusted" and "above it makes it untrusted" in err


def test_what_a_refusal_advises_trusts_the_project(run: Run, project: Path) -> None:
    """The round trip: an untrusted hook is denied, the command it names is run, and it is allowed."""
    question = ("--json", "--kind", "hook", "--", "ls")
    status, out, _ = run(*question, command=check.main)
    assert (status, json.loads(out)["gate"]) == (20, "hook-trust")
    advice = json.loads(out)["reasons"][-1]["sentence"].split("`")[1]
    assert shlex.split(advice) == ["doorward", "trust", str(project)]
    assert run(*shlex.split(advice)[2:])[0] == 0
    assert run(*question, command=check.main)[0] == 0
    assert run("--untrusted")[0] == 0
    status, out, _ = run("--json", "-a", "never", "--", "touch", "a", command=check.main)
    assert (status, json.loads(out)["gate"]) == (10, "trust")
    advice = json.loads(out)["reasons"][-1]["sentence"].split("`")[1]
    assert run(*shlex.split(advice)[2:])[0] == 0
    assert run("--json", "-a", "never", "--", "touch", "a", command=check.main)[0] == 0


def test_a_projects_file_that_starts_to_count_is_named(run: Run, project: Path) -> None:
    (project / ".doorward").mkdir()
    (project / ".doorward" / "config.toml").write_text("")
    assert f"from now on {project}/.doorward/config.toml counts" in run()[2]


@pytest.mark.parametrize(
    "args", [("/",), ("/etc",), ("gone",), ("a", "b"), ("--forget", "--untrusted"), ("--list", ".")]
)
def test_what_cannot_be_trusted_is_refused(run: Run, tmp_path: Path, args: tuple[str, ...]) -> None:
    assert run(*args)[0] == 2
    assert not (tmp_path / "home").exists()


def test_what_is_gone_can_be_forgotten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    assert run(str(tmp_path / "gone"))[0] == 0
    (tmp_path / "gone").rmdir()
    assert run("--forget", str(tmp_path / "gone"))[0] == 0
    assert json.loads(run("--list", "--json")[1]) == []

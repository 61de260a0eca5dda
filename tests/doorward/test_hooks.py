"""Hooks in the configuration, and the hash that stands for one."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.commands import check, trust
from doorward.commands.dispatch import guarded
from doorward.configuration import Configuration, load
from doorward.configuration_error import ConfigurationError
from doorward.hooks import hook_files, hook_hash, hooks_of

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "p"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    script = folder / "check.sh"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
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


def configured(project: Path, text: str) -> Configuration:
    home = project.parent / "home"
    (home / "config.toml").write_text(text)
    return load(str(home), str(project), os.environ, system=str(home / "none"))


def test_hooks_of_all_layers_run_one_after_the_other(project: Path) -> None:
    (project / ".doorward").mkdir()
    (project / ".doorward" / "config.toml").write_text('[[hooks.before_exec]]\ncommand = ["./check.sh"]\n')
    mine = '[[hooks.before_exec]]\ncommand = ["true"]\ntimeout = 2\n'
    configuration = configured(project, mine)
    assert [hook.command for hook in hooks_of(configuration, "before_exec")] == [("true",)]
    assert configuration.has_hooks()
    trusted = f'{mine}[projects."{project}"]\ntrust_level = "trusted"\n'
    first, second = hooks_of(configured(project, trusted), "before_exec")
    assert (first.timeout_s, first.where) == (2.0, "config.toml:1")
    assert (second.command, second.timeout_s, second.where) == (("./check.sh",), 30.0, ".doorward/config.toml:1")
    assert not configured(project, "").has_hooks()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[hooks.before_exec]]\ncommand = "x"\n', 'write \\["x"\\]'),
        ("[[hooks.before_exec]]\ntimeout = 1\n", "must be a command"),
        ('[[hooks.before_exec]]\ncommand = ["x"]\ntimeout = -1\n', "positive number of seconds"),
        ('[[hooks.before_exec]]\ncommand = ["x"]\nwhen = 1\n', "when means nothing in a hook"),
        ('[[hooks.before_run]]\ncommand = ["x"]\n', "there is no such key"),
        ('hooks.before_exec = ["x"]\n', "a hook is a table"),
        ('hooks.trusted = ["abc"]\n', "no hash of a hook"),
    ],
)
def test_a_hook_that_is_none_is_a_mistake(project: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        configured(project, text)


def test_a_project_cannot_trust_its_own_hooks(project: Path) -> None:
    (project / ".doorward").mkdir()
    (project / ".doorward" / "config.toml").write_text(f'hooks.trusted = ["sha256:{"0" * 64}"]\n')
    with pytest.raises(ConfigurationError, match="can say which hooks are trusted"):
        configured(project, f'[projects."{project}"]\ntrust_level = "trusted"\n')


def test_the_hash_is_of_the_words_and_of_what_they_name(project: Path) -> None:
    env = {"PATH": f"{project}:/usr/bin:/bin"}
    (project / "rules.json").write_text("{}")
    commands = [("./check.sh",), ("./check.sh", "a"), ("./check.sh", "rules.json"), ("sh", "./check.sh"), ("check.sh",)]
    before = [hook_hash(command, str(project), env) for command in commands]
    assert len(set(before)) == len(commands) and before == [hook_hash(each, str(project), env) for each in commands]
    (project / "rules.json").write_text("{ }")
    after = [hook_hash(command, str(project), env) for command in commands]
    assert [one != other for one, other in zip(before, after, strict=True)] == [False, False, True, False, False]
    (project / "check.sh").write_text("#!/bin/sh\nexit 1\n")
    changed = [hook_hash(command, str(project), env) for command in commands]
    assert all(one != other for one, other in zip(before, changed, strict=True))


def test_the_systems_own_programs_are_not_part_of_it(project: Path) -> None:
    assert hook_files(("sh", "-c", "true"), str(project), {"PATH": "/usr/bin:/bin"}) == []
    assert hook_files(("sh", "check.sh"), str(project), {"PATH": "/usr/bin:/bin"}) == [str(project / "check.sh")]


def test_trust_shows_each_hook_and_keeps_its_hash(run: Run, project: Path) -> None:
    configured(project, '# mine\n[[hooks.on_refusal]]\ncommand = ["./check.sh", "x"]\n')
    question = ("--json", "--kind", "hook", "--", "./check.sh", "x")
    assert run(*question, command=check.main)[0] == 20
    assert run(*question[:-1], "y", "--dangerously-bypass-hook-trust", command=check.main)[0] == 20, "words of the hook"
    assert run("--dangerously-bypass-hook-trust", *question, command=check.main)[0] == 0
    status, out, err = run("--hooks", "--json")
    assert status == 0 and "on_refusal: ./check.sh x" in err and f"as {project}/check.sh is now" in err
    (row,) = json.loads(out)
    text = (project.parent / "home" / "config.toml").read_text()
    assert tomllib.loads(text)["hooks"]["trusted"] == [row["hash"]] and text.startswith("# mine\n")
    status, out, _ = run(*question, command=check.main)
    assert status == 0 and json.loads(out)["reasons"][0]["switch"] == "trusted hook"
    assert "trusted already" in run("--hooks")[2]
    (project / "check.sh").write_text("#!/bin/sh\nrm -rf /\n")
    assert run(*question, command=check.main)[0] == 20, "what has changed is not what was trusted"


def test_where_there_is_no_hook_nothing_is_trusted(run: Run, project: Path) -> None:
    status, out, err = run("--hooks", "--json")
    assert (status, out) == (0, "[]\n") and "no hook" in err
    assert not (project.parent / "home" / "config.toml").exists()

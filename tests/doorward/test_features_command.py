"""`doorward features`: the switches shown and turned, in the person's own file."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.commands import check, features
from doorward.commands.dispatch import guarded

Run = Callable[..., tuple[int, str, str]]
GUARDIAN = "guardian_approval"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*args: str, command: Callable[[list[str]], int] = features.main) -> tuple[int, str, str]:
        status = guarded(command, list(args))
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def listed(run: Run) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in json.loads(run("list", "--json")[1])}


def test_the_list_has_every_feature_with_its_stage(run: Run) -> None:
    assert listed(run)[GUARDIAN] == {
        "name": GUARDIAN,
        "stage": "stable",
        "enabled": False,
        "default": False,
        "source": "built-in",
        "summary": "a second look at risky actions: they are asked about, or put to the reviewer",
    }
    status, out, _ = run()
    assert status == 0 and out.startswith(f"{GUARDIAN}  off  stable")


def test_enable_and_disable_edit_the_file_in_place(run: Run, home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("# mine\n[features] # mine too\n\n[network]\nallow = []\n")
    status, out, err = run("enable", GUARDIAN)
    assert (status, out) == (0, "") and f"{GUARDIAN} is now on" in err
    text = (home / "config.toml").read_text()
    assert text == f"# mine\n[features] # mine too\n{GUARDIAN} = true\n\n[network]\nallow = []\n"
    assert listed(run)[GUARDIAN]["enabled"] is True and listed(run)[GUARDIAN]["source"] == "config.toml:3"
    status, out, _ = run("disable", "--json", GUARDIAN)
    assert status == 0 and json.loads(out)["enabled"] is False
    assert (home / "config.toml").read_text() == text.replace("true", "false")
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600


def test_a_misspelt_feature_is_named_with_its_nearest_spelling(run: Run, home: Path) -> None:
    """P-AP-24"""
    status, _, err = run("enable", "gaurdian_approval")
    assert status == 2 and f"did you mean {GUARDIAN}?" in err and not home.exists()


def test_a_former_name_turns_the_present_switch_and_says_so(run: Run) -> None:
    """P-AP-24"""
    status, _, err = run("enable", "smart_approvals")
    assert status == 0 and f"smart_approvals is now called {GUARDIAN}" in err
    assert listed(run)[GUARDIAN]["enabled"] is True


def test_what_a_refusal_advises_turns_the_feature_on(run: Run, home: Path) -> None:
    """The round trip: a feature that is off denies, the command it names is run, and it is allowed."""
    for feature in (GUARDIAN, "web_search"):
        question = ("--json", "--needs-feature", feature, "--", "ls")
        status, out, _ = run(*question, command=check.main)
        verdict = json.loads(out)
        assert (status, verdict["gate"]) == (20, "feature")
        advice = verdict["reasons"][-1]["sentence"].split("`")[1]
        assert advice.startswith(f"doorward features enable {feature}")
        assert run(*shlex.split(advice)[2:])[0] == 0
        assert run(*question, command=check.main)[0] == 0
    assert tomllib.loads((home / "config.toml").read_text())["feature_stages"] == {"web_search": "experimental"}


def test_an_applications_own_feature_is_registered_with_its_stage(run: Run) -> None:
    assert run("enable", "mine")[0] == 2
    assert run("enable", "mine", "--stage", "under development")[0] == 0
    assert listed(run)["mine"]["stage"] == "under development" and listed(run)["mine"]["enabled"] is True
    assert run("disable", "mine")[0] == 0
    assert listed(run)["mine"]["enabled"] is False
    assert run("enable", GUARDIAN, "--stage", "stable")[0] == 2
    assert run("enable", "mine", "--stage", "beta")[0] == 2
    assert run("enable", "gone", "--stage", "removed")[0] == 2


@pytest.mark.parametrize("args", [("enable",), ("enable", "a", "b"), ("list", "a"), ("toggle", "a"), ("list", "--all")])
def test_what_makes_no_sense_is_said_to(run: Run, args: tuple[str, ...]) -> None:
    assert run(*args)[0] == 2


def test_a_file_that_cannot_be_edited_stays_as_it_is(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("features = \n")
    status, _, err = run("enable", GUARDIAN)
    assert status == 2 and "not valid TOML" in err
    assert (home / "config.toml").read_text() == "features = \n"

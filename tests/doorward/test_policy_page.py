"""docs/policy.md is true: its rules are read, its command lines are run, its tables name what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from doorward.__main__ import main
from doorward.gates import shell_script, unfolding
from doorward.gates.action import Action
from doorward.gates.known_commands import WRAPPERS
from doorward.gates.unfolding import unfold
from doorward.policy_loading import policy_from
from doorward.policy_worker import MEMORY, SECONDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "policy.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's rules as `team.rules` in a folder that is the workspace, with a home of its own."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    file = workspace / "team.rules"
    file.write_text(blocks("starlark")[0])
    return file


def test_the_rules_are_rules(rules: Path) -> None:
    policy = policy_from([str(rules)], None)
    assert set(policy.programs) == {"git", "pytest", "ruff", "mypy"}
    assert [rule.host for rule in policy.network] == ["api.example.com"]


def test_every_command_line_prints_what_stands_below_it(rules: Path, capfd: pytest.CaptureFixture[str]) -> None:
    checked = 0
    for block in blocks("console"):
        for example in block.removeprefix("$ ").split("\n$ "):
            line, _, expected = example.partition("\n")
            words = shlex.split(line)
            assert words.pop(0) == "doorward"
            main(words)
            assert capfd.readouterr().out.startswith(expected), line
            checked += 1
    assert checked == 3


def test_the_wrappers_named_are_in_the_table() -> None:
    (row,) = (line for line in PAGE.splitlines() if "the command they start" in line)
    named = {word.split()[0] for word in re.findall(r"`([^`]+)`", row)} - {"find"}
    assert named <= WRAPPERS.keys()
    assert len(named) > 10


@pytest.mark.parametrize(
    "script",
    ["(a); { a; }; ! a", "if a; then a; fi; while a; do a; done; for x in 1; do a; done; case x in y) a;; esac",
     "f() { a; }", "$(a) <(a); x=$(a) ${x:-$(a)}", "eval 'a'; trap 'a' EXIT; sh <<'E'\na\nE\nbash <<< 'a'"],
)  # fmt: skip
def test_what_is_said_to_be_judged_is(script: str) -> None:
    words = [part.words for part in unfold(Action("shell", ("sh", "-c", script), "/", {}))]
    assert words.count(("a",)) >= 1


def test_the_bounds_are_those_of_the_code() -> None:
    for text in (
        f"more than {shell_script.LONGEST >> 10} KiB, {unfolding.MOST_PARTS} commands, {unfolding.DEEPEST} wrappers",
        f"at most {MEMORY >> 20} MiB and {SECONDS:g} s",
        f"{shell_script._DEEPEST_NODE} levels",
    ):
        assert text in PAGE

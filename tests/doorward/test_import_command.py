"""`doorward import`: prints, and writes only when told to; what it writes is configuration that loads."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.commands.dispatch import guarded
from doorward.configuration import load

Run = Callable[..., tuple[int, str, str]]
SRT = {
    "network": {"allowedDomains": ["a.test", "b.test"], "allowAllUnixSockets": True},
    "filesystem": {"denyRead": ["~/.ssh"]},
}
FENCE = """{
  // what may be reached
  "network": {"allowedDomains": ["a.test",]},
  "command": {"deny": ["git push"]}
}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    (tmp_path / "srt.json").write_text(json.dumps(SRT))
    (tmp_path / "fence.json").write_text(FENCE)
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    command = __import__("doorward.commands.import", fromlist=["main"]).main

    def call(*args: str) -> tuple[int, str, str]:
        status = guarded(command, list(args))
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def test_it_prints_what_loads_and_names_what_has_no_equivalent(run: Run, home: Path, tmp_path: Path) -> None:
    status, out, err = run("srt", str(tmp_path / "srt.json"))
    assert status == 0 and "no equivalent: network.allowAllUnixSockets" in err
    assert tomllib.loads(out)["network"]["allow"] == ["a.test", "b.test"]
    assert not home.exists()


def test_comments_and_trailing_commas_are_read_and_commands_become_rules(run: Run, tmp_path: Path) -> None:
    _, out, _ = run("--json", "fence", str(tmp_path / "fence.json"))
    document = json.loads(out)
    assert document["configuration"] == {"network": {"allow": ["a.test"]}}
    assert document["rules"] == ['prefix_rule(pattern = ["git", "push"], decision = "forbidden")']


def test_written_twice_it_adds_nothing_and_changes_nothing_that_is_set(run: Run, home: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('# mine\nsandbox_mode = "workspace-write"  # on purpose\n')
    (tmp_path / "codex.toml").write_text('sandbox_mode = "danger-full-access"\napproval_policy = "never"\n')
    assert run("--write", "srt", str(tmp_path / "srt.json"))[0] == 0
    assert run("--write", "codex", str(tmp_path / "codex.toml"))[0] == 0
    assert run("--write", "fence", str(tmp_path / "fence.json"))[0] == 0
    text = (home / "config.toml").read_text()
    assert '# mine\nsandbox_mode = "workspace-write"  # on purpose\n' in text
    assert run("--write", "srt", str(tmp_path / "srt.json"))[0] == 0
    assert (home / "config.toml").read_text() == text
    assert (
        home / "rules" / "fence.rules"
    ).read_text() == 'prefix_rule(pattern = ["git", "push"], decision = "forbidden")\n'
    loaded = load(home=str(home), cwd=str(tmp_path / "project"), env={"HOME": "/home/x"})
    assert loaded.text("approval_policy") == "never" and loaded.text("sandbox_mode") == "workspace-write"
    assert [entry for entry, _ in loaded.entries("network.allow")] == ["a.test", "b.test"]


@pytest.mark.parametrize(
    ("args", "content", "said"),
    [
        ((), "", "name a tool"),
        (("docker", "f"), "", "name a tool"),
        (("srt", "nowhere.json"), "", "cannot read"),
        (("srt", "f"), "{", "not valid JSON"),
        (("srt", "f"), "[]", "no table"),
        (("codex", "f"), "= 1", "not valid TOML"),
        (("srt", "f"), "[" * 100_000, "not valid JSON"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, args: tuple[str, ...], content: str, said: str) -> None:
    Path("f").write_text(content)
    status, out, err = run(*args)
    assert (status, out) == (2, "") and said in err and "Traceback" not in err

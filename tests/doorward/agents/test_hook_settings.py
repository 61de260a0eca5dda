"""doorward's hooks in an agent's settings: everything else stays, and the undo is exact."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from doorward.agents.hook_settings import UnusableSettings, command_of, is_ours, with_hooks, without_hooks, words_in
from doorward.commands.dispatch import guarded
from doorward.commands.hook import main

WORDS = ["/opt/door ward/bin/doorward", "hook", "claude-code", "--allow=@npm"]
THEIRS = """{
    "zeta": 1,
    "hooks": {
        "PreToolUse": [ {"matcher": "Bash", "hooks": [ {"type": "command", "command": "lint"} ] } ]
    },
    "alpha": "ü"
}
"""


def test_other_hooks_keys_order_and_indentation_stay() -> None:
    text = with_hooks(THEIRS, "claude-code", WORDS)
    document = json.loads(text)
    assert list(document) == ["zeta", "hooks", "alpha"]
    assert document["hooks"]["PreToolUse"][0] == {"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}
    assert document["hooks"]["PreToolUse"][1]["matcher"] == "*"
    assert '\n    "zeta"' in text
    assert '"ü"' in text


def test_twice_is_once_and_new_options_replace_the_old() -> None:
    once = with_hooks(THEIRS, "claude-code", WORDS)
    assert with_hooks(once, "claude-code", WORDS) == once
    assert words_in(with_hooks(once, "claude-code", [*WORDS[:3], "-s", "read-only"]), "claude-code")[3:] == [
        "-s", "read-only"
    ]  # fmt: skip


def test_what_a_hook_had_no_answer_to_does_not_pass_and_failed_commands_are_heard_of() -> None:
    """`onFailure` is Claude Code's alone; what does not exit 0 comes to an event of its own there."""
    hooks = json.loads(with_hooks("", "claude-code", WORDS))["hooks"]
    assert hooks["PreToolUse"][0]["hooks"][0]["onFailure"] == "block"
    assert hooks["PostToolUseFailure"][0]["matcher"] == hooks["PostToolUse"][0]["matcher"]
    assert "onFailure" not in hooks["PostToolUse"][0]["hooks"][0]
    assert "onFailure" not in with_hooks("", "codex", ["doorward", "hook", "codex"])


def test_taken_out_again_nothing_of_it_is_left() -> None:
    assert json.loads(without_hooks(with_hooks(THEIRS, "claude-code", WORDS), "claude-code")) == json.loads(THEIRS)
    assert json.loads(without_hooks(with_hooks("", "codex", ["doorward", "hook", "codex"]), "codex")) == {}


def test_the_agents_are_told_apart() -> None:
    command = command_of(["python", "-m", "doorward", "hook", "codex"], guards=True)
    assert is_ours("codex", command)
    assert not is_ours("claude-code", command)
    assert not is_ours("codex", "my-doorward-hook codex")


def test_a_doorward_that_is_gone_blocks(tmp_path: Path) -> None:
    """Both agents let pass what a failed hook said nothing about, unless it exits 2."""
    gone = command_of([str(tmp_path / "doorward"), "hook", "codex"], guards=True)
    done = subprocess.run(["sh", "-c", gone], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2
    assert "nothing runs" in done.stderr


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', '{"hooks": {"PreToolUse": [{"hooks": 1}]}}',
     '{"a": 1, "a": 2}', '{"a": 1} // why'],
)  # fmt: skip
def test_settings_that_are_not_valid_are_refused(text: str) -> None:
    with pytest.raises(UnusableSettings):
        with_hooks(text, "claude-code", WORDS)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "p"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def test_the_undo_is_byte_for_byte(project: Path) -> None:
    settings = project / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text(THEIRS)
    settings.chmod(0o640)
    assert guarded(main, ["install", "claude-code", "--project", "--allow", "b.test"]) == 0
    assert words_in(settings.read_text(), "claude-code")[-1] == "--allow=b.test"
    assert settings.stat().st_mode & 0o777 == 0o640
    assert guarded(main, ["install", "claude-code", "--project", "-s", "read-only"]) == 0
    assert guarded(main, ["uninstall", "claude-code", "--project"]) == 0
    assert settings.read_text() == THEIRS
    assert os.listdir(settings.parent) == [settings.name]


def test_a_file_that_was_not_there_goes_again(project: Path) -> None:
    assert guarded(main, ["install", "codex", "--user"]) == 0
    file = project.parent / ".codex" / "hooks.json"
    assert set(json.loads(file.read_text())["hooks"]) == {"PreToolUse", "PostToolUse", "UserPromptSubmit"}
    assert guarded(main, ["uninstall", "codex"]) == 0
    assert os.listdir(file.parent) == []


def test_what_was_changed_since_is_kept(project: Path) -> None:
    settings = project / ".codex" / "hooks.json"
    guarded(main, ["install", "codex", "--project"])
    document = json.loads(settings.read_text())
    document["hooks"]["Stop"] = [{"hooks": [{"type": "command", "command": "bell"}]}]
    settings.write_text(json.dumps(document))
    assert guarded(main, ["uninstall", "codex", "--project"]) == 0
    assert json.loads(settings.read_text()) == {"hooks": {"Stop": document["hooks"]["Stop"]}}


def test_a_dry_run_shows_and_changes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main, ["install", "claude-code", "--dry-run"]) == 0
    assert '+    "PreToolUse": [' in capsys.readouterr().out
    assert not (project.parent / ".claude").exists()


def test_what_stands_beside_it_and_what_would_never_run_is_told(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = project / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text(THEIRS)
    assert guarded(main, ["install", "claude-code", "--project", "--allow", "*.com"]) == 2
    assert settings.read_text() == THEIRS
    assert guarded(main, ["install", "claude-code", "--project", "--allow", "@npm"]) == 0
    assert "another hook stands before tools: lint" in capsys.readouterr().err


def test_a_workspace_is_named_in_full(project: Path) -> None:
    (project / "sub").mkdir()
    assert guarded(main, ["install", "codex", "-C", "sub"]) == 0
    written = (project.parent / ".codex" / "hooks.json").read_text()
    assert words_in(written, "codex")[-1] == f"--cd={project}/sub"


def test_what_cannot_be_edited_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = project / ".codex" / "hooks.json"
    settings.parent.mkdir()
    settings.write_text("{,}")
    assert guarded(main, ["install", "codex", "--project"]) == 2
    assert "not valid JSON" in capsys.readouterr().err
    assert settings.read_text() == "{,}"
    assert guarded(main, ["uninstall", "claude-code", "--project"]) == 2
    assert guarded(main, ["install", "codex", "--project", "--user"]) == 2
    assert guarded(main, ["install", "generic"]) == 2

"""`doorward completion`: what a shell offers is what the commands take."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from doorward.__main__ import COMMANDS
from doorward.commands import completion
from doorward.commands.completion import ACTIONS, help_of, read_help
from doorward.commands.dispatch import guarded
from doorward.commands.run_options import RUN_OPTIONS


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert guarded(completion.main, [shell]) == 0
    return capsys.readouterr().out


def test_every_option_of_the_table_is_found_in_the_help() -> None:
    found = read_help(help_of("run"))
    shown = {f"--{option.name}" for option in RUN_OPTIONS if not option.hidden}
    assert shown | {"--help"} == {name for name in found if name[:2] == "--"}
    assert found["-s"] == ("read-only", "workspace-write", "danger-full-access")
    assert found["--allow"] is None and found["--json"] == ()


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_actions_are_those_the_help_names(name: str) -> None:
    text = f"{COMMANDS[name]} {help_of(name)}"
    assert [action for action in ACTIONS[name] if action not in text] == []


def complete(text: str, *words: str) -> list[str]:
    """What bash would offer for the last of `words`."""
    line = " ".join(f"'{word}'" for word in ("doorward", *words))
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _doorward; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", f"{text}\n{ask}"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_actions_options_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    assert complete(text, "") == list(COMMANDS)
    assert complete(text, "una") == ["unarchive"]
    assert complete(text, "features", "en") == ["enable"]
    assert complete(text, "run", "--deny-") == ["--deny-read"]
    assert complete(text, "run", "-s", "w") == ["workspace-write"]
    assert complete(text, "allowlist", "learn", "--wild") == ["--wildcards"]
    assert complete(text, "run", "--allow", "x") == []  # any value: the shell's own completion
    assert complete(text, "run", "--", "--deny-") == []  # the command's words are not ours


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_the_shell_can_read(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    assert all(name in text for name in COMMANDS)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("args", [[], ["tcsh"], ["bash", "zsh"]])
def test_a_shell_must_be_named(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(completion.main, args) == 2 and "bash, zsh, fish" in capsys.readouterr().err

"""A path that was printed, held against the mounts: what is no path of the sandbox's keeping is no hint."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from doorward.hints import Ended
from doorward.kept_from_writing import hint
from doorward.launcher.interface import Mode, SandboxPolicy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the words are those of Linux")

SAYS = "Read-only file system"


@pytest.fixture
def policy(tmp_path: Path) -> SandboxPolicy:
    (tmp_path / "work" / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "work" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for folder in ("objects", "refs"):
        (tmp_path / "work" / ".git" / folder).mkdir()
    return SandboxPolicy(Mode.WORKSPACE_WRITE, str(tmp_path / "work"), str(tmp_path / "home"), str(tmp_path / "cache"))


def said(policy: SandboxPolicy, output: str) -> tuple[str, str] | None:
    found = hint(Ended(("x",), policy.workspace, output), policy)
    return None if found is None else (found.cause, found.remedy)


@pytest.mark.parametrize(
    "line",
    [
        f"sh: 1: cannot create .git/hooks/x: {SAYS}",
        f"cp: cannot create regular file '.git/hooks/x': {SAYS}",
        f"touch: cannot touch \u2018.git/hooks/x\u2019: {SAYS}",
        f"OSError: [Errno 30] {SAYS}: '.git/hooks/x'",
        "Error: EROFS: read-only file system, open '.git/hooks/x'",
        "open .git/hooks/x: read-only file system",
        "mv: cannot move '.git/hooks' to 'h': Device or resource busy",
    ],
)
def test_what_programs_print(policy: SandboxPolicy, line: str) -> None:
    assert said(policy, f"before\n{line}\nafter\n") == (
        "protected_path", f"--add-dir {policy.workspace}/.git/hooks"
    )  # fmt: skip


def test_what_may_be_written_and_what_nobody_could_write_is_no_cause(policy: SandboxPolicy) -> None:
    assert said(policy, f"cannot create '/sys/kernel/x': {SAYS}") in (None, ("protected_path", "--explain-denials"))
    assert said(policy, "umount: 'made.txt': Device or resource busy\n") is None
    assert said(policy, "all is well: '.git/hooks/x'\n") is None


def test_without_a_path_it_is_said_how_to_hear_of_it_unless_it_was_watched(policy: SandboxPolicy) -> None:
    assert said(policy, SAYS) == ("protected_path", "--explain-denials")
    assert said(policy._replace(explain=True), SAYS) is None


@pytest.mark.parametrize("mode", [Mode.DANGER_FULL_ACCESS, Mode.UNCONFINED])
def test_where_nothing_is_kept_nothing_is_said(policy: SandboxPolicy, mode: Mode) -> None:
    assert said(policy._replace(mode=mode), f"cannot create '.git/hooks/x': {SAYS}") is None


def test_what_is_too_long_for_a_name_was_no_path(policy: SandboxPolicy) -> None:
    """Output is the command's to write; a hint stays a line."""
    assert said(policy, f"'/var/tmp/{'a' * 300}': {SAYS}") == ("protected_path", "--explain-denials")


@settings(max_examples=60)
@example("~\0", "'~\0x' ~nobody/\0")
@example("\ud800/", "'\udcff/\ud800'")
@given(st.text(st.characters(codec=None), max_size=40), st.text("'\"`/.~ \0:\udcff", max_size=40))
def test_no_output_is_more_than_it_can_take(before: str, after: str) -> None:
    policy = SandboxPolicy(Mode.WORKSPACE_WRITE, "/usr/share", "/nonexistent/home", "/nonexistent/cache")
    found = hint(Ended(("x",), "/usr/share", f"{before} {SAYS} {after}"), policy)
    assert found is None or len(found.message) < 1000

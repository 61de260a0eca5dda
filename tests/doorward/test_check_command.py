"""`doorward check`: a verdict for a person at once, and for a program as documented."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.commands import check
from doorward.commands.check import table
from doorward.commands.dispatch import guarded
from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))

    def call(*args: str) -> tuple[int, str, str]:
        status = guarded(check.main, list(args))
        told = capsys.readouterr()
        assert not (tmp_path / "home").exists(), "nothing is written"
        return status, told.out, told.err

    return call


def test_the_first_line_is_the_verdict_and_why(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("--", "tee", "/etc/hosts")
    lines = out.splitlines()
    where = f"/etc/hosts is outside the workspace {tmp_path}/project; --add-dir /etc/hosts would open it"
    assert (status, lines[0]) == (20, f"deny: {where}")
    assert lines[2] == "    hook-trust  pass            it is no hook"
    assert [line for line in lines if line.startswith("  >")] == [f"  > sandbox     deny            {where}"]
    assert lines[-2:] == [
        "decided by the gate sandbox, sandbox_mode=workspace-write",
        "to change it: --add-dir /etc/hosts",
    ]


@pytest.mark.parametrize(
    ("args", "status", "word"),
    [
        (("--", "ls"), 0, "allow"),
        (("--", "rm", "-rf", "build"), 10, "ask"),
        (("-a", "never", "--", "rm", "-rf", "build"), 0, "allow"),
        (("-a", "never", "--enable", "guardian_approval", "--", "rm", "-rf", "build"), 10, "ask"),
        (("--add-dir", "/etc/hosts", "--", "tee", "/etc/hosts"), 10, "ask"),
        (("-s", "read-only", "--", "touch", "a"), 20, "deny"),
        (("-s", "read-only", "--network-to", "a.test:443", "--", "ls"), 20, "deny"),
        (("--needs-feature", "guardian_approval", "--", "ls"), 20, "deny"),
        (("--enable", "guardian_approval", "--needs-feature", "guardian_approval", "--", "ls"), 0, "allow"),
        (("--kind", "hook", "--", "ls"), 20, "deny"),
        (("--kind", "hook", "--dangerously-bypass-hook-trust", "--", "ls"), 0, "allow"),
        (("--dangerously-bypass-approvals-and-sandbox", "--", "tee", "/etc/hosts"), 0, "allow"),
    ],
)
def test_the_exit_status_is_the_verdict(run: Run, args: tuple[str, ...], status: int, word: str) -> None:
    found, out, _ = run(*args)
    assert (found, out.partition(":")[0]) == (status, word)
    found, out, _ = run("--json", *args)
    document = json.loads(out)
    assert found == status and list(document) == ["verdict", "gate", "reasons"] and document["verdict"] == word
    assert all(list(reason) == ["gate", "switch", "effect", "sentence"] for reason in document["reasons"])


def test_a_terminal_gets_colours_and_lines_that_fit() -> None:
    dial = Dial("/srv/project", writable_roots=("/data",))
    verdict = resolve(dial, Action("shell", ("rm", "-rf", "/data/\x1b[2J" + "x" * 50), "/srv/project"))
    out = table(verdict, colour=True, width=72)
    assert out.startswith("\x1b[33mask: ")
    bare = out.replace("\x1b[33m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert "\x1b" not in bare, "a name cannot drive the terminal"
    rows = bare.split("\n\n")[1].splitlines()
    assert all(len(row) <= 90 for row in rows) and len(rows) > len(verdict.reasons)
    assert [row[:3] for row in rows].count("  >") == 1

"""`doorward doctor --render`: the other platform's plan for the policy at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from doorward import configuration
from doorward.commands.dispatch import guarded
from doorward.commands.doctor import main


@pytest.fixture
def rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(configuration, "_unread_file", lambda *_: None)

    def call(*args: str) -> tuple[int, str, str]:
        status = guarded(main, list(args))
        seen = capsys.readouterr()
        return status, seen.out, seen.err

    return call


def test_the_profile_and_its_parameters(rendered: Any, tmp_path: Path) -> None:
    status, out, _ = rendered("--render", "macos", "--allow", "a.test", "--", "make", "all")
    assert status == 0
    assert out.startswith("(version 1)\n(deny default)")
    assert f"; -D WRITE_0={tmp_path}/work" in out or f"={tmp_path}/work" in out
    assert "make all" in out.splitlines()[-1]


def test_as_json_it_is_what_would_be_executed(rendered: Any, tmp_path: Path) -> None:
    status, out, _ = rendered("--render=macos", "--json", "-s", "read-only", "--", "make")
    document = json.loads(out)
    assert status == 0
    assert document["platform"] == "macos"
    assert document["argv"][:2] == ["/usr/bin/sandbox-exec", "-p"]
    assert document["argv"][-2:] == ["--", "make"]
    assert document["argv"][2] == document["profile"]
    assert document["enforcement"] == {
        "filesystem": "kernel", "network": "kernel", "process": "kernel", "syscalls": "none"
    }  # fmt: skip
    assert str(tmp_path) not in document["profile"]


def test_a_policy_that_holds_nothing_back(rendered: Any) -> None:
    status, out, _ = rendered("--render", "macos", "--json", "-s", "danger-full-access", "--", "make")
    assert (status, json.loads(out)["profile"]) == (0, None)


def test_what_it_is_not_told_is_said(rendered: Any) -> None:
    status, _, err = rendered("--render", "macos")
    assert status == 2
    assert "no command given" in err
    status, _, err = rendered("--render", "beos", "--", "true")
    assert status == 2
    assert "macos|windows" in err


def test_a_rule_that_cannot_be_held_is_named(rendered: Any) -> None:
    status, _, err = rendered("--render", "macos", "--deny-read", "x" * 3000, "--", "true")
    assert status == 2
    assert "1023" in err


@pytest.mark.parametrize("path", ["/tmp/no-x", "/var/no-y", "/etc/no-z"])
@pytest.mark.parametrize("option", ["--add-dir", "--read-only", "--deny-read"])
@pytest.mark.parametrize("prefix", ["", "/private"])
def test_both_spellings_whether_the_path_exists_here_or_not(
    rendered: Any, path: str, option: str, prefix: str
) -> None:
    """P-PL-02."""
    status, out, _ = rendered("--render", "macos", "--json", option, prefix + path, "--", "true")
    values = set(json.loads(out)["parameters"].values())
    assert status == 0
    assert {path, f"/private{path}"} <= values


@pytest.mark.parametrize("name", ['a"b', "a)(allow default", "a\\b", "a;b", "a\nb", "a\udcffb"])
def test_a_name_cannot_break_out(rendered: Any, tmp_path: Path, name: str) -> None:
    """P-PL-03: the text has as many rules as with a plain name, in the folder's own name and in a rule's."""
    counts = set()
    for each in (name, "plain"):
        (tmp_path / each).mkdir()
        (tmp_path / f"w{each}").mkdir()
        status, out, _ = rendered(
            "--render", "macos", "-C", str(tmp_path / f"w{each}"), "--deny-read", str(tmp_path / each), "--", "true"
        )
        assert status == 0
        counts.add(sum(line.startswith(("(allow", "(deny")) for line in out.splitlines()))
    assert len(counts) == 1


def test_windows(rendered: Any) -> None:
    status, out, _ = rendered("--render", "windows", "--json", "--network", "full", "--", "make", "all")
    document = json.loads(out)
    assert (status, document["platform"], document["refused"]) == (0, "windows", None)
    assert document["token"]["flags"] == "0xd"
    assert document["job"] == {"limits": "0x2400", "ui": "0xff"}
    assert document["enforcement"]["filesystem"] == "kernel"
    assert any(entry["path"].endswith("work") and entry["effect"] == "allow" for entry in document["entries"])
    assert any(path.endswith(".bashrc") for path in document["removed_afterwards"])


def test_windows_says_what_it_would_refuse(rendered: Any) -> None:
    status, out, _ = rendered("--render", "windows", "--", "make")
    assert status == 0
    assert out.startswith("refused: On Windows the network cannot be held")
    status, _, err = rendered("--render", "windows", "--deny-read", "x", "--", "make")
    assert status == 2
    assert "cannot hide" in err

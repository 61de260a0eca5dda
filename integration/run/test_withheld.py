"""What the environment inside lacks: always in the rollout, and said when the command failed; never a value."""

from __future__ import annotations

import os
from typing import Any

SECRET = "correct-horse-battery"
OUTER = {"MY_TOKEN": SECRET, "LD_PRELOAD": "", "EDITOR": "vi"}


def _withheld(doorward: Any, session: str) -> list[str]:
    (started,) = [line["payload"] for line in doorward.lines(session) if line["type"] == "exec"]
    withheld: list[str] = started["withheld"]
    return withheld


def test_names_are_recorded_and_said_when_the_command_failed(doorward: Any) -> None:
    seen = doorward("run", "--name", "failed", "--", "false", env=OUTER)
    assert seen.status == 1
    assert _withheld(doorward, "failed") == ["LD_PRELOAD", "MY_TOKEN"]
    assert "did not get these variables: LD_PRELOAD, MY_TOKEN; --pass-env NAME" in seen.err
    assert SECRET not in seen.err
    for path in doorward.home.rglob("*"):
        if path.is_file() and os.access(path, os.R_OK):  # one mask is for nobody to read
            assert SECRET.encode() not in path.read_bytes(), path


def test_nothing_is_said_when_it_did_not_fail(doorward: Any) -> None:
    seen = doorward("run", "--", "true", env=OUTER)
    assert (seen.status, seen.err) == (0, "")


def test_what_was_passed_by_name_is_not_missed(doorward: Any) -> None:
    seen = doorward("run", "--json", "--pass-env", "MY_TOKEN", "--", "sh", "-c", 'test -n "$MY_TOKEN"', env=OUTER)
    assert seen.status == 0
    assert _withheld(doorward, seen.document["session"]) == ["LD_PRELOAD"]


def test_every_way_to_inherit(doorward: Any) -> None:
    for inherit, visible in (("all", {"EDITOR", "HOME", "LANG"}), ("core", {"HOME", "LANG"}), ("none", set())):
        seen = doorward("run", "--json", "-c", f"env.inherit={inherit}", "--", "/usr/bin/env", env=OUTER)
        names = {line.partition("=")[0] for line in seen.document["output"].splitlines()}
        assert names & {"EDITOR", "HOME", "LANG"} == visible
        assert not names & {"MY_TOKEN", "LD_PRELOAD"}
        assert "http_proxy" in names
        outer = {"EDITOR", "HOME", "LANG", "PATH", "DOORWARD_HOME", "MY_TOKEN", "LD_PRELOAD"}
        assert {*_withheld(doorward, seen.document["session"])} == outer - names


def test_many_names_are_cut_short(doorward: Any) -> None:
    seen = doorward("run", "--", "false", env={f"A{number:02}_TOKEN": "x" for number in range(20)})
    assert "A00_TOKEN, A01_TOKEN" in seen.err
    assert "and 8 more" in seen.err

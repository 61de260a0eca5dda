"""`doorward run` on a platform whose network door cannot work."""

from __future__ import annotations

import sys

import pytest

from doorward.__main__ import main
from doorward.commands import run


@pytest.mark.parametrize("platform", ["win32", "freebsd14"])
def test_it_says_so_and_starts_nothing(
    platform: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forked() -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(run, "ProxyProcess", forked)
    assert run.main(["--", "true"]) == 125
    said = capsys.readouterr().err
    assert platform in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "check", "sessions", "proxy", "doctor"])
def test_on_windows_no_command_gets_further_than_the_sentence(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert main([command, "--", "true"]) == 125
    assert "this is win32" in capsys.readouterr().err
    assert main(["--version"]) == 0


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_where_it_can_work_it_starts(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forked(Exception):
        pass

    def forked() -> None:
        raise Forked

    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(run, "ProxyProcess", forked)
    with pytest.raises(Forked):
        run.main(["--", "true"])

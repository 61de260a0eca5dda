"""`doorward run` on a platform whose network door cannot work."""

from __future__ import annotations

import sys

import pytest

from doorward.commands import run


@pytest.mark.parametrize("platform", ["darwin", "win32", "freebsd14"])
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

"""Who is told that a question waits."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from doorward.notifier import Notifier
from doorward.question import Question

QUESTION = Question("aa11", "shell", ("rm", "x"), "/p", "approval", "2026-01-02T03:04:05.006Z", 300, ("why",))


def test_the_command_gets_the_question(tmp_path: Path) -> None:
    told = Notifier(("sh", "-c", f"cat > {tmp_path}/told"), False, os.environ)
    told.tell(QUESTION)
    told.close()
    assert json.loads((tmp_path / "told").read_text()) == QUESTION.document()
    assert told.problems == []


def test_the_desktop_is_told_through_notify_send(tmp_path: Path) -> None:
    tool = tmp_path / "notify-send"
    tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/told\n')
    tool.chmod(0o755)
    told = Notifier((), True, {"PATH": f"{tmp_path}:{os.defpath}"})
    told.tell(QUESTION)
    told.close()
    assert (tmp_path / "told").read_text().splitlines() == [
        "--app-name=doorward",
        "doorward asks: rm x",
        "doorward approvals allow aa11",
    ]


def test_what_cannot_be_started_is_said_once(tmp_path: Path) -> None:
    told = Notifier(("no-such-notifier",), True, {"PATH": str(tmp_path)})
    told.tell(QUESTION)
    told.tell(QUESTION)
    told.close()
    assert len(told.problems) == 2
    assert "no-such-notifier cannot be started" in told.problems[0]
    assert "notify-send is not installed" in told.problems[1]


def test_nothing_of_it_outlives_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorward.notifier._LAST_SECONDS", 0.01)
    os.mkfifo(tmp_path / "started")
    told = Notifier(("sh", "-c", f"trap '' TERM; echo $$ > {tmp_path}/started; exec sleep 600"), False, os.environ)
    told.tell(QUESTION)
    pid = int((tmp_path / "started").read_text())
    told.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)

"""An external reviewer: one clear yes, and everything else by its own name."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from doorward.gates.review import ReviewStatus
from doorward.guardian_command import ask_command, read_review

ACTION = {"argv": ["rm", "\udcff"], "kind": "shell"}


def review(script: str, tmp_path: Path, seconds: float = 20.0) -> tuple[str, str]:
    found = ask_command((sys.executable, "-c", script), ACTION, seconds, os.environ, str(tmp_path))
    return str(found.status), found.reason


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        ("print('{\"decision\": \"allow\", \"reason\": \"fine\"}')", "allowed", "fine"),
        ("print('{\"decision\": \"deny\", \"reason\": \"no\"}')", "denied", "no"),
        ("print('I think that is fine. allow')", "unreadable", "no JSON object: I think that is fine. allow"),
        ("print('{}')", "unreadable", "not the keys decision and reason: {}"),
        ("print('{\"decision\": \"maybe\", \"reason\": \"\"}')", "unreadable", "an unknown decision"),
        ("pass", "unreadable", "no JSON object: nothing"),
        ("import sys; print('{\"decision\": \"allow\", \"reason\": \"\"}'); sys.exit(1)", "failed", "exit status 1"),
        ("raise SystemExit('no model')", "failed", "exit status 1: no model"),
        ("import os; os.kill(os.getpid(), 9)", "failed", "ended by signal 9"),
        ("while True: print('x' * 9999)", "unreadable", "more than 64 KiB of output"),
    ],
)
def test_only_a_clear_yes_is_one(tmp_path: Path, script: str, status: str, reason: str) -> None:
    """P-AP-22"""
    found = review(script, tmp_path)
    assert found[0] == status and found[1].startswith(reason)


@pytest.mark.parametrize(
    "script",
    [
        "import time; time.sleep(600)",
        "import os, time; os.close(1); time.sleep(600)",
        "import subprocess; subprocess.Popen(['sleep', '600'])",  # its child keeps the pipe open
        "print('{\"decision\": \"allow\", \"reason\": \"\"}', flush=True); import time; time.sleep(600)",
    ],
)
def test_one_that_is_not_done_in_time_is_asked_twice_and_ended(tmp_path: Path, script: str) -> None:
    """P-AP-22"""
    counted = f"open({str(tmp_path / 'asked')!r}, 'a').write('x'); {script}"
    status, reason = review(counted, tmp_path, 0.4)
    assert (status, reason) == ("timed-out", "twice nothing within 0.4 s")
    assert (tmp_path / "asked").read_text() in ("xx", "x", ""), "a slow start may be cut short"


def test_a_second_answer_in_time_counts(tmp_path: Path) -> None:
    flag = str(tmp_path / "flag")
    script = (
        f"import os, time\nif not os.path.exists({flag!r}):\n    open({flag!r}, 'w').close()\n    time.sleep(600)\n"
        "print('{\"decision\": \"allow\", \"reason\": \"at last\"}')"
    )
    (tmp_path / "warm").touch()
    assert review(script, tmp_path, 3.0) == ("allowed", "at last")


def test_it_reads_the_action_on_its_standard_input(tmp_path: Path) -> None:
    script = (
        "import json, sys\naction = json.load(sys.stdin)\n"
        "print(json.dumps({'decision': 'allow', 'reason': repr(action)}))"
    )
    assert review(script, tmp_path) == ("allowed", repr(ACTION))


def test_one_that_is_not_there_has_failed(tmp_path: Path) -> None:
    found = ask_command(("no-such-reviewer",), ACTION, 5, os.environ, str(tmp_path))
    assert found.status is ReviewStatus.FAILED and "cannot be started" in found.reason


@pytest.mark.parametrize(
    "output",
    [
        b'{"decision": "deny", "decision": "allow", "reason": ""}',
        b'{"decision": "allow", "reason": ""} {"decision": "allow", "reason": ""}',
        b'{"decision": "allow"}',
        b'{"decision": "allow", "reason": null}',
        b'{"decision": "ALLOW", "reason": ""}',
        b'{"decision": true, "reason": ""}',
        b'{"decision": "allow", "reason": "", "also": 1}',
        b'["allow"]',
        b'"allow"',
        b'{"decision": "allow", "reason": "\xff"}',
        b"[" * 100_000,
    ],
)
def test_what_is_not_well_formed_is_no_answer(output: bytes) -> None:
    """P-AP-22"""
    assert read_review(output).status is ReviewStatus.UNREADABLE


def test_a_well_formed_answer_may_have_blanks_round_it() -> None:
    assert read_review(b' \n{"reason": "", "decision": "allow"}\n').status is ReviewStatus.ALLOWED
    long = read_review(json.dumps({"decision": "deny", "reason": "x" * 9999}).encode())
    assert long.status is ReviewStatus.DENIED and len(long.reason) == 500

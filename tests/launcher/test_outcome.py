"""From the shim's report to how a run ended."""

import pytest

from doorward.launcher.interface import Outcome, Undone
from doorward.launcher.outcome import Unexplained, exit_code, read_report


def report(status=0, code=None, error=None, undone=()):
    return {"status": status, "exit_code": code, "error": error, "undone": undone, "killed": False}


EXITED_1 = 1 << 8
KILLED = 9

CASES = {
    "the command's own code": (report(7 << 8, 7), Outcome(7)),
    "its own 1 is not bubblewrap's": (report(EXITED_1, 1), Outcome(1)),
    "a signal": (report(143 << 8, 143), Outcome(143, 15)),
    "a code that is no signal": (report(255 << 8, 255), Outcome(255)),
    "the tree was killed": (report(KILLED), Outcome(137, 9)),
    "killed just after it had ended": (report(KILLED, 3), Outcome(3)),
    "a signal before exec": (report(143 << 8), Outcome(143, 15)),
    "bubblewrap gave up": (report(EXITED_1), Unexplained()),
    "bubblewrap gave up at the command": ({**report(EXITED_1), "passed": True}, Unexplained(passed=True)),
    "bubblewrap ended well without the command": (report(0), Unexplained()),
    "a step of ours": (report(EXITED_1, error={"step": "proc", "errno": 1}), Unexplained("proc", 1)),
    "a step of ours before the start": ({"error": {"step": "network", "errno": 13}}, Unexplained("network", 13)),
    "an error nobody foresaw": ({"error": {"step": "shim", "text": "oh"}}, Unexplained("shim", 0, "oh")),
    "nothing at all": ({}, Unexplained("shim")),
}


@pytest.mark.parametrize("case", CASES)
def test_confined(case):
    """P-TT-01, P-TT-02."""
    told, expected = CASES[case]
    assert read_report(told, confined=True) == expected


def test_without_a_sandbox_the_status_is_the_commands():
    assert read_report(report(EXITED_1), confined=False) == Outcome(1)
    assert read_report(report(0), confined=False) == Outcome(0)
    assert read_report(report(15), confined=False) == Outcome(143, 15)


def test_what_was_undone_is_passed_on():
    told = report(0, 0, undone=[["/w/.codex", "removed", ""]])
    assert read_report(told, confined=True).undone == (Undone("/w/.codex", "removed"),)


STATUS = b'{ "child-pid": 7, "net-namespace": 4 }\n'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (STATUS, None),
        (STATUS + b'{ "exit-code": 0 }\n', 0),
        (STATUS + b'{ "exit-code": 255 }\n', 255),
        (b"", None),
        (b"nonsense\n[1]\n", None),
        (b'{ "exit-code": "1" }\n', None),
    ],
)
def test_bubblewraps_status_lines(text, code):
    assert exit_code(text) == code

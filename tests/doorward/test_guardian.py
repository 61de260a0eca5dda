"""The session's reviewer: chosen by the configuration, told the action, silenced by the circuit breaker."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from doorward.configuration import load
from doorward.configuration_error import ConfigurationError
from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve
from doorward.gates.review import Review, ReviewStatus
from doorward.guardian import Guardian, guardian_for
from doorward.sessions.home import Home

ACTION = Action("shell", ("rm", "a"), "/srv/project", writes=("a",), network_to=(("::1", 80),))
RISKS = ("rm deletes for good",)


def guardian(tmp_path: Path, **flags: object) -> Guardian | None:
    home = Home(str(tmp_path / "home"))
    home.ensure()
    named = {f"guardian.{name}": value for name, value in flags.items()}
    configuration = load(home.path, str(tmp_path), {}, flags=named, system=str(tmp_path / "none"))
    return guardian_for(configuration, home, {"PATH": "/usr/bin:/bin"}, {})


def test_without_one_a_person_is_asked(tmp_path: Path) -> None:
    assert guardian(tmp_path) is None


def test_a_command_is_told_the_action(tmp_path: Path) -> None:
    script = f"import sys; open({str(tmp_path / 'told')!r}, 'w').write(sys.stdin.read()); sys.exit(3)"
    made = guardian(tmp_path, command=[sys.executable, "-c", script])
    assert made is not None
    assert made(ACTION, RISKS).status is ReviewStatus.FAILED
    assert json.loads((tmp_path / "told").read_text()) == {
        "kind": "shell",
        "argv": ["rm", "a"],
        "cwd": "/srv/project",
        "writes": ["a"],
        "network_to": ["[::1]:80"],
        "needs_feature": None,
        "risks": list(RISKS),
        "sandbox_mode": "workspace-write",
        "approval_policy": "on-request",
    }
    (record,) = made.take_reviews()
    assert (record["type"], record["by"], record["status"]) == ("review", "guardian.command", "failed")
    assert made.take_reviews() == []


def test_the_rater_needs_nobody(tmp_path: Path) -> None:
    made = guardian(tmp_path, rater=True)
    assert made is not None and made(ACTION, RISKS).status is ReviewStatus.ALLOWED


@pytest.mark.parametrize(
    "flags",
    [
        {"rater": True, "command": ["a"]},
        {"command": ["a"], "endpoint": "https://a.test/v1", "model": "m"},
        {"endpoint": "https://a.test/v1"},
        {"endpoint": "a.test"},
        {"command": "a"},
        {"command": []},
        {"timeout": 0},
    ],
)
def test_a_reviewer_that_is_not_clear_is_a_mistake(tmp_path: Path, flags: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="guardian"):
        guardian(tmp_path, **flags)


def test_after_three_noes_it_is_not_asked_any_more_and_says_so() -> None:
    asked: list[Action] = []

    def ask(action: Action, risks: Sequence[str]) -> Review:
        asked.append(action)
        return Review(ReviewStatus.DENIED, "no")

    made = Guardian("guardian.command", ask)
    dial = Dial("/srv/project", approval_policy="never", features=frozenset({"guardian_approval"}), reviewer=made)
    plain = ACTION._replace(writes=(), network_to=())
    verdicts = [resolve(dial, plain) for _ in range(4)]
    assert [verdict.verdict for verdict in verdicts] == ["deny", "deny", "deny", "ask"]
    assert len(asked) == 3
    assert "is not asked any more: its last 3 answers" in verdicts[3].deciding.sentence
    assert [record["status"] for record in made.take_reviews()] == ["denied"] * 3 + ["stopped"]


def test_what_earlier_processes_of_the_session_saw_counts() -> None:
    made = Guardian("guardian.command", lambda action, risks: Review(ReviewStatus.ALLOWED))
    made.recall(lambda: ["denied", "allowed", "timed-out", "stopped", "denied", "nonsense", "failed"])
    made.recall(lambda: ["allowed"])
    assert made(ACTION, RISKS).status is ReviewStatus.STOPPED

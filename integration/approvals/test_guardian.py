"""The guardian in real runs: a reviewer's yes and no, its failures, an endpoint behind the network rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from origin import HttpOrigin, QuietHandler

RM = ("rm", "-f", "a")
GUARDED = ("-a", "never", "--enable", "guardian_approval")


def reviewer(tmp_path: Path, answer: str) -> tuple[str, str]:
    """The option for a reviewer that runs `answer`."""
    return ("-c", "guardian.command=" + json.dumps([sys.executable, "-c", answer]))


def says(decision: str) -> str:
    return f"print('{{\"decision\": \"{decision}\", \"reason\": \"house rules\"}}')"


def run(doorward: Any, *args: str) -> dict[str, Any]:
    done = doorward("run", "--json", "-c", "approvals.queue=false", *GUARDED, *args)
    return dict(done.document)


def test_a_clear_yes_lets_it_run_and_is_on_record(doorward: Any, tmp_path: Path) -> None:
    seen = run(doorward, *reviewer(tmp_path, says("allow")), "--", *RM)
    assert seen["exit_code"] == 0
    types = [line["payload"].get("type") or line["type"] for line in doorward.lines(seen["session"])]
    assert types.index("review") < types.index("verdict") < types.index("exec")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (says("deny"), "reviewer_denied"),
        ("print('fine by me')", "reviewer_unreadable"),
        ("print('{}')", "reviewer_unreadable"),
        ("raise SystemExit(1)", "reviewer_failed"),
        ("import time; time.sleep(60)", "reviewer_timed_out"),
    ],
)
def test_anything_else_is_no_and_has_its_own_name(doorward: Any, tmp_path: Path, answer: str, reason: str) -> None:
    """P-AP-22"""
    seen = run(doorward, "-c", "guardian.timeout=0.5", *reviewer(tmp_path, answer), "--", *RM)
    assert (seen["success"], seen["exit_code"]) == (True, 126)
    assert [(each["reason"], each["gate"]) for each in seen["refusals"]] == [(reason, "guardian")]


def test_where_somebody_can_answer_a_failing_reviewer_falls_back_to_them(
    doorward: Any, tmp_path: Path, observation: Any
) -> None:
    """P-AP-22"""
    process = doorward.start("run", "--json", *GUARDED, *reviewer(tmp_path, "raise SystemExit(1)"), "--", *RM)
    asked = doorward.question()
    assert asked["gate"] == "guardian" and "the reviewer failed" in asked["why"][0]
    doorward.answer("allow", "--session", asked["id"])
    session = observation(process)["session"]
    # and when the person themself has approved, the guardian steps aside
    seen = run(doorward, *reviewer(tmp_path, says("deny")), "--session", session, "--", *RM)
    assert seen["exit_code"] == 0
    sentences = [reason["sentence"] for reason in seen["verdict"]["reasons"] if reason["gate"] == "guardian"]
    assert sentences == ["a person approved it, so the guardian steps aside"]


def test_after_three_noes_of_a_session_it_is_left_out(doorward: Any, tmp_path: Path) -> None:
    seen = run(doorward, *reviewer(tmp_path, says("deny")), "--", *RM)
    for _ in range(2):
        run(doorward, *reviewer(tmp_path, says("deny")), "--session", seen["session"], "--", *RM)
    fourth = run(doorward, *reviewer(tmp_path, says("allow")), "--session", seen["session"], "--", *RM)
    assert (fourth["exit_code"], fourth["refusals"][0]["reason"]) == (126, "reviewer_stopped")
    assert "is not asked any more" in fourth["refusals"][0]["message"]


class Model:
    """An OpenAI-compatible endpoint that says what it is told to."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str | None, dict[str, Any]]] = []
        self.status = 200
        self.content: object = '{"decision": "allow", "reason": "harmless"}'
        model = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.requests.append((self.path, self.headers["Authorization"], body))
                data = json.dumps({"choices": [{"message": {"content": model.content}}]})
                self.answer(data.encode(), status=model.status)

        self.server = HttpOrigin(Handler)

    @property
    def options(self) -> tuple[str, ...]:
        return (
            *("-c", f"guardian.endpoint=http://model.test:{self.server.port}/v1", "-c", "guardian.model=small"),
            *("-c", "guardian.key_env=MODEL_ACCESS", "-c", 'network.hosts={"model.test" = "127.0.0.1"}'),
        )

    @property
    def allowed(self) -> tuple[str, ...]:
        return ("--allow", f"model.test:{self.server.port}")

@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    yield made
    made.server.close()


def test_a_model_is_asked_with_the_key_which_the_command_does_not_get(doorward: Any, model: Model) -> None:
    doorward.env["MODEL_ACCESS"] = "s3cret"
    seen = run(doorward, *model.options, *model.allowed, "--", "sh", "-c", "echo [$MODEL_ACCESS]")
    assert seen["output"] == "[]\n" and model.requests == [], "nothing risky, nobody asked"
    seen = run(doorward, *model.options, *model.allowed, "--", *RM)
    assert seen["exit_code"] == 0
    ((path, key, body),) = model.requests
    assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer s3cret", "small")
    assert json.loads(body["messages"][1]["content"])["argv"] == list(RM)
    assert "s3cret" not in json.dumps(doorward.lines(seen["session"]))


def test_a_model_that_no_rule_allows_is_not_reached(doorward: Any, model: Model) -> None:
    doorward.env["MODEL_ACCESS"] = "s3cret"
    seen = run(doorward, *model.options, "--", *RM)
    (refusal,) = seen["refusals"]
    assert refusal["reason"] == "reviewer_failed" and "is in no allow rule" in refusal["message"]
    assert model.requests == []


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        ('{"decision": "deny", "reason": "no"}', 200, "reviewer_denied"),
        ("Sure! I would allow that.", 200, "reviewer_unreadable"),
        (None, 200, "reviewer_failed"),
        ('{"decision": "allow", "reason": ""}', 500, "reviewer_failed"),
    ],
)
def test_what_a_model_says_is_judged_as_strictly(
    doorward: Any, model: Model, content: object, status: int, reason: str
) -> None:
    """P-AP-22"""
    doorward.env["MODEL_ACCESS"] = "s3cret"
    model.content, model.status = content, status
    seen = run(doorward, *model.options, *model.allowed, "--", *RM)
    assert seen["refusals"][0]["reason"] == reason


def test_a_key_that_is_not_there_is_a_failure(doorward: Any, model: Model) -> None:
    seen = run(doorward, *model.options, *model.allowed, "--", *RM)
    assert "MODEL_ACCESS is not set" in seen["refusals"][0]["message"] and model.requests == []


def test_check_asks_the_same_reviewer(doorward: Any, tmp_path: Path) -> None:
    for decision, status in (("allow", 0), ("deny", 20)):
        asked = doorward("check", *GUARDED, *reviewer(tmp_path, says(decision)), "--", *RM)
        assert asked.status == status, asked.err

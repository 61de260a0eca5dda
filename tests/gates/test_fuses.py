"""The guardian with and without a reviewer; every way of not saying yes has its own name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from doorward.gates.action import Action
from doorward.gates.answer import Answer, settle
from doorward.gates.approval_key import approval_key
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve
from doorward.gates.review import Review, ReviewStatus
from doorward.gates.verdict import Cause

Shell = Callable[..., Action]


@pytest.fixture
def guarded(dial: Dial) -> Dial:
    return dial._replace(approval_policy="never", features=frozenset({"guardian_approval"}))


def test_the_guardian_looks_only_at_what_is_risky(guarded: Dial, shell: Shell) -> None:
    assert resolve(guarded, shell("touch", "a")).verdict == "allow"
    verdict = resolve(guarded, shell("rm", "a"))
    assert (verdict.verdict, verdict.gate) == ("ask", "guardian")
    assert "rm deletes for good" in verdict.deciding.sentence


@pytest.mark.parametrize(
    ("status", "verdict", "cause"),
    [
        (ReviewStatus.ALLOWED, "allow", Cause.NONE),
        (ReviewStatus.DENIED, "deny", Cause.REVIEWER_DENIED),
        (ReviewStatus.TIMED_OUT, "ask", Cause.REVIEWER_TIMED_OUT),
        (ReviewStatus.UNREADABLE, "ask", Cause.REVIEWER_UNREADABLE),
        (ReviewStatus.FAILED, "ask", Cause.REVIEWER_FAILED),
        ("yes, sure", "ask", Cause.REVIEWER_UNREADABLE),
    ],
)
def test_only_a_clear_yes_of_the_reviewer_lets_it_pass(
    guarded: Dial, shell: Shell, status: ReviewStatus, verdict: str, cause: Cause
) -> None:
    """P-AP-22: none of the failures allows, none is shown as a no; with nobody to ask each is a deny."""
    got = resolve(guarded._replace(reviewer=lambda action, risks: Review(status, "because")), shell("rm", "a"))
    assert (got.verdict, got.deciding.cause) == (verdict, cause)
    if verdict == "ask":
        assert settle(got, Answer.NOBODY, "terminal").verdict == "deny"


def test_a_reviewer_that_breaks_has_not_said_yes(guarded: Dial, shell: Shell) -> None:
    def broken(action: Action, risks: Sequence[str]) -> Review:
        raise RuntimeError("secret detail")

    verdict = resolve(guarded._replace(reviewer=broken), shell("rm", "a"))
    assert (verdict.verdict, verdict.deciding.cause) == ("ask", Cause.REVIEWER_FAILED)
    assert "RuntimeError" in verdict.deciding.sentence and "secret" not in verdict.deciding.sentence


def test_the_reviewer_is_told_the_risks_and_not_asked_where_a_person_is(guarded: Dial, shell: Shell) -> None:
    told: list[Sequence[str]] = []

    def reviewer(action: Action, risks: Sequence[str]) -> Review:
        told.append(risks)
        return Review(ReviewStatus.ALLOWED)

    assert resolve(guarded._replace(reviewer=reviewer), shell("rm", "a")).verdict == "allow"
    assert told == [("rm deletes for good",)]
    assert resolve(guarded._replace(reviewer=reviewer, approval_policy="on-request"), shell("rm", "a")).verdict == "ask"
    assert len(told) == 1


def test_both_fuses_step_aside_for_a_persons_own_approval(guarded: Dial, shell: Shell) -> None:
    action = shell("rm", "a")
    untrusted = guarded._replace(project_trust="untrusted")
    assert resolve(untrusted, action).verdict == "ask"
    approved = untrusted._replace(approvals=frozenset({approval_key(untrusted, action)}))
    assert resolve(approved, action).verdict == "allow"


def test_an_untrusted_project_asks_also_after_the_reviewers_yes(guarded: Dial, shell: Shell) -> None:
    allowing = guarded._replace(reviewer=lambda action, risks: Review(ReviewStatus.ALLOWED), project_trust="untrusted")
    verdict = resolve(allowing, shell("rm", "a"))
    assert (verdict.verdict, verdict.gate, verdict.deciding.cause) == ("ask", "trust", Cause.PROJECT_UNTRUSTED)
    assert verdict.deciding.remedy == "doorward trust /srv/project"

"""What an ask becomes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.answer import Answer, Scope, settle
from doorward.gates.dial import Dial
from doorward.gates.refusal import refusal_of
from doorward.gates.resolver import resolve
from doorward.gates.review import Review, ReviewStatus
from doorward.gates.verdict import Cause

Shell = Callable[..., Action]


def test_nobody_means_no(dial: Dial, shell: Shell) -> None:
    asked = resolve(dial, shell("rm", "-rf", "build"))
    verdict = settle(asked, Answer.NOBODY, "terminal")
    assert (verdict.verdict, verdict.gate, verdict.deciding.cause) == ("deny", "approval", Cause.NOT_ANSWERED)
    assert verdict.deciding.sentence.startswith("ask, and nobody could answer")
    assert verdict.reasons[:-1] == asked.reasons


def test_a_clear_answer_is_the_last_reason(dial: Dial, shell: Shell) -> None:
    asked = resolve(dial, shell("rm", "-rf", "build"))
    assert settle(asked, Answer.YES, "terminal").verdict == "allow"
    no = settle(asked, Answer.NO, "approvals.queue")
    assert (no.verdict, no.deciding.cause, no.deciding.switch) == ("deny", Cause.PERSON_DENIED, "approvals.queue")


def test_only_an_ask_has_an_answer(dial: Dial, shell: Shell) -> None:
    for action in (shell("ls"), shell("tee", "/etc/hosts")):
        with pytest.raises(ValueError, match="nothing was asked"):
            settle(resolve(dial, action), Answer.YES, "terminal")


@pytest.mark.parametrize(("scope", "words"), [(Scope.ONCE, "said yes"), (Scope.SESSION, "for this session")])
def test_how_far_a_yes_reaches_is_said(dial: Dial, shell: Shell, scope: Scope, words: str) -> None:
    asked = resolve(dial, shell("rm", "-rf", "build"))
    assert settle(asked, Answer.YES, "approvals.queue", scope).deciding.sentence.endswith(words)


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (ReviewStatus.TIMED_OUT, Cause.REVIEWER_TIMED_OUT),
        (ReviewStatus.UNREADABLE, Cause.REVIEWER_UNREADABLE),
        (ReviewStatus.FAILED, Cause.REVIEWER_FAILED),
    ],
)
def test_each_way_of_not_reviewing_keeps_its_name_when_nobody_is_there(
    dial: Dial, shell: Shell, status: ReviewStatus, cause: Cause
) -> None:
    """P-AP-22"""
    guarded = dial._replace(
        approval_policy="never",
        features=frozenset({"guardian_approval"}),
        reviewer=lambda action, risks: Review(status),
    )
    asked = resolve(guarded, shell("rm", "-rf", "build"))
    assert asked.verdict == "ask"
    denied = settle(asked, Answer.NOBODY, "approvals")
    assert denied.deciding.cause is cause
    assert refusal_of(denied)["reason"] == str(cause) and refusal_of(denied)["decision"] == "ask"

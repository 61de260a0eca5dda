"""The two fuses behind gate 5: a guardian for risky actions, and distrust of projects. They only ever tighten."""

from __future__ import annotations

from doorward.gates.action import Action
from doorward.gates.dial import Dial, Trust
from doorward.gates.features import GUARDIAN
from doorward.gates.findings import Findings
from doorward.gates.verdict import Cause, Effect, Gate, Reason
from doorward.gates.wording import plain, trusting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.gates.review import Review

_SWITCH = f"features.{GUARDIAN}"
_REMEDY = f"--disable {GUARDIAN}"


def guardian(dial: Dial, action: Action, findings: Findings, so_far: Effect) -> Reason:
    """Turn a risky allow into an ask, or put it to the reviewer. Only the reviewer's clear yes lets it pass; its clear
    no denies; any failure of the reviewer asks a person, and nobody means no (P-AP-22)."""
    if GUARDIAN not in dial.features:
        return Reason(Gate.GUARDIAN, f"{_SWITCH}=false", Effect.PASS, "the guardian is off")
    switch = f"{_SWITCH}=true"
    if findings.approved:
        return Reason(Gate.GUARDIAN, switch, Effect.PASS, "a person approved it, so the guardian steps aside")
    if so_far is not Effect.ALLOW:
        return Reason(Gate.GUARDIAN, switch, Effect.PASS, "a person is asked anyway")
    if not findings.risks:
        return Reason(Gate.GUARDIAN, switch, Effect.PASS, "nothing about it is risky")
    if dial.reviewer is None:
        return Reason(
            Gate.GUARDIAN,
            switch,
            Effect.ASK,
            f"the guardian is on and {findings.risks[0]}; {_REMEDY} would not ask",
            Cause.RISKY,
            _REMEDY,
        )
    from doorward.gates.review import Review, ReviewStatus  # only where a reviewer is asked

    try:
        review = dial.reviewer(action, findings.risks)
    except Exception as error:  # a reviewer that breaks has not said yes
        review = Review(ReviewStatus.FAILED, type(error).__name__)
    return _reviewed(review)


def _reviewed(review: Review) -> Reason:
    from doorward.gates.review import ReviewStatus

    switch = review.by
    because = f": {plain(review.reason)}" if review.reason else ""
    if review.status == ReviewStatus.ALLOWED:
        return Reason(Gate.GUARDIAN, switch, Effect.PASS, f"the reviewer allowed it{because}")
    if review.status == ReviewStatus.DENIED:
        return Reason(
            Gate.GUARDIAN,
            switch,
            Effect.DENY,
            f"the reviewer said no{because}; {_REMEDY} would leave it out",
            Cause.REVIEWER_DENIED,
            _REMEDY,
        )
    cause, what = {
        ReviewStatus.TIMED_OUT: (Cause.REVIEWER_TIMED_OUT, "did not answer in time"),
        ReviewStatus.FAILED: (Cause.REVIEWER_FAILED, "failed"),
        ReviewStatus.UNSURE: (Cause.RISKY, "leaves it to a person"),
        ReviewStatus.STOPPED: (Cause.REVIEWER_STOPPED, "is not asked any more"),
    }.get(review.status, (Cause.REVIEWER_UNREADABLE, "answered with something that is neither yes nor no"))
    return Reason(Gate.GUARDIAN, switch, Effect.ASK, f"the reviewer {what}{because}", cause, _REMEDY)


def trust(dial: Dial, action: Action, findings: Findings, so_far: Effect) -> Reason:
    """In a project marked untrusted, ask before anything that is not known to read only."""
    state = Trust(dial.project_trust)
    switch = f"trust_level={state}"
    if state is not Trust.UNTRUSTED:
        return Reason(Gate.TRUST, switch, Effect.PASS, "the project is not marked untrusted")
    if findings.approved:
        return Reason(Gate.TRUST, switch, Effect.PASS, "a person approved it")
    if so_far is not Effect.ALLOW:
        return Reason(Gate.TRUST, switch, Effect.PASS, "a person is asked anyway")
    if not findings.changes:
        return Reason(Gate.TRUST, switch, Effect.PASS, "it is known to read only")
    remedy = trusting(dial.workspace)
    return Reason(
        Gate.TRUST,
        switch,
        Effect.ASK,
        "the project is marked untrusted, and only what is known to read only runs there unasked; "
        f"`{plain(remedy, 400)}` would change that",
        Cause.PROJECT_UNTRUSTED,
        remedy,
    )

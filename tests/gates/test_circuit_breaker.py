"""When a reviewer is not asked any more."""

from __future__ import annotations

import pytest

from doorward.gates.circuit_breaker import CircuitBreaker
from doorward.gates.review import ReviewStatus

NOES = [ReviewStatus.DENIED, ReviewStatus.TIMED_OUT, ReviewStatus.UNREADABLE, ReviewStatus.FAILED]


def after(*statuses: ReviewStatus) -> str:
    breaker = CircuitBreaker()
    for status in statuses:
        breaker.record(status)
    return breaker.open


@pytest.mark.parametrize("no", NOES)
def test_three_in_a_row_are_enough(no: ReviewStatus) -> None:
    assert after(no, no) == ""
    assert "last 3" in after(no, no, no)
    assert after(no, no, ReviewStatus.ALLOWED, no, no) == ""


def test_ten_of_the_last_fifty_are_enough() -> None:
    yes, no = ReviewStatus.ALLOWED, ReviewStatus.DENIED
    assert after(*[no, yes, yes, yes] * 9) == ""
    assert "10 of its last 40" in after(*[no, yes, yes, yes] * 10)
    assert after(*[no] * 2, *[yes] * 50, *[no, yes] * 9) == "", "what is long ago does not count"


def test_leaving_it_to_a_person_is_no_refusal() -> None:
    assert after(*[ReviewStatus.UNSURE] * 20) == ""

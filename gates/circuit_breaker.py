"""Stops asking a reviewer that says no again and again: either it is broken, or somebody tries until it gives in."""

from __future__ import annotations

from doorward.gates.review import Review, ReviewStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

IN_A_ROW: Final = 3
OF_THE_LAST: Final = 50
IN_THOSE: Final = 10

_COUNTED: Final = (
    ReviewStatus.DENIED,
    ReviewStatus.TIMED_OUT,
    ReviewStatus.UNREADABLE,
    ReviewStatus.FAILED,
)
"""What is a no to the action. Leaving it to a person is none."""


class CircuitBreaker:
    """Counts the reviews of one session."""

    def __init__(self) -> None:
        self._refused: list[bool] = []

    def record(self, status: ReviewStatus) -> None:
        """One more review that took place."""
        self._refused = [*self._refused, status in _COUNTED][-OF_THE_LAST:]

    @property
    def open(self) -> str:
        """Why the reviewer is not asked any more, "" while it is."""
        if len(self._refused) >= IN_A_ROW and all(self._refused[-IN_A_ROW:]):
            return f"its last {IN_A_ROW} answers in this session were no yes"
        if sum(self._refused) >= IN_THOSE:
            return f"{sum(self._refused)} of its last {len(self._refused)} answers in this session were no yes"
        return ""


def stopped(why: str, by: str) -> Review:
    """The review that did not take place."""
    return Review(ReviewStatus.STOPPED, why, by)

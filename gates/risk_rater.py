"""The built-in reviewer: rates a risky action by a table. The same action always gets the same answer.

Points are added up over all that is risky about an action. Few are allowed, since the sandbox holds the action and what
it harms can be made again; many are denied; what lies between is left to a person.
"""

from __future__ import annotations

from doorward.gates.plain_script import unwrapped
from doorward.gates.review import Review, ReviewStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from doorward.gates.action import Action

POINTS: Final = {
    "deletes for good": 2,
    "throws away work that was not committed": 4,
    "rewrites or drops history": 5,
    "opens a connection to another machine": 5,
    "runs text as a command": 6,
    "leaves something that runs later": 6,
    "changes what others use": 7,
    "changes the state of the machine": 8,
    "publishes to others": 8,
    "deletes what others use": 9,
    "changes accounts or who may do what": 9,
    "changes disks or mounts": 9,
    "writes to a device": 9,
    "runs with another user's rights": 9,
    "a file that holds credentials": 9,
    ", outside the workspace": 5,
    ", which is not in the allowlist": 5,
}
"""By how the sentence about a risk ends."""

_UNKNOWN: Final = 5
"""A risk that is not in the table."""

ALLOWED_UP_TO: Final = 3
DENIED_FROM: Final = 8

_TOO_MUCH: Final = ("", ".", "..", "*", "/", "~", ".git", "./", "./*", "../", "~/", "~/*", "/*", "**")
"""What a deletion names when it means everything; a trailing slash makes no difference."""


def rate(action: Action, risks: Sequence[str]) -> Review:
    """Allow, deny or unsure, with the points in the reason."""
    points = sum(_points(risk) for risk in risks)
    words = unwrapped(action.argv)
    if any(risk.endswith("deletes for good") for risk in risks) and any(_is_everything(word) for word in words[1:]):
        points += 4
    reason = f"{points} points: {'; '.join(risks[:3])}"
    if points <= ALLOWED_UP_TO:
        return Review(ReviewStatus.ALLOWED, reason, "guardian.rater")
    if points >= DENIED_FROM:
        return Review(ReviewStatus.DENIED, reason, "guardian.rater")
    return Review(ReviewStatus.UNSURE, reason, "guardian.rater")


def _points(risk: str) -> int:
    return next((points for ending, points in POINTS.items() if risk.endswith(ending)), _UNKNOWN)


def _is_everything(word: str) -> bool:
    return word in _TOO_MUCH or word.rstrip("/") in _TOO_MUCH or word.rstrip("/").endswith(("/..", "/.git", "/*"))

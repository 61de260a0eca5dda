"""What a reviewer can answer. Only one of these is a yes; each way of not saying yes has its own name."""

from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum


class ReviewStatus(StrEnum):
    """How a review ended."""

    ALLOWED = "allowed"
    """A clear, well-formed allow in time."""
    DENIED = "denied"
    """A clear, well-formed deny in time."""
    TIMED_OUT = "timed-out"
    """Nothing within `guardian.timeout`."""
    UNREADABLE = "unreadable"
    """Prose, `{}`, an unknown decision, more than one document."""
    FAILED = "failed"
    """It could not be started, crashed, or exited with a status other than 0."""
    UNSURE = "unsure"
    """It leaves this one to a person (the built-in rater does)."""
    STOPPED = "stopped"
    """It has said no so often that it is not asked any more in this session."""


class Review(NamedTuple):
    """One answer; `reason` is the reviewer's own text (foreign, shown escaped), `by` the setting that names it."""

    status: ReviewStatus
    reason: str = ""
    by: str = "guardian.command"

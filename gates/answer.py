"""How an ask ends: with somebody's yes or no, or with nobody. Nobody means no."""

from doorward.gates.verdict import Cause, Effect, Reason, Verdict
from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum


class Answer(StrEnum):
    """What came back."""

    YES = "yes"
    NO = "no"
    NOBODY = "nobody"
    """There was no one to ask, or no answer in time."""


class Scope(StrEnum):
    """How far a yes reaches."""

    ONCE = "once"
    SESSION = "session"
    """Exactly this action, for as long as the session lasts."""
    ALWAYS = "always"
    """What the rule that is shown says."""


class Reply(NamedTuple):
    """An answer and, for a yes, how far it reaches."""

    answer: Answer
    scope: Scope = Scope.ONCE


_REACH = {Scope.ONCE: "", Scope.SESSION: ", for this session", Scope.ALWAYS: ", for good"}
FAILED_REVIEWS = (
    Cause.REVIEWER_TIMED_OUT,
    Cause.REVIEWER_UNREADABLE,
    Cause.REVIEWER_FAILED,
    Cause.REVIEWER_STOPPED,
)
"""Ways in which a reviewer has said nothing."""


def settle(verdict: Verdict, answer: Answer, channel: str, scope: Scope = Scope.ONCE) -> Verdict:
    """`verdict`, an ask, with its answer as one more reason of the gate that asked: now an allow or a deny.

    `channel` says where the answer was sought, such as "terminal". Raises ValueError for a verdict that asks nothing.
    """
    if verdict.verdict is not Effect.ASK:
        raise ValueError(f"nothing was asked: the verdict is {verdict.verdict}")
    asked = verdict.deciding
    if answer is Answer.YES:
        sentence = f"a person was asked and said yes{_REACH[scope]}"
        reason = Reason(verdict.gate, channel, Effect.ALLOW, sentence, rule=asked.rule)
    else:
        cause = Cause.PERSON_DENIED if answer is Answer.NO else Cause.NOT_ANSWERED
        if answer is Answer.NOBODY and asked.cause in FAILED_REVIEWS:
            cause = asked.cause  # each way of not reviewing has its own name, to the end (P-AP-22)
        what = "a person was asked and said no" if answer is Answer.NO else "ask, and nobody could answer"
        sentence = f"{what}: {asked.sentence}"
        reason = Reason(verdict.gate, channel, Effect.DENY, sentence, cause, asked.remedy, asked.rule)
    return Verdict(reason.effect, verdict.gate, (*verdict.reasons, reason))

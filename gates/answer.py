"""How an ask ends: with somebody's yes or no, or with nobody. Nobody means no."""

from doorward.gates.verdict import Cause, Effect, Reason, Verdict
from doorward.plain_enum import StrEnum


class Answer(StrEnum):
    """What came back."""

    YES = "yes"
    NO = "no"
    NOBODY = "nobody"
    """There was no one to ask, or no answer in time."""


def settle(verdict: Verdict, answer: Answer, channel: str) -> Verdict:
    """`verdict`, an ask, with its answer as one more reason of the gate that asked: now an allow or a deny.

    `channel` says where the answer was sought, such as "terminal". Raises ValueError for a verdict that asks nothing.
    """
    if verdict.verdict is not Effect.ASK:
        raise ValueError(f"nothing was asked: the verdict is {verdict.verdict}")
    asked = verdict.deciding
    if answer is Answer.YES:
        reason = Reason(verdict.gate, channel, Effect.ALLOW, "a person was asked and said yes", rule=asked.rule)
    else:
        cause = Cause.PERSON_DENIED if answer is Answer.NO else Cause.NOT_ANSWERED
        what = "a person was asked and said no" if answer is Answer.NO else "ask, and nobody could answer"
        sentence = f"{what}: {asked.sentence}"
        reason = Reason(verdict.gate, channel, Effect.DENY, sentence, cause, asked.remedy, asked.rule)
    return Verdict(reason.effect, verdict.gate, (*verdict.reasons, reason))

"""The entry a denied run has among its refusals: the keys of a network refusal, so that one reader serves both."""

from doorward.gates.answer import FAILED_REVIEWS
from doorward.gates.verdict import Cause, Effect, Verdict

_UNANSWERED = (Cause.NOT_ANSWERED, *FAILED_REVIEWS)


def refusal_of(verdict: Verdict) -> dict[str, object]:
    """The entry of a verdict that is a deny: the body keys of DESIGN.md §5 in order, then `gate`.

    `decision` is "ask" where somebody had to be asked and nobody answered, else "deny"; `reason` is the cause as a
    word, `message` the sentence, `hint` the option or command that would change it, None where none does. Host, port,
    protocol and method are None. Raises ValueError for a verdict that is not a deny.
    """
    if verdict.verdict is not Effect.DENY:
        raise ValueError(f"nothing was refused: the verdict is {verdict.verdict}")
    reason = verdict.deciding
    return {
        "status": "blocked",
        "host": None,
        "port": None,
        "protocol": None,
        "method": None,
        "decision": "ask" if reason.cause in _UNANSWERED else "deny",
        "reason": str(reason.cause),
        "source": "gates",
        "rule": reason.rule,
        "message": reason.sentence,
        "hint": reason.remedy or None,
        "gate": str(verdict.gate),
    }

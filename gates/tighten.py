"""What a hook makes of a verdict: it can ask or deny where the gates did not, and never the reverse."""

from __future__ import annotations

from doorward.gates.verdict import Cause, Effect, Gate, Reason, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_RANK: Final = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}


def tightened(
    verdict: Verdict, effect: Effect, switch: str, sentence: str, cause: Cause = Cause.NONE, remedy: str = ""
) -> Verdict:
    """`verdict` with one more reason, a hook's: the stricter of the two counts. `effect` is allow, ask or deny."""
    if _RANK[effect] <= _RANK[verdict.verdict]:
        agreed = Reason(Gate.HOOK, switch, Effect.PASS, sentence)
        return Verdict(verdict.verdict, verdict.gate, (*verdict.reasons, agreed))
    reason = Reason(Gate.HOOK, switch, effect, sentence, cause, remedy)
    return Verdict(effect, Gate.HOOK, (*verdict.reasons, reason))

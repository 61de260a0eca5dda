"""What a run that only watches makes of a decision: it lets pass what no rule allows, and the record says why not."""

from doorward.allowlists.decision import Decision, Effect, Reason, Source

WATCHED = frozenset(
    {
        Reason.NOT_ALLOWED,
        Reason.PORT_NOT_ALLOWED,
        Reason.METHOD_NOT_ALLOWED,
        Reason.PATH_NOT_ALLOWED,
        Reason.MITM_REQUIRED,
        Reason.NOT_ANSWERED,
    }
)
"""Refusals for want of a rule. A deny rule, the guard of local addresses and what only the proxy sees stay refusals."""


def observed(decision: Decision) -> Decision:
    """The decision, or for a refusal in WATCHED (or a question) an allow of the mode, its reason kept: an allow whose
    reason is not `allowed` is one that was only observed. A rule that is about other ports opens nothing."""
    if decision.effect is Effect.ALLOW or (decision.effect is Effect.DENY and decision.reason not in WATCHED):
        return decision
    rule = None if decision.reason is Reason.PORT_NOT_ALLOWED else decision.rule
    return decision._replace(effect=Effect.ALLOW, source=Source.MODE_GUARD, rule=rule)


def only_observed(decision: Decision) -> bool:
    """Whether it passes because the run only watches."""
    return decision.effect is Effect.ALLOW and decision.reason is not Reason.ALLOWED

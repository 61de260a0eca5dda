"""Gate 5: does somebody have to be asked."""

from __future__ import annotations

from doorward.gates.action import Action
from doorward.gates.dial import ApprovalPolicy, Dial
from doorward.gates.findings import Findings
from doorward.gates.verdict import Cause, Effect, Gate, Reason
from doorward.gates.wording import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.gates.policy_match import PolicyMatch


def approval(dial: Dial, action: Action, findings: Findings, match: PolicyMatch | None) -> Reason:
    """Allow or ask. In this order: an exact approval of this session, `match` (the strictest policy rule that matched),
    the approval policy."""
    policy = ApprovalPolicy(dial.approval_policy)
    if findings.approved:
        return _allow("session approval", "exactly this was approved before in this session")
    if match is not None and match.decision == "prompt":
        return Reason(
            Gate.APPROVAL,
            f"policy {plain(match.where)}",
            Effect.ASK,
            prompting(match),
            Cause.POLICY_PROMPT,
            rule=match.rule,
        )
    if match is not None and match.covers is not None:
        findings = findings.without(match.covers)
    elif match is not None:
        return _allow(f"policy {plain(match.where)}", f"the policy {rules_at(match)} it", match.rule)
    switch = f"approval_policy={policy}"
    if policy is ApprovalPolicy.NEVER:
        return _allow(switch, "nobody is asked; the sandbox and the proxy hold it")
    if policy is ApprovalPolicy.ON_FAILURE:
        return _allow(switch, "nobody is asked before a door has refused something")
    if findings.risks:
        return _ask(switch, f"it is asked about because {_joined(findings.risks)}", Cause.RISKY)
    if policy is ApprovalPolicy.UNTRUSTED and findings.changes:
        because = findings.knowledge.because or "what it does is not known"
        return _ask(switch, f"only known read-only commands run unasked, and {because}", Cause.NOT_READ_ONLY)
    if policy is ApprovalPolicy.UNTRUSTED:
        return _allow(switch, "it is known to read only")
    return _allow(switch, "nothing about it is risky")


def rules_at(match: PolicyMatch) -> str:
    """Where the rules of an allow stand, with the verb."""
    where = plain(match.where)
    return f"rules at {where} allow" if ", " in where else f"rule at {where} allows"


def prompting(match: PolicyMatch) -> str:
    """Why a person is asked, the rule being what it is."""
    where = plain(match.where)
    because = f": {plain(match.justification)}" if match.justification else ""
    if match.doubt:
        what = f"`{plain(match.command)}`" if match.command else "a part of it"
        return (
            f"whether the policy rule at {where} means {what} cannot be told ({plain(match.doubt)}), "
            f"so a person is asked{because}"
        )
    what = f"about `{plain(match.command)}`" if match.command else ""
    return f"the policy rule at {where} wants a person to be asked {what}".rstrip() + because


def _allow(switch: str, sentence: str, rule: str | None = None) -> Reason:
    return Reason(Gate.APPROVAL, switch, Effect.ALLOW, sentence, rule=rule)


def _ask(switch: str, sentence: str, cause: Cause) -> Reason:
    return Reason(Gate.APPROVAL, switch, Effect.ASK, f"{sentence}; -a never would not ask", cause, "-a never")


def _joined(risks: tuple[str, ...]) -> str:
    shown = ", and ".join(risks[:3])
    return f"{shown}, and {len(risks) - 3} more" if len(risks) > 3 else shown

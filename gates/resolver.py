"""May this action run: every gate in its order, each with a reason, first deny ends it (DESIGN.md §4).

The order: hook trust, feature, policy, bypass, sandbox, approval, then the fuses guardian and trust. This is the one
place that answers the question; `run`, `check`, the library and the hooks all call `resolve`.
"""

from __future__ import annotations

from doorward.gates.action import Action, Kind
from doorward.gates.approval_gate import approval, prompting, rules_at
from doorward.gates.dial import Dial as Dial
from doorward.gates.dial import SandboxMode, Trust
from doorward.gates.findings import findings_of
from doorward.gates.fuses import guardian, trust
from doorward.gates.sandbox_gate import sandbox
from doorward.gates.verdict import Cause, Effect, Gate, Reason, Verdict
from doorward.gates.wording import plain, shell_word, trusting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.gates.policy_match import PolicyMatch


def resolve(dial: Dial, action: Action) -> Verdict:
    """The verdict on `action` with the dial where it stands. Pure, but for what the callables in the dial do.

    Raises ValueError if a setting of the dial or the action's kind is no member of its enum; nothing may run then.
    """
    reasons: list[Reason] = []

    def denied(reason: Reason) -> bool:
        reasons.append(reason)
        return reason.effect is Effect.DENY

    if denied(_hook_trust(dial, action)) or denied(_feature(dial, action)):
        return _verdict(reasons[-1], reasons)
    match = _strictest(dial, action)
    if denied(_policy(match)):
        return _verdict(reasons[-1], reasons)
    reasons.append(_bypass(dial))
    if dial.bypass_approvals_and_sandbox:
        return _verdict(reasons[-1], reasons)
    findings = findings_of(dial, action)
    for reason in sandbox(dial, action, findings):
        if denied(reason):
            return _verdict(reason, reasons)
    deciding = approval(dial, action, findings, match)
    reasons.append(deciding)
    for fuse in (guardian, trust):
        reason = fuse(dial, action, findings, deciding.effect)
        if denied(reason):
            return _verdict(reason, reasons)
        if reason.effect is Effect.ASK:
            deciding = reason
    return _verdict(deciding, reasons)


def _verdict(deciding: Reason, reasons: list[Reason]) -> Verdict:
    return Verdict(deciding.effect, deciding.gate, tuple(reasons))


def _hook_trust(dial: Dial, action: Action) -> Reason:
    """Gate 0: a hook is somebody else's command; it runs only where the person said so."""
    state = Trust(dial.project_trust)
    if Kind(action.kind) is not Kind.HOOK:
        return Reason(Gate.HOOK_TRUST, "kind=shell", Effect.PASS, "it is no hook")
    if dial.bypass_hook_trust:
        return Reason(
            Gate.HOOK_TRUST, "--dangerously-bypass-hook-trust", Effect.PASS, "hook trust is bypassed for this call"
        )
    if state is Trust.TRUSTED:
        return Reason(Gate.HOOK_TRUST, "trust_level=trusted", Effect.PASS, "the project is trusted")
    if action.hook_hash is not None and action.hook_hash in dial.trusted_hooks:
        return Reason(Gate.HOOK_TRUST, "trusted hook", Effect.PASS, "this very hook was trusted before")
    remedy = trusting(dial.workspace)
    return Reason(
        Gate.HOOK_TRUST,
        f"trust_level={state}",
        Effect.DENY,
        "the hook is not trusted: neither its project nor its present content is; "
        f"`{plain(remedy, 400)}` trusts the project, --dangerously-bypass-hook-trust allows this one call",
        Cause.HOOK_NOT_TRUSTED,
        remedy,
    )


def _feature(dial: Dial, action: Action) -> Reason:
    """Gate 1: what needs a feature runs only while it is in effect."""
    name = action.needs_feature
    if name is None:
        return Reason(Gate.FEATURE, "needs_feature", Effect.PASS, "it needs no feature")
    if name in dial.features:
        return Reason(Gate.FEATURE, f"features.{plain(name)}=true", Effect.PASS, f"{plain(name)} is in effect")
    remedy = f"doorward features enable {shell_word(name)}"
    off = "which is off"
    if dial.known_features is not None and name not in dial.known_features:
        remedy, off = f"{remedy} --stage experimental", "which nobody has registered"
    return Reason(
        Gate.FEATURE,
        f"features.{plain(name)}=false",
        Effect.DENY,
        f"it needs the feature {plain(name)}, {off}; `{plain(remedy)}` would turn it on",
        Cause.FEATURE_OFF,
        remedy,
    )


def _strictest(dial: Dial, action: Action) -> PolicyMatch | None:
    matches = dial.policy(action)
    if not matches:
        return None
    from doorward.gates.policy_match import strictest  # only where a rule matches

    return strictest(matches)


def _policy(match: PolicyMatch | None) -> Reason:
    """Gate 2: `forbidden` ends it, whatever else is set; `prompt` and `allow` are carried on to gate 5."""
    if match is None:
        return Reason(Gate.POLICY, "policy", Effect.PASS, "no policy rule matches it")
    where = plain(match.where)
    because = f": {plain(match.justification)}" if match.justification else ""
    what_of = f"`{plain(match.command)}`" if match.command else "it"
    if match.decision == "forbidden":
        return Reason(
            Gate.POLICY,
            f"policy {where}",
            Effect.DENY,
            f"the policy rule at {where} forbids {what_of}{because}"
            + (f" ({plain(match.note)})" if match.note else "")
            + "; no option overrides that, only changing the rule",
            Cause.FORBIDDEN,
            rule=match.rule,
        )
    if match.decision == "prompt":
        return Reason(Gate.POLICY, f"policy {where}", Effect.ASK, prompting(match), rule=match.rule)
    if match.covers is not None:
        sentence = f"the policy {rules_at(match)} a part of it; the rest is judged without a rule"
        return Reason(Gate.POLICY, f"policy {where}", Effect.PASS, sentence, rule=match.rule)
    return Reason(
        Gate.POLICY, f"policy {where}", Effect.ALLOW, f"the policy {rules_at(match)} it{because}", rule=match.rule
    )


def _bypass(dial: Dial) -> Reason:
    """Gate 3: the one switch that skips what follows, the operating system's sandbox included."""
    if dial.bypass_approvals_and_sandbox:
        return Reason(
            Gate.BYPASS,
            "--dangerously-bypass-approvals-and-sandbox",
            Effect.ALLOW,
            "BYPASSED: NO APPROVAL, NO GUARDIAN, NO SANDBOX; the command runs unconfined",
        )
    SandboxMode(dial.sandbox_mode)  # a mode that is none must not reach the gates that compare with it
    return Reason(Gate.BYPASS, "bypass", Effect.PASS, "nothing is bypassed")

"""What the gates and the rollout need of a plan: the dial, and what the log says about the rules of a turn."""

from __future__ import annotations

import os

from doorward.gates.dial import PRIVATE_TEMP, Dial, no_rules, nothing_listed
from doorward.gates.features import GUARDIAN
from doorward.named_tuple import NamedTuple
from doorward.network_settings import host_decider, network_settings
from doorward.plan import Plan
from doorward.programs import which
from doorward.session_log import TurnContext
from doorward.sessions.items import codex_sandbox_policy, policy_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from doorward.gates.action import Action
    from doorward.gates.policy_match import PolicyMatch
    from doorward.gates.policy_rules import Policy
    from doorward.guardian import Guardian


class Judgement(NamedTuple):
    """What every turn of a plan is judged by, and what its records say of that."""

    dial: Dial
    context: TurnContext
    guardian: Guardian | None
    """The dial's reviewer, where one is configured."""


def judgement_of(plan: Plan) -> Judgement:
    """Worked out once for all turns of a session, as the launcher does with the same paths."""
    guardian = guardian_of(plan)
    return Judgement(dial_for(plan)._replace(reviewer=guardian), context_for(plan), guardian)


def dial_for(plan: Plan) -> Dial:
    """Where the dial of autonomy stands for this plan, without its reviewer."""
    configuration, sandbox = plan.configuration, plan.sandbox
    features = configuration.features()
    writable = tuple(os.path.realpath(path) for path in sandbox.write)
    return Dial(
        workspace=sandbox.workspace,
        sandbox_mode=configuration.text("sandbox_mode"),
        approval_policy=configuration.text("approval_policy"),
        writable_roots=writable,
        read_only=_literal(sandbox.read_only, sandbox.workspace),
        hidden=_literal(sandbox.deny_read, sandbox.workspace),
        home=os.path.realpath(plan.home.path),
        network=configuration.optional_text("network.mode"),
        features=frozenset(name for name, on in features.items() if on),
        known_features=frozenset(features),
        project_trust=configuration.project_trust,
        trusted_hooks=frozenset(configuration.strings("hooks.trusted")),
        bypass_approvals_and_sandbox=plan.bypass,
        bypass_hook_trust=plan.bypass_hook_trust,
        canonical=os.path.realpath,
        policy=no_rules if plan.policy is None else _policy_gate(plan.policy, (sandbox.workspace, *writable)),
        locate=which,
        decide_host=host_decider(plan.proxy_settings) if plan.proxied else nothing_listed,
    )


def guardian_of(plan: Plan) -> Guardian | None:
    """The configured reviewer; None where none is, or the feature is off."""
    if not plan.configuration.features()[GUARDIAN]:
        return None
    from doorward.guardian import guardian_for  # only where the guardian is on

    settings = plan.proxy_settings
    if not plan.proxied:  # the rules hold for doorward's own connection, whatever the command's network is
        settings, _ = network_settings(plan.configuration, plan.home, os.environ, plan.policy)
    return guardian_for(plan.configuration, plan.home, os.environ, settings)


def _policy_gate(policy: Policy, writable: Sequence[str]) -> Callable[[Action], Sequence[PolicyMatch]]:
    from doorward.gates.policy_gate import PolicyGate  # only where there are rules

    planted = tuple(os.path.realpath(folder) for folder in (*writable, *PRIVATE_TEMP))
    return PolicyGate(policy, planted, which, os.path.realpath)


def context_for(plan: Plan) -> TurnContext:
    """What the rollout says about the rules a turn of this plan runs under."""
    sandbox = plan.sandbox._asdict()
    sandbox["limits"] = plan.sandbox.limits.set_values()
    if plan.sandbox.user is not None:
        sandbox["user"] = plan.sandbox.user._asdict()
    return TurnContext(
        approval_policy=plan.configuration.text("approval_policy"),
        sandbox_policy=codex_sandbox_policy(
            plan.configuration.text("sandbox_mode"),
            writable_roots=plan.sandbox.write,
            network_access=plan.sandbox.network != "off",
        ),
        settings={
            "network": plan.sandbox.network,
            "rules": plan.proxy_settings,
            "sandbox": sandbox,
            "features": sorted(name for name, on in plan.configuration.features().items() if on),
        },
        digest=policy_digest({"sandbox": sandbox, "bypass": plan.bypass}),
    )


def _literal(entries: Sequence[str], workspace: str) -> tuple[str, ...]:
    """Those the gates can compare with a declared write; what a glob matches is the kernel's to hold."""
    return tuple(
        os.path.realpath(os.path.join(workspace, os.path.expanduser(entry)))
        for entry in entries
        if not any(char in entry for char in "*?[")
    )

"""The whole pipeline: the matrix of the dial, and what every verdict owes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.approval_key import approval_key
from doorward.gates.dial import Dial
from doorward.gates.policy_match import PolicyDecision, PolicyMatch
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Cause, Effect, Gate, Verdict

Shell = Callable[..., Action]


def gates(verdict: Verdict) -> list[Gate]:
    return [reason.gate for reason in verdict.reasons]


def rule(decision: str, where: str = "default.rules:3") -> Callable[[Action], list[PolicyMatch]]:
    return lambda action: [PolicyMatch(PolicyDecision(decision), 'prefix_rule(pattern=["x"])', where, "house rule")]


# the `tee /etc/hosts` trio


def test_a_write_outside_the_workspace_is_denied_by_default(dial: Dial, shell: Shell) -> None:
    verdict = resolve(dial, shell("tee", "/etc/hosts"))
    assert (verdict.verdict, verdict.gate) == ("deny", "sandbox")
    assert verdict.deciding.cause is Cause.WRITE_OUTSIDE
    assert verdict.deciding.remedy == "--add-dir /etc/hosts", "a whole system folder is never opened"
    assert verdict.deciding.switch == "sandbox_mode=workspace-write"


def test_the_remedy_of_that_deny_leads_to_a_question(dial: Dial, shell: Shell) -> None:
    for added in ("/etc/hosts", "/etc"):
        verdict = resolve(dial._replace(writable_roots=(added,)), shell("tee", "/etc/hosts"))
        assert (verdict.verdict, verdict.gate) == ("ask", "approval")
        assert "outside the workspace" in verdict.deciding.sentence


def test_and_under_never_it_is_allowed(dial: Dial, shell: Shell) -> None:
    loose = dial._replace(writable_roots=("/etc",), approval_policy="never")
    assert resolve(loose, shell("tee", "/etc/hosts")).verdict == "allow"


# `rm -rf build` and the guardian


def test_a_risky_command_under_never(dial: Dial, shell: Shell) -> None:
    never = dial._replace(approval_policy="never")
    assert resolve(never, shell("rm", "-rf", "build")).verdict == "allow"
    guarded = resolve(never._replace(features=frozenset({"guardian_approval"})), shell("rm", "-rf", "build"))
    assert (guarded.verdict, guarded.gate) == ("ask", "guardian")
    assert guarded.deciding.remedy == "--disable guardian_approval"


# features


def test_a_feature_that_is_off_denies_before_the_sandbox_is_looked_at(dial: Dial, shell: Shell) -> None:
    verdict = resolve(dial, shell("tee", "/etc/hosts", needs_feature="web_search"))
    assert (verdict.verdict, verdict.gate) == ("deny", "feature")
    assert Gate.SANDBOX not in gates(verdict)
    assert verdict.deciding.remedy == "doorward features enable web_search"
    on = dial._replace(features=frozenset({"web_search"}))
    assert resolve(on, shell("ls", needs_feature="web_search")).verdict == "allow"


# hooks


def test_a_hook_runs_only_where_it_or_its_project_is_trusted(dial: Dial, shell: Shell) -> None:
    hook = shell("./hook", kind="hook", hook_hash="sha256:1")
    denied = resolve(dial, hook)
    assert (denied.verdict, denied.gate, gates(denied)) == ("deny", "hook-trust", [Gate.HOOK_TRUST])
    assert resolve(dial._replace(project_trust="trusted"), hook).verdict == "allow"
    assert resolve(dial._replace(trusted_hooks=frozenset({"sha256:1"})), hook).verdict == "allow"
    changed = dial._replace(trusted_hooks=frozenset({"sha256:2"}))
    assert resolve(changed, hook).verdict == "deny"
    bypassed = resolve(dial._replace(bypass_hook_trust=True), hook)
    assert bypassed.verdict == "allow"
    assert bypassed.reasons[0].switch == "--dangerously-bypass-hook-trust"
    assert resolve(dial, hook) == denied, "the bypass holds for one call"


# bypass and policy


def test_bypass_allows_and_skips_the_rest_but_never_a_forbidden(dial: Dial, shell: Shell) -> None:
    bypass = dial._replace(bypass_approvals_and_sandbox=True, project_trust="untrusted", sandbox_mode="read-only")
    verdict = resolve(bypass, shell("tee", "/etc/hosts"))
    assert (verdict.verdict, verdict.gate) == ("allow", "bypass")
    assert verdict.deciding.sentence.startswith("BYPASSED")
    assert gates(verdict) == [Gate.HOOK_TRUST, Gate.FEATURE, Gate.POLICY, Gate.BYPASS]
    forbidden = resolve(bypass._replace(policy=rule("forbidden")), shell("tee", "/etc/hosts"))
    assert (forbidden.verdict, forbidden.gate) == ("deny", "policy")
    assert "default.rules:3" in forbidden.deciding.sentence and "house rule" in forbidden.deciding.sentence
    assert resolve(bypass._replace(policy=rule("prompt")), shell("ls")).verdict == "allow"


def test_bypass_does_not_lift_hook_trust_or_features(dial: Dial, shell: Shell) -> None:
    bypass = dial._replace(bypass_approvals_and_sandbox=True)
    assert resolve(bypass, shell("./h", kind="hook")).gate == "hook-trust"
    assert resolve(bypass, shell("ls", needs_feature="f")).gate == "feature"


def test_a_policy_prompt_asks_also_under_never(dial: Dial, shell: Shell) -> None:
    verdict = resolve(dial._replace(approval_policy="never", policy=rule("prompt")), shell("ls"))
    assert (verdict.verdict, verdict.gate, verdict.deciding.cause) == ("ask", "approval", Cause.POLICY_PROMPT)


def test_a_policy_allow_runs_unasked_but_not_past_the_sandbox(dial: Dial, shell: Shell) -> None:
    strict = dial._replace(approval_policy="untrusted", policy=rule("allow"))
    assert resolve(strict, shell("make")).verdict == "allow"
    assert resolve(strict, shell("tee", "/etc/hosts")).gate == "sandbox"


def test_the_strictest_of_several_rules_counts(dial: Dial, shell: Shell) -> None:
    def both(action: Action) -> list[PolicyMatch]:
        return [*rule("allow", "a:1")(action), *rule("forbidden", "b:1")(action), *rule("prompt", "c:1")(action)]

    assert resolve(dial._replace(policy=both), shell("ls")).deciding.switch == "policy b:1"


# sandbox


def test_read_only_denies_writes_and_network(dial: Dial, shell: Shell) -> None:
    read_only = dial._replace(sandbox_mode="read-only", approval_policy="never")
    write = resolve(read_only, shell("tee", "out.txt"))
    assert (write.verdict, write.gate, write.deciding.cause) == ("deny", "sandbox", Cause.READ_ONLY)
    assert write.deciding.remedy == "-s workspace-write"
    network = resolve(read_only, shell("ls", network_to=(("a.test", 443),)))
    assert (network.verdict, network.gate, network.deciding.cause) == ("deny", "sandbox", Cause.NETWORK_OFF)
    assert network.deciding.remedy == "--network proxied --allow a.test:443"
    assert resolve(read_only, shell("cat", "in.txt")).verdict == "allow"


def test_a_script_is_left_to_the_kernel_and_its_network_to_the_proxy(dial: Dial, shell: Shell) -> None:
    verdict = resolve(dial, shell("sh", "-c", "touch /etc/x; exit 7"))
    assert verdict.verdict == "allow"
    assert [reason.effect for reason in verdict.reasons if reason.gate is Gate.SANDBOX] == [
        Effect.LEFT_TO_KERNEL,
        Effect.LEFT_TO_PROXY,
    ]


def test_undeclared_network_never_keeps_a_run_from_starting(dial: Dial, shell: Shell) -> None:
    for network in ("off", "proxied", "full"):
        assert resolve(dial._replace(network=network), shell("curl", "http://b.test/")).verdict == "allow"


# trust


def test_an_untrusted_project_turns_an_allowed_write_into_a_question(dial: Dial, shell: Shell) -> None:
    never = dial._replace(approval_policy="never")
    for state, verdict in (("trusted", "allow"), ("unknown", "allow"), ("untrusted", "ask")):
        assert resolve(never._replace(project_trust=state), shell("touch", "a")).verdict == verdict
    untrusted = never._replace(project_trust="untrusted")
    assert resolve(untrusted, shell("touch", "a")).gate == "trust"
    assert resolve(untrusted, shell("sh", "script.sh")).verdict == "ask", "a script may write"
    assert resolve(untrusted, shell("cat", "a", network_to=(("a.test", 80),))).verdict == "ask"
    assert resolve(untrusted, shell("ls")).verdict == "allow"


# approvals


def test_an_approval_of_this_session_allows_exactly_that(dial: Dial, shell: Shell) -> None:
    strict = dial._replace(
        approval_policy="untrusted",
        project_trust="untrusted",
        features=frozenset({"guardian_approval"}),
        policy=rule("prompt"),
    )
    action = shell("npm", "run", "test")
    approved = strict._replace(approvals=frozenset({approval_key(strict, action)}))
    verdict = resolve(approved, action)
    assert (verdict.verdict, verdict.gate, verdict.deciding.switch) == ("allow", "approval", "session approval")
    assert resolve(approved, shell("npm", "run", "lint")).verdict == "ask"


def test_an_approval_does_not_open_the_network(dial: Dial, shell: Shell) -> None:
    """P-PP-18: after the yes to a command the proxy still decides on its hosts."""
    asking = dial._replace(policy=rule("prompt"), decide_host=lambda host, port: "deny")
    action = shell("curl", "http://blocked.test/", network_to=(("blocked.test", 80),))
    verdict = resolve(asking._replace(approvals=frozenset({approval_key(asking, action)})), action)
    assert verdict.verdict == "allow"
    held = [reason for reason in verdict.reasons if reason.effect is Effect.LEFT_TO_PROXY]
    assert "blocked.test:80 is not in the allowlist" in held[0].sentence


def test_an_approval_under_other_permissions_is_not_found(dial: Dial, shell: Shell) -> None:
    action = shell("rm", "x")
    approved = dial._replace(approvals=frozenset({approval_key(dial, action)}))
    assert resolve(approved, action).verdict == "allow"
    assert resolve(approved._replace(writable_roots=("/data",)), action).verdict == "ask"
    assert resolve(approved, action._replace(cwd="/srv/project/sub")).verdict == "ask"


# the order and the form


def test_a_verdict_that_passes_everything_has_a_reason_from_every_gate_in_order(dial: Dial, shell: Shell) -> None:
    verdict = resolve(dial, shell("ls"))
    order = [gate for gate in Gate if gate is not Gate.HOOK]
    assert list(dict.fromkeys(gates(verdict))) == order
    assert gates(verdict) == sorted(gates(verdict), key=order.index)


@pytest.mark.parametrize(
    "setting",
    [
        {"sandbox_mode": "readonly"},
        {"approval_policy": "always"},
        {"network": "offf"},
        {"project_trust": "yes"},
    ],
)
def test_a_setting_that_is_no_member_runs_nothing(dial: Dial, shell: Shell, setting: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        resolve(dial._replace(**setting), shell("ls"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not a valid"):
        resolve(dial, shell("ls", kind="script"))


def test_an_empty_argv_and_hostile_text_still_get_a_plain_verdict(dial: Dial, shell: Shell) -> None:
    assert resolve(dial, shell()).verdict == "allow"
    verdict = resolve(dial, shell("tee", "/etc/\x1b[2Jx\udcff"))
    assert verdict.verdict == "deny"
    assert all(reason.sentence.isprintable() for reason in verdict.reasons)

"""For every dial and action: tightening never loosens, order never matters, a reason is always owed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from doorward.gates.action import Action
from doorward.gates.answer import Answer, settle
from doorward.gates.approval_key import approval_key
from doorward.gates.dial import ApprovalPolicy, Dial, NetworkMode, SandboxMode, Trust
from doorward.gates.policy_match import PolicyDecision, PolicyMatch
from doorward.gates.refusal import refusal_of
from doorward.gates.resolver import resolve
from doorward.gates.review import Review, ReviewStatus
from doorward.gates.verdict import Effect, Gate

STRICTNESS = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}
ANSWER = {"allow": 0, "ask": 1, "deny": 2}

# the workspace lies beside the private temp, so that adding a folder never turns private temp into a host's folder
PLACES = st.sampled_from(
    ["a", "sub/b", "../other", "/etc/hosts", "/data/x", "/data/sub/x", "/tmp/x", "/dev/null", "/home/u/.doorward/x", ""]
)
COMMANDS = st.one_of(
    st.sampled_from(
        [
            ("ls",),
            ("cat", "x"),
            ("tee", "/etc/hosts"),
            ("rm", "-rf", "build"),
            ("sh", "-c", "rm -rf /"),
            ("make",),
            ("git", "status"),
            ("git", "push", "--force"),
            ("sudo", "id"),
            ("cat", "/home/u/.ssh/id_ed25519"),
            (),
        ]
    ),
    st.tuples(st.sampled_from(["tee", "touch", "rm", "cp", "mv", "ls", "x"]), PLACES, PLACES),
    st.lists(st.text(max_size=8), max_size=4).map(tuple),
)
HOSTS = st.sampled_from([("a.test", 443), ("b.test", 80), ("::1", 5432)])
ACTIONS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["shell", "shell", "hook"]),
        "argv": COMMANDS,
        "cwd": st.sampled_from(["/srv/project", "/srv/project/sub"]),
        "env": st.sampled_from([{}, {"PATH": "/usr/bin:/bin"}, {"PATH": ".:/bin"}]),
        "writes": st.lists(PLACES, max_size=2).map(tuple),
        "network_to": st.lists(HOSTS, max_size=2).map(tuple),
        "needs_feature": st.sampled_from([None, None, "web"]),
        "hook_hash": st.sampled_from([None, "sha256:1"]),
    }
).map(lambda fields: Action(**fields))  # type: ignore[arg-type]
MATCHES = st.lists(
    st.builds(
        PolicyMatch,
        decision=st.sampled_from(list(PolicyDecision)),
        rule=st.sampled_from(["r1", "r2"]),
        where=st.sampled_from(["a.rules:1", "a.rules:2", "b.rules:1"]),
    ),
    max_size=4,
)


def matching(matches: Sequence[PolicyMatch], action: Action) -> Sequence[PolicyMatch]:
    return matches


def deciding(answers: dict[str, str], host: str, port: int) -> str:
    return answers.get(host, "deny")


def reviewing(status: ReviewStatus, action: Action, risks: Sequence[str]) -> Review:
    return Review(status)


REVIEWERS = st.one_of(st.none(), st.sampled_from(list(ReviewStatus)).map(lambda status: partial(reviewing, status)))
ANSWERS = st.fixed_dictionaries({host: st.sampled_from(list(ANSWER)) for host in ("a.test", "b.test", "::1")})
FOLDERS = st.lists(st.sampled_from(["/etc", "/data", "/data/sub", "/srv/project/sub"]), max_size=2).map(tuple)
DIALS = st.fixed_dictionaries(
    {
        "workspace": st.just("/srv/project"),
        "sandbox_mode": st.sampled_from(list(SandboxMode)),
        "approval_policy": st.sampled_from(list(ApprovalPolicy)),
        "writable_roots": FOLDERS,
        "read_only": FOLDERS,
        "hidden": FOLDERS,
        "home": st.just("/home/u/.doorward"),
        "network": st.sampled_from([None, *NetworkMode]),
        "features": st.frozensets(st.sampled_from(["web", "guardian_approval"])),
        "project_trust": st.sampled_from(list(Trust)),
        "trusted_hooks": st.frozensets(st.just("sha256:1")),
        "bypass_approvals_and_sandbox": st.sampled_from([False, False, True]),
        "bypass_hook_trust": st.booleans(),
        "policy": MATCHES.map(lambda matches: partial(matching, matches)),
        "decide_host": ANSWERS.map(lambda answers: partial(deciding, answers)),
        "reviewer": REVIEWERS,
    }
).map(lambda fields: Dial(**fields))


def without_a_denying_reviewer(dial: Dial) -> Dial:
    """A reviewer stands in for a person only where no person is asked, so a setting that asks a person keeps its no
    from being heard: the one place where a stricter setting may end in a question instead of a deny."""
    reviewer = dial.reviewer
    denies = isinstance(reviewer, partial) and reviewer.args == (ReviewStatus.DENIED,)
    return dial._replace(reviewer=None) if denies else dial


def strictness(dial: Dial, action: Action) -> int:
    return STRICTNESS[resolve(dial, action).verdict]


@given(DIALS, ACTIONS)
def test_every_verdict_is_explained(dial: Dial, action: Action) -> None:
    verdict = resolve(dial, action)
    assert verdict.verdict in STRICTNESS
    assert verdict.reasons
    assert verdict.deciding.effect is verdict.verdict and verdict.deciding.gate is verdict.gate
    order = list(Gate)
    positions = [order.index(reason.gate) for reason in verdict.reasons]
    assert positions == sorted(positions)
    assert all(reason.switch and reason.sentence and reason.sentence.isprintable() for reason in verdict.reasons)
    assert [reason for reason in verdict.reasons if reason.effect is Effect.DENY] in ([], [verdict.reasons[-1]])
    if verdict.verdict is not Effect.ALLOW:
        assert verdict.deciding.cause != "none"
    assert resolve(dial, action) == verdict


@given(DIALS, ACTIONS, MATCHES, st.randoms())
def test_the_order_of_rules_does_not_matter(
    dial: Dial, action: Action, matches: list[PolicyMatch], random: object
) -> None:
    shuffled = list(matches)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    ordered = resolve(dial._replace(policy=partial(matching, matches)), action)
    assert resolve(dial._replace(policy=partial(matching, shuffled)), action) == ordered


@given(DIALS, ACTIONS, MATCHES, st.sampled_from([PolicyDecision.PROMPT, PolicyDecision.FORBIDDEN]))
def test_adding_a_strict_rule_never_loosens(
    dial: Dial, action: Action, matches: list[PolicyMatch], added: PolicyDecision
) -> None:
    dial = without_a_denying_reviewer(dial)
    more = [*matches, PolicyMatch(added, "added", "c.rules:1")]
    before = strictness(dial._replace(policy=partial(matching, matches)), action)
    assert strictness(dial._replace(policy=partial(matching, more)), action) >= before


@given(DIALS, ACTIONS, st.sampled_from(["read_only", "hidden"]), st.sampled_from(["/etc", "/srv/project/sub", "/"]))
def test_closing_a_path_never_loosens(dial: Dial, action: Action, field: str, path: str) -> None:
    if field == "hidden":
        closed = dial._replace(hidden=(*dial.hidden, path))
    else:
        closed = dial._replace(read_only=(*dial.read_only, path))
    assert strictness(closed, action) >= strictness(dial, action)


@given(DIALS, ACTIONS, st.sampled_from(["a.test", "b.test", "::1"]), ANSWERS)
def test_denying_a_host_never_loosens(dial: Dial, action: Action, host: str, answers: dict[str, str]) -> None:
    before = strictness(dial._replace(decide_host=partial(deciding, answers)), action)
    after = strictness(dial._replace(decide_host=partial(deciding, {**answers, host: "deny"})), action)
    assert after >= before


@given(DIALS, ACTIONS, st.sampled_from(["sandbox_mode", "approval_policy", "network", "project_trust"]), st.data())
def test_a_stricter_setting_never_gives_a_looser_verdict(
    dial: Dial, action: Action, field: str, data: st.DataObject
) -> None:
    order: dict[str, list[str]] = {
        "sandbox_mode": list(SandboxMode),
        "approval_policy": list(ApprovalPolicy),
        "network": list(NetworkMode),
        "project_trust": list(reversed(Trust)),
    }
    strictest_first = order[field]
    dial = without_a_denying_reviewer(dial)
    stricter = data.draw(st.integers(0, len(strictest_first) - 2))
    looser = data.draw(st.integers(stricter + 1, len(strictest_first) - 1))
    strict = dial._replace(**{field: strictest_first[stricter]})  # type: ignore[arg-type]
    loose = dial._replace(**{field: strictest_first[looser]})  # type: ignore[arg-type]
    assert strictness(strict, action) >= strictness(loose, action)


@given(DIALS, ACTIONS)
def test_a_switch_turned_to_its_strict_side_never_loosens(dial: Dial, action: Action) -> None:
    base = strictness(dial, action)
    assert strictness(dial._replace(features=dial.features | {"guardian_approval"}), action) >= base
    assert strictness(dial._replace(features=dial.features - {"web"}), action) >= base
    assert strictness(dial._replace(bypass_approvals_and_sandbox=False), action) >= base
    assert strictness(dial._replace(bypass_hook_trust=False), action) >= base
    assert strictness(dial._replace(trusted_hooks=frozenset()), action) >= base
    assert strictness(dial._replace(writable_roots=()), action) >= base


@given(DIALS, ACTIONS)
def test_declaring_more_never_loosens(dial: Dial, action: Action) -> None:
    base = strictness(dial, action)
    assert strictness(dial, action._replace(writes=(*action.writes, "/etc/hosts"))) >= base
    assert strictness(dial, action._replace(network_to=(*action.network_to, ("c.test", 1)))) >= base


@given(DIALS, ACTIONS, ACTIONS)
def test_an_approval_is_of_one_action_and_lifts_no_deny(dial: Dial, action: Action, other: Action) -> None:
    mine, theirs = approval_key(dial, action), approval_key(dial, other)
    base = resolve(dial, action)
    if mine != theirs:
        assert resolve(dial._replace(approvals=frozenset({theirs})), action) == base
    approved = resolve(dial._replace(approvals=frozenset({mine})), action)
    if base.verdict is Effect.DENY and base.gate not in (Gate.GUARDIAN, Gate.APPROVAL):
        assert approved == base
    else:
        assert approved.verdict is Effect.ALLOW


@given(DIALS, ACTIONS)
def test_the_answer_of_nobody_is_a_deny_with_a_reason(dial: Dial, action: Action) -> None:
    verdict = resolve(dial, action)
    if verdict.verdict is Effect.ASK:
        settled = settle(verdict, Answer.NOBODY, "approvals")
        assert settled.verdict is Effect.DENY and settled.reasons[:-1] == verdict.reasons
        assert refusal_of(settled)["message"]

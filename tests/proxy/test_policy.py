"""Policies: what a supervisor sends becomes rules, limits and the way out; decisions are remembered, not changed."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, NoReturn

import pytest

from doorward.allowlists.decision import Effect, Reason
from doorward.allowlists.host import Address, Name
from doorward.allowlists.rule import MalformedRule
from doorward.allowlists.settings import MalformedSettings
from doorward.proxy.interface_addresses import InterfaceAddresses
from doorward.proxy.limits import DEFAULT, MalformedLimit
from doorward.proxy.parent import MalformedParent
from doorward.proxy.policy import _REMEMBERED, Policy, policy_from_settings


def settings(*allow: Any, **more: Any) -> dict[str, Any]:
    return {"allow": [{"rule": rule, "source": "flag", "where": "--allow"} for rule in allow], "deny": [], **more}


def test_everything_given() -> None:
    policy = policy_from_settings(
        settings(
            "a.test",
            limits={"head_time": 3},
            upstream_proxy="http://user:pw@proxy.test:3128",
            upstream_resolves=["Corp.Example"],
        )
    )
    assert policy.decide(Name("a.test"), 443).effect is Effect.ALLOW
    assert policy.limits == DEFAULT._replace(head_time=3)
    assert policy.parent is not None
    assert policy.parent.port == 3128


def test_nothing_given_is_closed_and_direct() -> None:
    policy = policy_from_settings({})
    assert policy.decide(Name("a.test"), 443).effect is Effect.DENY
    assert policy.limits == DEFAULT
    assert policy.parent is None


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (settings("http://a.test"), MalformedRule),
        (settings(limits={"nope": 1}), MalformedLimit),
        (settings(limits=[1]), MalformedSettings),
        (settings(upstream_proxy=7), MalformedSettings),
        (settings(upstream_proxy="socks5://proxy.test"), MalformedParent),
        (settings(upstream_resolves=["a.test"]), MalformedParent),
        (settings(upstream_proxy="http://proxy.test", upstream_resolves=["10.0.0.1"]), MalformedParent),
        (settings(upstream_proxy="http://proxy.test", upstream_resolves=["*.a.test"]), MalformedParent),
        (settings(upstream_proxy="http://proxy.test", upstream_resolves=[7]), MalformedParent),
    ],
)
def test_what_is_wrong_is_said(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        policy_from_settings(wrong)


def test_which_names_go_by_name() -> None:
    policy = policy_from_settings(settings(upstream_proxy="http://proxy.test", upstream_resolves=["corp.example"]))
    assert policy.goes_by_name(Name("corp.example"))
    assert policy.goes_by_name(Name("a.b.corp.example"))
    assert not policy.goes_by_name(Name("notcorp.example"))
    assert not policy.goes_by_name(Name("example"))
    assert not policy.goes_by_name(Address(ip_address("192.0.2.1")))
    direct = Policy(policy.rules, parent_resolves=frozenset(["corp.example"]))
    assert not direct.goes_by_name(Name("corp.example")), "without a parent nobody else resolves"


def test_the_machines_own_public_addresses_are_local() -> None:
    mine = (ip_address("93.184.216.34"),)
    policy = policy_from_settings(settings("*"), lambda: InterfaceAddresses((mine[0].packed,)))
    assert policy.decide(Address(mine[0]), 443).effect is Effect.DENY
    assert not policy.judge(policy.decide(Name("a.test"), 443), mine).usable
    assert policy.notices == policy.rules.notices
    unknown = policy_from_settings(settings("*"), lambda: InterfaceAddresses((), "they cannot be read"))
    assert unknown.decide(Address(mine[0]), 443).effect is Effect.ALLOW
    assert unknown.notices[-1] == "they cannot be read"


def test_they_are_asked_for_where_nothing_is_allowed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of a refusal is the same, with rules and without."""

    def refuse() -> NoReturn:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("doorward.proxy.interface_addresses._open_netlink", refuse)
    assert "cannot be read" in policy_from_settings({}).notices[-1]


def test_remembered_verdicts_are_those_of_the_rules() -> None:
    policy = policy_from_settings(settings("a.test"))
    public, private = (ip_address("93.184.216.34"),), (ip_address("10.0.0.1"),)
    decision = policy.decide(Name("a.test"), 443)
    for _ in range(2):
        assert policy.judge(decision, public) == policy.rules.judge(decision, public)
        assert policy.judge(decision, private) == policy.rules.judge(decision, private)
    granted = policy.rules.granted(policy.decide(Name("b.test"), 443), "once")
    denied = policy.decide(Name("b.test"), 443)
    assert policy.judge(granted, public).usable == public
    assert policy.judge(denied, public).usable == (), "a verdict belongs to its decision, not to the host"


def test_what_is_remembered_is_bounded() -> None:
    policy = policy_from_settings(settings("*"))
    for index in range(3 * _REMEMBERED):
        decision = policy.decide(Name(f"n{index}.test"), 443)
        policy.judge(decision, (ip_address("93.184.216.34"),))
    assert len(policy._verdicts) <= _REMEMBERED


def test_a_request_is_admitted_by_its_method_where_a_rule_lists_some() -> None:
    """P-PP-03: what cannot be seen is not admitted by such a rule."""
    policy = policy_from_settings(settings({"host": "a.test:80", "methods": ["GET"]}, "b.test"))
    assert policy.admit(Name("a.test"), 80, "GET", visible=True).effect is Effect.ALLOW
    assert policy.admit(Name("a.test"), 80, "POST", visible=True).reason is Reason.METHOD_NOT_ALLOWED
    assert policy.admit(Name("a.test"), 80, "GET", visible=False).reason is Reason.MITM_REQUIRED
    assert policy.admit(Name("a.test"), 80, "CONNECT", visible=False).reason is Reason.MITM_REQUIRED
    assert policy.admit(Name("b.test"), 443, "CONNECT", visible=False) is policy.decide(Name("b.test"), 443)
    assert policy.admit(Name("c.test"), 443, "CONNECT", visible=False).reason is Reason.NOT_ALLOWED


def test_an_inspected_tunnel_is_admitted_and_an_opaque_one_is_not() -> None:
    """With a worker the tunnel opens, and each request in it is judged; one that nobody can look into stays shut."""
    rules = settings({"host": "a.test", "methods": ["GET"]}, "b.test", {"host": "*.c.test", "paths": ["/x"]})
    policy = policy_from_settings({**rules, "inspection": {"every": False, "credentials": {"k": ["d.test"]}}})
    for name, inspected in (("a.test", True), ("b.test", False), ("x.c.test", True)):
        decision = policy.admit(Name(name), 443, "CONNECT", visible=False)
        assert decision.effect is Effect.ALLOW and policy.inspects(decision) is inspected
        assert (policy.opaque(decision).reason is Reason.MITM_REQUIRED) is inspected
    assert policy.admit(Name("a.test"), 443, "POST", visible=True).reason is Reason.METHOD_NOT_ALLOWED
    without = policy_from_settings(rules)
    assert without.admit(Name("a.test"), 443, "CONNECT", visible=False).reason is Reason.MITM_REQUIRED
    assert not without.inspects(without.admit(Name("b.test"), 443, "CONNECT", visible=False))


def test_hosts_of_credentials_are_inspected() -> None:
    told = {"every": False, "credentials": {"k": ["d.test", "*.e.test:8443"], "l": ["d.test"]}, "secrets": [["k", "s"]]}
    policy = policy_from_settings({**settings("**.test", "*.e.test:8443"), "inspection": told})
    assert policy.inspection is not None and repr(policy.inspection) == "Inspection(every=False)"
    for name, port, names in (
        ("d.test", 443, ("k", "l")),
        ("x.e.test", 8443, ("k",)),
        ("x.e.test", 443, ()),
        ("b.test", 443, ()),
    ):
        decision = policy.decide(Name(name), port)
        assert policy.inspection.credentials_for(decision) == names
        assert policy.inspects(decision) is bool(names)

"""Rules for some methods only: what is seen is judged, what cannot be seen is not let through."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.conditions import Request
from doorward.allowlists.decision import Decision, Effect
from doorward.allowlists.host import parse_host_port
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet

Make = Callable[..., Any]
READ_ONLY = {"host": "allowed.test", "methods": ["GET", "HEAD"]}
FLAG = Origin("flag", "--allow")


def request(rules: Any, method: str, authority: str = "allowed.test:80") -> Decision:
    decision: Decision = rules.rules.judge_request(rules(authority), Request(method, "/"), visible=True)
    return decision


def tunnel(rules: Any, authority: str = "allowed.test:443") -> Decision:
    decision: Decision = rules.rules.judge_request(rules(authority), Request("CONNECT", ""), visible=False)
    return decision


def test_a_read_only_rule_holds_for_plain_requests(asked: Make) -> None:
    """P-PP-03."""
    rules = asked([READ_ONLY])
    for method in ("GET", "HEAD"):
        assert request(rules, method) == rules("allowed.test:80")
        assert request(rules, method).effect is Effect.ALLOW
    refused = request(rules, "POST")
    assert (refused.effect, refused.reason, refused.source) == ("deny", "method_not_allowed", "baseline_policy")
    assert refused.rule == rules("allowed.test:80").rule
    assert refused.message == (
        "POST to allowed.test:80 is not allowed, only GET and HEAD by the rule "
        '{host = "allowed.test", methods = ["GET", "HEAD"]} (--allow)'
    )
    assert refused.entry == '{host = "allowed.test", methods = ["GET", "HEAD", "POST"]}'
    assert refused.hint == f"--allow '{refused.entry}'"
    assert request(asked([READ_ONLY, refused.entry]), "POST").effect is Effect.ALLOW


def test_a_read_only_rule_opens_no_tunnel(asked: Make) -> None:
    """P-PP-03: what cannot be seen is refused, and the refusal says what would allow it."""
    for port in (80, 443):
        refused = tunnel(asked([READ_ONLY]), f"allowed.test:{port}")
        assert (refused.effect, refused.reason) == ("deny", "mitm_required")
        assert "GET and HEAD" in refused.message and "a rule without methods" in refused.message
        assert refused.hint == "--allow allowed.test"
        assert tunnel(asked([READ_ONLY, refused.entry]), f"allowed.test:{port}").effect is Effect.ALLOW


def test_case_counts(asked: Make) -> None:
    """RFC 9110 §9.1; a method no rule may list leaves no advice."""
    refused = request(asked([READ_ONLY]), "get")
    assert refused.reason == "method_not_allowed" and refused.hint == "" and refused.entry == ""
    assert request(asked([READ_ONLY]), "CONNECT").hint == ""


def test_methods_add_up(asked: Make) -> None:
    rules = asked([READ_ONLY, {"host": "allowed.test", "methods": ["POST"]}, {"host": "*.test", "methods": ["PUT"]}])
    for method in ("GET", "HEAD", "POST", "PUT"):
        assert request(rules, method).effect is Effect.ALLOW
        assert method in request(rules, method).rule.methods  # type: ignore[union-attr]
    refused = request(rules, "DELETE")
    assert "only GET, HEAD, POST and PUT by" in refused.message
    assert refused.entry == '{host = "allowed.test", methods = ["DELETE", "GET", "HEAD", "POST", "PUT"]}'
    assert tunnel(rules).reason == "mitm_required"


@pytest.mark.parametrize("wider", ["allowed.test", "*.test", "**.test", "*", {"host": "*", "tls": "any"}])
def test_a_rule_without_methods_allows_all(asked: Make, wider: Any) -> None:
    for allow in ([READ_ONLY, wider], [wider, READ_ONLY]):
        rules = asked(allow)
        assert request(rules, "POST").effect is Effect.ALLOW and request(rules, "POST").rule.methods == ()  # type: ignore[union-attr]
        assert tunnel(rules).effect is Effect.ALLOW


def test_other_ports_of_other_rules_do_not_add_up(asked: Make) -> None:
    rules = asked([READ_ONLY, "allowed.test:8080", {"host": "allowed.test:81", "methods": ["POST"]}])
    assert request(rules, "POST").reason == "method_not_allowed"
    assert request(rules, "POST", "allowed.test:8080").effect is Effect.ALLOW
    assert request(rules, "POST", "allowed.test:81").effect is Effect.ALLOW
    assert request(rules, "GET", "allowed.test:81").reason == "method_not_allowed"
    assert tunnel(rules, "allowed.test:8080").effect is Effect.ALLOW


def test_addresses_and_stars_may_list_methods(asked: Make) -> None:
    rules = asked([{"host": "10.0.0.0/8", "methods": ["GET"]}, {"host": "*", "methods": ["HEAD"]}])
    assert request(rules, "GET", "10.0.0.7:80").effect is Effect.ALLOW
    assert request(rules, "HEAD", "10.0.0.7:80").reason == "method_not_allowed"
    assert request(rules, "HEAD", "any.test:80").effect is Effect.ALLOW
    assert request(rules, "GET", "any.test:80").reason == "method_not_allowed"
    assert tunnel(rules, "10.0.0.7:443").entry == "10.0.0.7"
    assert request(asked([{"host": "0.0.0.0/0", "methods": ["GET"]}]), "GET", "169.254.169.254:80").effect == "deny"


def test_a_deny_and_an_ask_stay_what_they_are(asked: Make) -> None:
    rules = asked([READ_ONLY], ["allowed.test"])
    assert request(rules, "GET").reason == "denied" and tunnel(rules).reason == "denied"
    question = asked([READ_ONLY], can_ask=True)("other.test")
    assert asked([READ_ONLY]).rules.judge_request(question, Request("POST", "/"), visible=True) is question
    granted = asked([READ_ONLY]).rules.granted(question, "once")
    assert asked([READ_ONLY]).rules.judge_request(granted, Request("POST", "/"), visible=False) is granted


def test_a_rule_without_methods_costs_nothing(asked: Make) -> None:
    rules = asked(["allowed.test", {"host": "other.test", "methods": ["GET"]}])
    decision = rules("allowed.test:80")
    assert rules.rules.judge_request(decision, Request("POST", "/"), visible=True) is decision
    assert rules.rules.judge_request(decision, Request("CONNECT", "/"), visible=False) is decision


def test_the_address_guard_does_not_care_for_methods(asked: Make) -> None:
    rules = asked([{"host": "db.corp", "addresses": ["10.0.0.0/8"], "methods": ["GET"]}])
    assert rules.usable("db.corp", "10.0.0.7", "192.168.0.1") == ["10.0.0.7"]


_METHODS = st.lists(st.sampled_from(["GET", "HEAD", "POST"]), max_size=3, unique=True)
_HOSTS = st.sampled_from(["a.test", "*.test", "**.a.test", "*", "10.0.0.1", "10.0.0.0/8"])
_PORTS = st.sampled_from(["", ":80", ":*"])
_TABLE = st.builds(
    lambda host, port, methods: {"host": host + port, **({"methods": methods} if methods else {})},
    _HOSTS,
    _PORTS,
    _METHODS,
)


@given(
    st.lists(_TABLE, min_size=1, max_size=6),
    st.sampled_from(["a.test:80", "b.a.test:443", "10.0.0.1:80", "other.test:80", "10.0.0.2:8080"]),
    st.sampled_from(["GET", "HEAD", "POST", "PUT"]),
)
def test_a_request_passes_when_one_rule_alone_would_let_it(
    tables: list[dict[str, Any]], authority: str, method: str
) -> None:
    """What the indexes answer is what each rule by itself answers, put together."""
    host, port = parse_host_port(authority)

    def passes(entries: list[dict[str, Any]], *, visible: bool) -> Decision:
        rules = RuleSet.build([parse_rule(entry, "allow", FLAG) for entry in entries], [])
        return rules.judge_request(
            rules.decide(host, port), Request(method if visible else "CONNECT", "/"), visible=visible
        )

    for visible in (True, False):
        together = passes(tables, visible=visible)
        alone = [passes([table], visible=visible).effect is Effect.ALLOW for table in tables]
        assert (together.effect is Effect.ALLOW) is any(alone)
        if together.entry:
            assert passes([*tables, parse_entry(together.entry)], visible=visible).effect is Effect.ALLOW


def parse_entry(entry: str) -> Any:
    return entry if entry.startswith("{") else {"host": entry}

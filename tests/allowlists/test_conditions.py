"""What a rule asks of a request besides its host and method."""

from collections.abc import Callable
from typing import Any

import pytest

from doorward.allowlists.conditions import Conditions, MalformedConditions, Request, parse_conditions
from doorward.allowlists.rule import MalformedRule, Origin, parse_rule, rule_entry

Make = Callable[..., Any]
FLAG = Origin("flag", "--allow")


def unmet(table: dict[str, object], target: str, *headers: tuple[str, str], **more: Any) -> str | None:
    conditions = parse_conditions(table)
    assert conditions is not None
    return conditions.unmet(Request("GET", target, headers, **more))


@pytest.mark.parametrize(
    ("query", "target", "holds"),
    [
        ({"s": "up"}, "/?s=up", True),
        ({"s": "up"}, "/?s=up&x=1", True),
        ({"s": "up"}, "/", False),
        ({"s": "up"}, "/?s=down", False),
        ({"s": "up"}, "/?s=up&s=down", False),
        ({"s": ["up", "d*"]}, "/?s=up&s=down", True),
        ({"s": "a b"}, "/?s=a+b", True),
        ({"s": "a b"}, "/?s=a%20b", True),
        ({"s": "up"}, "/?%73=up", True),
        ({"s": "up"}, "/?s=up;s=down", False),
        ({"s": "*"}, "/?s=%ff", False),
        ({"s": "*"}, "/?s=%zz", False),
        ({"s": "*"}, "/?s=", True),
        ({"s": []}, "/?x=1", True),
        ({"s": []}, "/?s=", False),
    ],
)
def test_the_query(query: dict[str, object], target: str, holds: bool) -> None:
    assert (unmet({"query": query}, target) is None) is holds


def test_headers_count_by_every_line() -> None:
    wanted = {"headers": {"Content-Type": "application/json*"}}
    assert unmet(wanted, "/", ("content-type", "application/json; charset=utf-8")) is None
    assert unmet(wanted, "/", ("content-type", "text/html")) is not None
    assert unmet(wanted, "/", ("content-type", "application/json"), ("content-type", "text/html")) is not None
    assert unmet(wanted, "/") is not None


def test_what_is_said_of_a_header_holds_no_value() -> None:
    """It may be a secret."""
    said = unmet({"headers": {"x-key": "a*"}}, "/", ("x-key", "hunter2"))
    assert said is not None and "hunter2" not in said and "x-key" in said


@pytest.mark.parametrize(
    ("listed", "operations", "holds"),
    [
        (["query"], ("query.viewer",), True),
        (["query"], ("query.viewer", "mutation.close"), False),
        (["query.v*", "mutation.addComment"], ("query.viewer", "mutation.addComment"), True),
        (["mutation.add*"], ("mutation.addComment",), True),
        (["mutation.add*"], ("mutation.close",), False),
        (["query"], (), False),
        (["query"], None, False),
    ],
)
def test_graphql(listed: list[str], operations: tuple[str, ...] | None, holds: bool) -> None:
    assert (unmet({"graphql": listed}, "/graphql", operations=operations) is None) is holds


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"paths": "/a"}, "paths"),
        ({"paths": []}, "paths"),
        ({"paths": ["a"]}, "paths"),
        ({"paths": [5]}, "paths"),
        ({"query": {}}, "query"),
        ({"query": ["a"]}, "query"),
        ({"query": {"a": 5}}, "query"),
        ({"headers": {"a b": "c"}}, "headers"),
        ({"headers": {"Host": "b.test"}}, "headers"),
        ({"graphql": ["subscribe"]}, "graphql"),
        ({"graphql": ["query.a b"]}, "graphql"),
    ],
)
def test_what_is_no_condition(table: dict[str, object], key: str) -> None:
    with pytest.raises(MalformedConditions) as error:
        parse_conditions(table)
    assert error.value.key == key
    with pytest.raises(MalformedRule):
        parse_rule({"host": "a.test", **table}, "allow", FLAG)


def test_the_nearest_spelling_of_a_rule_with_conditions_can_be_used() -> None:
    with pytest.raises(MalformedRule) as error:
        parse_rule({"host": "a.test", "paths": ["v1/**"]}, "allow", FLAG)
    assert error.value.suggestion is not None
    assert parse_rule(error.value.suggestion, "allow", FLAG).conditions == Conditions(paths=("/v1/**",))


def test_a_rule_is_written_back_as_it_was_meant() -> None:
    table = {
        "host": "a.test", "paths": ["/a/**"], "query": {"x y": "1"}, "headers": {"Accept": ["a", "b"]},
        "graphql": ["query"],
    }  # fmt: skip
    rule = parse_rule(table, "allow", FLAG)
    again = parse_rule(rule_entry(rule), "allow", FLAG)
    assert again.conditions == rule.conditions


def judged(rules: Any, request: Request, authority: str = "a.test:80") -> Any:
    return rules.rules.judge_request(rules(authority), request, visible=True)


def test_rules_add_up_and_a_refusal_says_what_would_allow(asked: Make) -> None:
    rules = asked([
        {"host": "a.test", "methods": ["GET"], "paths": ["/pub/**"]},
        {"host": "*.test", "methods": ["POST"], "paths": ["/in"]},
    ])  # fmt: skip
    assert judged(rules, Request("GET", "/pub/x")).effect == "allow"
    assert judged(rules, Request("POST", "/in"), "b.test:80").effect == "allow"
    refused = judged(rules, Request("GET", "/private"))
    assert (refused.effect, refused.reason, str(refused.rule.text)) == (
        "deny",
        "path_not_allowed",
        rules.rules.allow[0].text,
    )
    assert "/private" in refused.message and "/pub/**" in refused.message
    assert judged(asked([refused.entry]), Request("GET", "/private")).effect == "allow"
    assert judged(asked([refused.entry]), Request("GET", "/other")).effect == "deny"
    assert judged(rules, Request("DELETE", "/pub/x")).reason == "method_not_allowed"
    odd = judged(rules, Request("GET", "/pub/..%2fprivate"))
    assert odd.reason == "path_not_allowed" and odd.hint == ""


def test_an_upgrade_needs_a_rule_without_methods(asked: Make) -> None:
    """What is said after it shows none."""
    request = Request("GET", "/ws", upgrade=True)
    assert judged(asked([{"host": "a.test", "methods": ["GET"], "paths": ["/ws"]}]), request).reason == "mitm_required"
    assert judged(asked([{"host": "a.test", "paths": ["/ws"]}]), request).effect == "allow"


def test_a_limited_network_only_reads(asked: Make) -> None:
    """`network.mode = "limited"`."""
    rules = asked(["a.test", {"host": "b.test", "methods": ["POST"]}], limited=True)
    for method in ("GET", "HEAD", "OPTIONS"):
        assert judged(rules, Request(method, "/")).effect == "allow"
    refused = judged(rules, Request("POST", "/"))
    assert (refused.reason, refused.source, refused.hint) == ("method_not_allowed", "mode_guard", "--network proxied")
    assert rules("b.test:80").reason == "not_allowed"
    assert any("b.test" in notice and "limited" in notice for notice in rules.rules.notices)
    tunnel = rules.rules.judge_request(rules("a.test:443"), Request("CONNECT", ""), visible=False)
    assert tunnel.reason == "mitm_required"

"""A managed layer's wildcard can be narrowed, not widened."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.decision import Effect
from doorward.allowlists.host import parse_host
from doorward.allowlists.layers import covers, outside
from doorward.allowlists.rule import Origin, Rule, parse_rule
from doorward.allowlists.ruleset import RuleSet

MANAGED = Origin("file", "/etc/doorward/config.toml:3")
USER = Origin("file", "config.toml:7")


def test_the_user_narrows_but_never_widens(rule: Callable[..., Rule]) -> None:
    """P-DM-10."""
    managed = [rule("*.a.test", "allow", MANAGED)]
    wanted = [rule(entry, "allow", USER) for entry in ("api.a.test", "*.x.a.test", "a.test", "*.test")]
    beyond = outside(managed, wanted)
    assert [each.wanted.text for each in beyond] == ["a.test", "*.test"]
    for each in beyond:
        assert MANAGED.where in each.message and USER.where in each.message


@pytest.mark.parametrize(
    ("wide", "narrow", "answer"),
    [
        ("a.test", "a.test", True),
        ("a.test", "**.a.test", False),
        ("a.test", "*.a.test", False),
        ("a.test", "b.test", False),
        ("*.a.test", "*.a.test", True),
        ("*.a.test", "x.y.a.test", True),
        ("*.a.test", "xa.test", False),
        ("*.a.test", "**.a.test", False),
        ("*.a.test", "**.x.a.test", True),
        ("**.a.test", "a.test", True),
        ("**.a.test", "*.a.test", True),
        ("**.a.test", "**.a.test", True),
        ("*", "a.test", True),
        ("*", "*.a.test", True),
        ("*", "gateway", False),
        ("*", "*.gateway", True),
        ("*", "**.gateway", False),
        ("*", "metadata.google.internal", False),
        ("*.google.internal", "metadata.google.internal", False),
        ("metadata.google.internal", "metadata.google.internal", True),
        ("*", "93.184.216.34", True),
        ("*", "10.0.0.1", False),
        ("*", "93.184.0.0/16", False),
        ("*", "*", True),
        ("**.test", "*", False),
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.1.0.0/16", "10.0.0.0/8", False),
        ("10.0.0.0/8", "fd00::/8", False),
        ("10.0.0.0/8", "a.test", False),
        ("a.test", "10.0.0.1", False),
        ("169.254.0.0/16", "169.254.169.254", False),
        ("169.254.169.254", "169.254.169.254", True),
        ("a.test:*", "a.test", True),
        ("a.test", "a.test:443", True),
        ("a.test:443", "a.test", False),
        ("a.test:1-500", "a.test", True),
        ("localhost", "localhost", True),
        ('{host = "*.corp", addresses = ["10.0.0.0/8"]}', '{host = "db.corp", addresses = ["10.0.0.7"]}', True),
        ('{host = "*.corp", addresses = ["10.0.0.0/8"]}', '{host = "db.corp", addresses = ["11.0.0.7"]}', False),
        ("*.corp", '{host = "db.corp", addresses = ["10.0.0.7"]}', False),
        ("*.corp", '{host = "db.corp", tls = "any"}', False),
        ('{host = "*.corp", tls = "any"}', "db.corp", True),
        ("a.test", '{host = "a.test", methods = ["GET"]}', True),
        ('{host = "a.test", methods = ["GET"]}', "a.test", False),
        ('{host = "*.test", methods = ["GET", "HEAD"]}', '{host = "a.test", methods = ["HEAD"]}', True),
        ('{host = "*.test", methods = ["GET"]}', '{host = "a.test", methods = ["GET", "HEAD"]}', False),
    ],
)
def test_covers(rule: Callable[..., Rule], wide: str, narrow: str, answer: bool) -> None:
    assert covers(rule(wide), rule(narrow)) is answer


def test_a_deny_takes_everything_its_pattern_says(rule: Callable[..., Rule]) -> None:
    assert covers(rule("*", "deny"), rule("gateway"))
    assert covers(rule("*.google.internal", "deny"), rule("metadata.google.internal"))
    assert covers(rule("169.254.0.0/16", "deny"), rule("169.254.169.254"))
    assert not covers(rule("*:443", "deny"), rule("a.test"))


def test_ports_may_be_covered_by_several_rules(rule: Callable[..., Rule]) -> None:
    assert outside([rule("a.test:80"), rule("*.test:443")], [rule("a.test")]) == ()
    assert len(outside([rule("a.test:80")], [rule("a.test")])) == 1
    assert len(outside([], [rule("a.test")])) == 1


def test_methods_may_be_covered_by_several_rules(rule: Callable[..., Rule]) -> None:
    """Each port for each method."""
    managed = [rule({"host": "a.test", "methods": ["GET"]}), rule({"host": "a.test:80", "methods": ["POST"]})]
    assert outside(managed, [rule({"host": "a.test:80", "methods": ["GET", "POST"]})]) == ()
    assert len(outside(managed, [rule({"host": "a.test", "methods": ["GET", "POST"]})])) == 1
    assert len(outside(managed, [rule("a.test:80")])) == 1


def test_a_dead_allow_is_dead_for_every_method(rule: Callable[..., Rule]) -> None:
    rules = RuleSet.build([rule({"host": "x.a.test", "methods": ["GET"]})], [rule("*.a.test", "deny")])
    assert "never applies" in rules.notices[0]


_NAME = st.lists(st.sampled_from(["a", "b", "test"]), min_size=1, max_size=3).map(".".join)
_ENTRY = st.builds(
    lambda stars, name, port: stars + name + port,
    st.sampled_from(["", "*.", "**."]),
    _NAME,
    st.sampled_from(["", ":443", ":*"]),
) | st.sampled_from(["*", "10.0.0.0/8", "10.0.0.1", "169.254.0.0/16", "169.254.169.254"])


@given(_ENTRY, _ENTRY, _NAME | st.sampled_from(["10.0.0.1", "169.254.169.254"]), st.sampled_from([80, 443, 22]))
def test_what_is_covered_opens_nothing_more(wide: str, narrow: str, host: str, port: int) -> None:
    """The algebra agrees with the matcher."""
    one, other = parse_rule(wide, "allow", MANAGED), parse_rule(narrow, "allow", USER)
    if covers(one, other) and RuleSet.build([other], []).decide(parse_host(host), port).effect is Effect.ALLOW:
        assert RuleSet.build([one], []).decide(parse_host(host), port).effect is Effect.ALLOW

"""Rules files: what they may say, and that a mistake is told with its line."""

from __future__ import annotations

import pytest

from doorward.gates.policy_rules import PrefixRule
from doorward.gates.policy_starlark import PolicyFileError, Source, evaluate


def rules(text: str) -> list[PrefixRule]:
    policy = evaluate([Source("a.rules", text)], 10)
    return [rule for name in policy.programs for rule in policy.rules_for(name)]


def mistake(text: str, seconds: float = 10) -> str:
    with pytest.raises(PolicyFileError) as raised:
        evaluate([Source("a.rules", text)], seconds)
    return str(raised.value)


def test_a_rule_with_everything() -> None:
    (rule,) = rules(
        '\nprefix_rule(\n  pattern=["git", ["push", "fetch"]], decision="prompt", justification="remote",\n'
        '  match=["git push", ["git", "fetch"]], not_match=["git status"])\n'
    )
    assert rule == PrefixRule("git", [["push", "fetch"]], "prompt", "remote", "a.rules", 2)
    assert rule.where == "a.rules:2"
    assert rule.text == 'prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt")'


def test_rules_from_loops_and_functions_stand_where_they_are_written() -> None:
    found = rules('def both(name):\n  prefix_rule(pattern=[name])\n\nfor n in ["a", "b"]:\n  both(n)\n')
    assert [(rule.first, rule.line) for rule in found] == [("a", 2), ("b", 2)]


def test_several_files_are_one_policy() -> None:
    policy = evaluate(
        [Source("a.rules", 'prefix_rule(pattern=["x"])'), Source("b.rules", 'prefix_rule(pattern=["x"])')], 10
    )
    assert [rule.where for rule in policy.rules_for("x")] == ["a.rules:1", "b.rules:1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('x = 1\nprefix_rule(pattern=["a"]', "a.rules:2: Parse error"),
        ('\nprefix_rule(patern=["a"])', "a.rules:2: Missing parameter `pattern`"),
        ('\nprefix_rule(pattern=["a"], reason="x")', "a.rules:2: there is no parameter 'reason'"),
        ('\n\nprefix_rule(pattern=["a"], decision="deny")', "a.rules:3: the decision is one of"),
        ("prefix_rule(pattern=[])", "a.rules:1: the pattern is empty"),
        ('prefix_rule(pattern=["a", {}])', "a.rules:1: a part of a pattern is text or a list of texts, not dict"),
        ('prefix_rule(pattern=["a"],\n match=["b"])', "a.rules:1: the match example 'b' does not match the rule"),
        ('prefix_rule(pattern=["a"], not_match=["a b"])', "a.rules:1: the not_match example 'a b' matches the rule"),
        ('prefix_rule(pattern=["a"], match=["a \'"])', "a.rules:1: the example"),
        ('network_rule(host="*.a", protocol="https", decision="allow")', "a.rules:1: a network_rule names one host"),
        ('host_executable(name="a", paths=["/b"])', "a.rules:1: the path '/b' does not end in the name 'a'"),
        ('load("b.rules", "x")', "a.rules:1: `load` is not allowed"),
        ("def f():\n  f()\nf()", "a.rules:2: Starlark call stack overflow"),
        ("x = y", "a.rules:1: Variable `y` not found"),
        ('\nfail("own words")', "a.rules:2: fail: own words"),
        ('open("/etc/passwd")', "a.rules:1: Variable `open` not found"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(text: str, told: str) -> None:
    assert mistake(text).startswith(told)
    assert "\n" not in mistake(text)


def test_a_loop_without_an_end_is_ended() -> None:
    told = mistake("def f():\n  for i in range(1 << 30):\n    pass\nf()", 0.1)
    assert told == "a.rules:2: it is not done after 0.1 s; does a loop never end?"


def test_an_example_counts_host_executables_and_base_names() -> None:
    hosts = 'host_executable(name="git", paths=["/usr/bin/git"])\n'
    assert rules(hosts + 'prefix_rule(pattern=["git"], match=["/usr/bin/git x"], not_match=["/opt/git x"])')
    assert "not_match" in mistake('prefix_rule(pattern=["git"], not_match=["/opt/git x"])')


def test_hosts_are_normalised() -> None:
    policy = evaluate(
        [Source("a.rules", 'network_rule(host="X.Test.:443", protocol="https_connect", decision="deny")\n'
                           'network_rule(host="[2001:db8::1]:80", protocol="http", decision="prompt")')], 10
    )  # fmt: skip
    assert [(rule.host, rule.protocol, rule.decision) for rule in policy.network] == [
        ("x.test", "https", "forbidden"),
        ("2001:db8::1", "http", "prompt"),
    ]

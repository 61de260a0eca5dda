"""The sentences people read, word for word."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


@pytest.mark.parametrize(
    ("allow", "deny", "place", "message", "hint"),
    [
        (["a.test"], [], "a.test", "a.test:443 is allowed by the rule a.test (--allow)", ""),
        ([], [], "a.test:22", "a.test:22 is in no allow rule", "--allow a.test:22"),
        (
            ["a.test"],
            [],
            "www.a.test",
            "www.a.test:443 is in no allow rule: the rule a.test (--allow) is that name alone, "
            "*.a.test the names below",
            "--allow '*.a.test'",
        ),
        (
            ["a.test"],
            [],
            "a.test:22",
            "the rule a.test (--allow) opens ports 80 and 443 of a.test, not port 22",
            "--allow a.test:22",
        ),
        (
            ["*"],
            ["*.d.test"],
            "x.d.test",
            "x.d.test:443 is denied by the rule *.d.test (--deny)",
            "leave out --deny '*.d.test'",
        ),
        (
            ["*"],
            [],
            "[fd00::7]:80",
            "fd00::7 is a private address; only a rule that names it opens it",
            "--allow '[fd00::7]'",
        ),
        (
            [],
            [],
            "169.254.169.254",
            "169.254.169.254 is a cloud metadata address, which hands out credentials; "
            "only a rule that names it opens it",
            "--allow 169.254.169.254",
        ),
        (
            ["*"],
            [],
            "metadata.google.internal",
            "metadata.google.internal is a cloud metadata service, which no wildcard covers; "
            "only its own name opens it",
            "--allow metadata.google.internal",
        ),
    ],
)  # fmt: skip
def test_by_name(asked: Make, allow: list[str], deny: list[str], place: str, message: str, hint: str) -> None:
    decision = asked(allow, deny)(place)
    assert (decision.message, decision.hint) == (message, hint)


@pytest.mark.parametrize(
    ("deny", "addresses", "message", "hint"),
    [
        (
            [],
            ["10.0.0.7", "fd00::7"],
            "a.test resolves to 10.0.0.7 (private), fd00::7 (private): a private address, "
            "and no rule for it opens that",
            """--allow '{host = "a.test", addresses = ["10.0.0.7", "fd00::7"]}'""",
        ),
        (
            [],
            ["169.254.169.254"],
            "a.test resolves to 169.254.169.254 (metadata): a cloud metadata address, which hands out credentials, "
            "and no rule for it opens that",
            "",
        ),
        (
            ["93.184.216.0/24"],
            ["93.184.216.34"],
            "a.test resolves to 93.184.216.34, which is denied by the rule 93.184.216.0/24 (--deny)",
            "leave out --deny 93.184.216.0/24",
        ),
    ],
)
def test_by_address(asked: Make, deny: list[str], addresses: list[str], message: str, hint: str) -> None:
    decision = asked(["a.test"], deny).resolved("a.test", *addresses).decision
    assert (decision.message, decision.hint) == (message, hint)


def test_a_rule_of_the_library_leaves_no_advice(asked: Make) -> None:
    from doorward.allowlists.host import Name
    from doorward.allowlists.rule import Origin, parse_rule
    from doorward.allowlists.ruleset import RuleSet

    rules = RuleSet.build([], [parse_rule("a.test", "deny", Origin("api", "deny"))])
    assert rules.decide(Name("a.test"), 443).hint == ""

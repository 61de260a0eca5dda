"""Rules as data: matching word by word, unknown words included, and the form they are kept in."""

from __future__ import annotations

import json

from doorward.gates.policy_rules import (
    NetworkRule,
    PrefixRule,
    begins_with,
    codex_document,
    from_plain,
    policy_of,
    to_plain,
)

PUSH = PrefixRule("git", [["push", "fetch"]], "prompt", "", "a.rules", 3)


def test_words_that_are_not_known_leave_a_match_open() -> None:
    rest = [["push"], ["-f", "--force"]]
    assert begins_with(("push", "-f", "x"), rest) is True
    assert begins_with(("push", "x"), rest) is False
    assert begins_with(("push",), rest) is False
    assert begins_with(("push", None), rest) is None
    assert begins_with((None, "x"), rest) is False
    assert begins_with(("push", ...), rest) is None
    assert begins_with(("pull", ...), rest) is False
    assert begins_with((...,), []) is True


def test_a_path_falls_back_to_its_base_name_only_when_asked() -> None:
    policy = policy_of([PUSH], {}, [])
    assert policy.matches(["/opt/git", "push"]) == ()
    (match,) = policy.matches(["/opt/x/../git", "push"], resolve_in="/")
    assert (match.rule, match.resolved_program) == (PUSH, "/opt/git")
    assert policy_of([PUSH], {"git": ["/bin/git"]}, []).matches(["/opt/git", "push"], resolve_in="/") == ()


def test_a_policy_survives_json() -> None:
    network = NetworkRule("a.test", "https", "forbidden", "no", "a.rules", 9)
    policy = policy_of([PUSH], {"git": ["/bin/git"]}, [network])
    kept = from_plain(json.loads(json.dumps(to_plain(policy))))
    assert kept.rules_for("git") == [PUSH]
    assert kept.host_executables == {"git": ["/bin/git"]}
    assert kept.network == (network,)


def test_the_document_of_codex() -> None:
    policy = policy_of([PUSH, PUSH._replace(rest=[], decision="allow", justification="x")], {}, [])
    argv = ["git", "fetch", "--all"]
    assert json.dumps(codex_document(argv, policy.matches(argv))) == (
        '{"matchedRules": [{"prefixRuleMatch": {"matchedPrefix": ["git", "fetch"], "decision": "prompt"}}, '
        '{"prefixRuleMatch": {"matchedPrefix": ["git"], "decision": "allow", "justification": "x"}}], '
        '"decision": "prompt"}'
    )
    assert codex_document(["x"], ()) == {"matchedRules": []}

"""The refusal entry of a denied run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.answer import Answer, settle
from doorward.gates.dial import Dial
from doorward.gates.policy_match import PolicyDecision, PolicyMatch
from doorward.gates.refusal import refusal_of
from doorward.gates.resolver import resolve

Shell = Callable[..., Action]


def test_it_has_the_keys_of_a_network_refusal_in_order_and_its_gate(dial: Dial, shell: Shell) -> None:
    assert refusal_of(resolve(dial, shell("tee", "/etc/hosts"))) == {
        "status": "blocked",
        "host": None,
        "port": None,
        "protocol": None,
        "method": None,
        "decision": "deny",
        "reason": "write_outside",
        "source": "gates",
        "rule": None,
        "message": "/etc/hosts is outside the workspace /srv/project; --add-dir /etc/hosts would open it",
        "hint": "--add-dir /etc/hosts",
        "gate": "sandbox",
    }
    assert list(refusal_of(resolve(dial, shell("tee", "/etc/hosts")))) == [
        *("status", "host", "port", "protocol", "method", "decision", "reason", "source", "rule", "message", "hint"),
        "gate",
    ]


def test_an_unanswered_question_is_told_from_a_no(dial: Dial, shell: Shell) -> None:
    asked = resolve(dial, shell("rm", "x"))
    unanswered, denied = (refusal_of(settle(asked, answer, "terminal")) for answer in (Answer.NOBODY, Answer.NO))
    assert (unanswered["decision"], unanswered["reason"], unanswered["hint"]) == ("ask", "not_answered", "-a never")
    assert (denied["decision"], denied["reason"]) == ("deny", "person_denied")


def test_a_policy_rule_is_named(dial: Dial, shell: Shell) -> None:
    match = PolicyMatch(PolicyDecision.FORBIDDEN, 'prefix_rule(pattern=["rm"])', "default.rules:1")
    refusal = refusal_of(resolve(dial._replace(policy=lambda action: [match]), shell("rm")))
    assert (refusal["rule"], refusal["hint"], refusal["gate"]) == (match.rule, None, "policy")


def test_only_a_deny_is_a_refusal(dial: Dial, shell: Shell) -> None:
    for action in (shell("ls"), shell("rm", "x")):
        with pytest.raises(ValueError, match="nothing was refused"):
            refusal_of(resolve(dial, action))

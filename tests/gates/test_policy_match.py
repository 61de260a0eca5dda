"""The strictest rule counts."""

from __future__ import annotations

from itertools import permutations

from doorward.gates.policy_match import PolicyDecision, PolicyMatch, strictest


def test_the_strictest_whatever_the_order() -> None:
    matches = [PolicyMatch(decision, "r", "f:1") for decision in PolicyDecision]
    for order in permutations(matches):
        got = strictest(order)
        assert got is not None and got.decision is PolicyDecision.FORBIDDEN
    assert strictest([]) is None

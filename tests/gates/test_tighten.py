"""A hook's word on a verdict: stricter or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.gates.action import Action
from doorward.gates.answer import Answer, settle
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve
from doorward.gates.tighten import tightened
from doorward.gates.verdict import Cause, Effect, Gate, Reason, Verdict

Shell = Callable[..., Action]
RANK = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}
EFFECTS = st.sampled_from([Effect.ALLOW, Effect.ASK, Effect.DENY])


@given(EFFECTS, st.lists(EFFECTS, max_size=4))
def test_it_can_only_tighten(before: Effect, hooks: list[Effect]) -> None:
    verdict = Verdict(before, Gate.APPROVAL, (Reason(Gate.APPROVAL, "s", before, "a sentence", Cause.RISKY),))
    for effect in hooks:
        after = tightened(verdict, effect, "hooks.before_exec", "a sentence", Cause.HOOK_DENIED)
        assert RANK[after.verdict] >= RANK[verdict.verdict]
        assert RANK[after.verdict] == max(RANK[verdict.verdict], RANK[effect])
        assert after.reasons[:-1] == verdict.reasons and after.deciding.effect is after.verdict
        verdict = after


def test_what_it_adds_is_asked_about_and_refused_like_anything_else(dial: Dial, shell: Shell) -> None:
    verdict = resolve(dial, shell("ls"))
    asking = tightened(verdict, Effect.ASK, "hooks.before_exec", "the hook wants it", Cause.HOOK_ASKED)
    assert (asking.verdict, asking.gate) == ("ask", "hook")
    assert settle(asking, Answer.YES, "terminal").verdict == "allow"
    assert settle(asking, Answer.NOBODY, "approvals").deciding.cause is Cause.NOT_ANSWERED
    assert tightened(asking, Effect.ALLOW, "hooks.before_exec", "fine").verdict == "ask"


@pytest.mark.parametrize("effect", [Effect.ALLOW, Effect.ASK])
def test_a_deny_stays_a_deny(dial: Dial, shell: Shell, effect: Effect) -> None:
    denied = resolve(dial, shell("tee", "/etc/hosts"))
    assert tightened(denied, effect, "hooks.before_exec", "fine").gate == "sandbox"

"""Decisions are data, and what the proxy adds to them keeps the shape."""

from collections.abc import Callable
from typing import Any

from doorward.allowlists.decision import Effect, Reason, Source


def test_what_the_proxy_saw_turns_an_allow_into_a_deny(asked: Callable[..., Any]) -> None:
    allowed = asked(["a.test"])("a.test")
    refused = allowed.refused(Reason.NAME_MISMATCH, Source.BASELINE_POLICY, "the TLS name is b.test")
    assert (refused.effect, refused.reason, refused.message) == (Effect.DENY, "name_mismatch", "the TLS name is b.test")
    assert refused.rule == allowed.rule and refused.hint == "" and refused.entry == ""


def test_a_question_nobody_answered_keeps_its_hint(asked: Callable[..., Any]) -> None:
    question = asked([], can_ask=True)("a.test")
    refused = question.refused(Reason.NOT_ANSWERED, Source.DECIDER, "asked, and nobody answered")
    assert refused.hint == question.hint == "--allow a.test"


def test_values_are_the_words_on_the_wire() -> None:
    assert [str(effect) for effect in Effect] == ["allow", "ask", "deny"]
    assert f"{Source.BASELINE_POLICY}" == "baseline_policy"

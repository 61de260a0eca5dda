"""Decisions are data, and what the proxy adds to them keeps the shape."""

from collections.abc import Callable
from typing import Any

import pytest

from doorward.allowlists import wording
from doorward.allowlists.decision import Decision, Effect, Reason, Source, Unsaid, Words
from doorward.allowlists.host import Name


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


def test_nothing_is_put_into_words_before_somebody_asks(
    asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a refusal says costs more than the refusal."""
    said: list[str] = []

    def saying(name: str) -> Callable[..., Words]:
        def say(*about: object) -> Words:
            said.append(name)
            return Words(name)

        return say

    for name in ("allowed", "denied", "not_allowed", "port_not_allowed", "local_literal", "metadata_name"):
        monkeypatch.setattr(wording, name, saying(name))
    rules = asked(["a.test", "*.internal"], ["d.test"])
    decisions = [
        rules(place)
        for place in ("a.test", "d.test", "www.a.test", "a.test:22", "10.0.0.1", "metadata.google.internal")
    ]
    assert said == []
    assert [decision.message for decision in decisions] == said
    assert said == ["allowed", "denied", "not_allowed", "port_not_allowed", "local_literal", "metadata_name"]
    assert [decision.hint for decision in decisions] == [""] * 6 and len(said) == 6  # found once


def test_words_count_as_what_they_say() -> None:
    """Whether they were said already or not."""
    unsaid = Unsaid(Words, "no", "--allow a.test", "a.test")
    assert unsaid == Words("no", "--allow a.test", "a.test") == unsaid == Unsaid(Words, *unsaid.words())
    assert hash(unsaid) == hash(unsaid.words()) and repr(unsaid) == repr(unsaid.words())
    assert unsaid != Unsaid(Words, "yes")


def test_a_decision_is_a_value(asked: Callable[..., Any]) -> None:
    rules = asked(["a.test"])
    assert rules("b.test") == rules("b.test") and rules("b.test") != rules("c.test")
    assert len({rules("b.test"), rules("b.test")}) == 1
    made = Decision(Effect.DENY, Reason.NOT_ALLOWED, Source.BASELINE_POLICY, None, Name("b.test"), 443, "no")
    assert (made.message, made.hint, made.entry) == ("no", "", "")
    changed = rules("b.test")._replace(source=Source.DECIDER)
    assert isinstance(changed, Decision) and changed.message == rules("b.test").message
    with pytest.raises(AttributeError):
        made.port = 80  # type: ignore[misc]

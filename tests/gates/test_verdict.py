"""The verdict as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Effect, Gate, Reason, Verdict


def test_the_document_has_exactly_the_keys_of_the_design(dial: Dial, shell: Callable[..., Action]) -> None:
    document = resolve(dial, shell("tee", "/etc/hosts")).to_json()
    assert list(document) == ["verdict", "gate", "reasons"]
    assert (document["verdict"], document["gate"]) == ("deny", "sandbox")
    reasons = document["reasons"]
    assert isinstance(reasons, list)
    assert all(list(reason) == ["gate", "switch", "effect", "sentence"] for reason in reasons)
    assert json.loads(json.dumps(document)) == document
    assert all(type(value) is str for reason in reasons for value in reason.values())


def test_a_verdict_nobody_decided_is_a_bug() -> None:
    with pytest.raises(ValueError, match="without the reason"):
        _ = Verdict(Effect.DENY, Gate.POLICY, (Reason(Gate.POLICY, "policy", Effect.PASS, "-"),)).deciding

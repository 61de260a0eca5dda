"""What an ask becomes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.answer import Answer, settle
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Cause

Shell = Callable[..., Action]


def test_nobody_means_no(dial: Dial, shell: Shell) -> None:
    asked = resolve(dial, shell("rm", "-rf", "build"))
    verdict = settle(asked, Answer.NOBODY, "terminal")
    assert (verdict.verdict, verdict.gate, verdict.deciding.cause) == ("deny", "approval", Cause.NOT_ANSWERED)
    assert verdict.deciding.sentence.startswith("ask, and nobody could answer")
    assert verdict.reasons[:-1] == asked.reasons


def test_a_clear_answer_is_the_last_reason(dial: Dial, shell: Shell) -> None:
    asked = resolve(dial, shell("rm", "-rf", "build"))
    assert settle(asked, Answer.YES, "terminal").verdict == "allow"
    no = settle(asked, Answer.NO, "approvals.queue")
    assert (no.verdict, no.deciding.cause, no.deciding.switch) == ("deny", Cause.PERSON_DENIED, "approvals.queue")


def test_only_an_ask_has_an_answer(dial: Dial, shell: Shell) -> None:
    for action in (shell("ls"), shell("tee", "/etc/hosts")):
        with pytest.raises(ValueError, match="nothing was asked"):
            settle(resolve(dial, action), Answer.YES, "terminal")

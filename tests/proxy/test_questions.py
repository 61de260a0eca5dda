"""Questions over the control channel: asked, answered, withdrawn."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from doorward.allowlists.host import Name
from doorward.allowlists.ruleset import RuleSet
from doorward.proxy.asking import Answer, Question
from doorward.proxy.channel import Channel
from doorward.proxy.control import Control
from doorward.proxy.loop import Group, Loop
from doorward.proxy.questions import Questions

RULES = RuleSet.build([], [], can_ask=True)
QUESTION = Question(Name("a.test"), 443, "https_connect", RULES.decide(Name("a.test"), 443))


class Supervisor:
    def __init__(self, loop: Loop) -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.control = Control(loop, ours)
        self.questions = Questions(loop, self.control)
        self.channel = Channel(loop, theirs)

    async def hears(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self.channel.recv())
        return message


@pytest.fixture
def supervisor(loop: Loop) -> Iterator[Supervisor]:
    made = Supervisor(loop)
    yield made
    made.control.close()
    made.channel.close()


@pytest.mark.parametrize("answer", [*Answer, "nonsense"])
def test_the_answer_comes_back_and_nonsense_is_no(loop: Loop, supervisor: Supervisor, answer: str) -> None:
    async def main() -> tuple[dict[str, Any], Answer]:
        async with Group(loop) as group:
            asking = group.start(supervisor.questions.decider("r1")(QUESTION))
            asked = await supervisor.hears()
            supervisor.questions.answer({"id": asked["id"], "answer": answer})
            return asked, await asking.wait()

    asked, given = loop.run(main())
    assert asked == {
        "type": "question",
        "id": 1,
        "run": "r1",
        "host": "a.test",
        "port": 443,
        "protocol": "https_connect",
        "message": "a.test:443 is in no allow rule",
        "hint": "--allow a.test",
    }
    assert given is (answer if isinstance(answer, Answer) else Answer.DENY)


def test_a_question_nobody_waits_for_is_withdrawn_and_its_answer_is_late(loop: Loop, supervisor: Supervisor) -> None:
    async def main() -> dict[str, Any]:
        async with Group(loop) as group:
            asking = group.start(supervisor.questions.decider("r1")(QUESTION))
            asked = await supervisor.hears()
            asking.cancel()
            withdrawn = await supervisor.hears()
            supervisor.questions.answer({"id": asked["id"], "answer": "allow-once"})
            return withdrawn

    assert loop.run(main()) == {"type": "withdrawn", "id": 1}

"""Asking: shared questions, withdrawal, silence, and answers kept for the session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Name
from doorward.allowlists.ruleset import RuleSet
from doorward.proxy.asking import Answer, Asking, Question
from doorward.proxy.channel import Channel
from doorward.proxy.loop import Group, Loop, Promise
from doorward.proxy.task import Cancelled, HungUp

Pair = Callable[[], tuple[Channel, Channel]]
RULES = RuleSet.build([], [], can_ask=True)


class Person:
    """Answers when told to."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.asked: list[Question] = []
        self.withdrawn = 0
        self.answer: Promise[Answer] = Promise(loop)

    async def decide(self, question: Question) -> Answer:
        self.asked.append(question)
        try:
            return await self.answer.wait()
        except Cancelled:
            self.withdrawn += 1
            raise


def question(host: str = "a.test", port: int = 443, protocol: str = "https_connect") -> Question:
    return Question(Name(host), port, protocol, RULES.decide(Name(host), port))


@pytest.mark.parametrize("answer", [Answer.ALLOW_ONCE, Answer.ALLOW_FOR_SESSION])
def test_a_yes_allows_exactly_what_was_asked(loop: Loop, pair: Pair, answer: Answer) -> None:
    person = Person(loop)

    async def main() -> Decision:
        async with Group(loop) as group:
            person.answer.set(answer)
            return await Asking(loop, group, person.decide, 60).ask(RULES, question(), pair()[0])

    decision = loop.run(main())
    assert decision.effect is Effect.ALLOW
    assert decision.source is Source.DECIDER
    assert decision.rule is not None
    assert decision.rule.text == "a.test:443"


@pytest.mark.parametrize("what", ["no", "silence", "error", "nonsense"])
def test_anything_but_a_yes_is_no(loop: Loop, pair: Pair, what: str) -> None:
    async def decide(question: Question) -> Answer:
        if what == "silence":
            await loop.sleep(1e6)
        if what == "error":
            raise ValueError("the queue is gone")
        return "yes, sure" if what == "nonsense" else Answer.DENY  # type: ignore[return-value]

    async def main() -> Decision:
        async with Group(loop) as group:
            return await Asking(loop, group, decide, 60).ask(RULES, question(), pair()[0])

    start = loop.now
    decision = loop.run(main())
    assert decision.effect is Effect.DENY
    assert decision.reason is Reason.NOT_ANSWERED
    assert decision.hint
    assert loop.now - start == pytest.approx(60 if what == "silence" else 0)


def test_concurrent_requests_share_one_question(loop: Loop, pair: Pair) -> None:
    person = Person(loop)

    async def main() -> list[Effect]:
        async with Group(loop) as group:
            asking = Asking(loop, group, person.decide, 60)
            tasks = [group.start(asking.ask(RULES, question(), pair()[0])) for _ in range(5)]
            other = group.start(asking.ask(RULES, question(port=80), pair()[0]))
            other_protocol = group.start(asking.ask(RULES, question(protocol="socks5_tcp"), pair()[0]))
            await loop.sleep(1)
            assert len(person.asked) == 3
            person.answer.set(Answer.ALLOW_ONCE)
            return [(await task.wait()).effect for task in [*tasks, other, other_protocol]]

    assert loop.run(main()) == [Effect.ALLOW] * 7


def test_once_is_asked_again_and_session_is_not(loop: Loop, pair: Pair) -> None:
    person = Person(loop)

    async def main() -> None:
        async with Group(loop) as group:
            asking = Asking(loop, group, person.decide, 60)
            person.answer.set(Answer.ALLOW_ONCE)
            for count in (1, 2):
                await asking.ask(RULES, question(), pair()[0])
                assert len(person.asked) == count
            person.answer = Promise(loop)
            person.answer.set(Answer.ALLOW_FOR_SESSION)
            for _ in range(3):
                assert (await asking.ask(RULES, question(), pair()[0])).effect is Effect.ALLOW
            assert len(person.asked) == 3
            await asking.ask(RULES, question(port=8443), pair()[0])
            assert len(person.asked) == 4

    loop.run(main())


def test_a_client_that_leaves_withdraws_its_question(loop: Loop, pair: Pair) -> None:
    person = Person(loop)

    async def main() -> None:
        async with Group(loop) as group:
            asking = Asking(loop, group, person.decide, 60)
            ours, theirs = pair()

            async def ask() -> None:
                with pytest.raises(HungUp):
                    await asking.ask(RULES, question(), ours)

            group.start(ask())
            await loop.sleep(1)
            theirs.close()
            await loop.sleep(1)
            assert person.withdrawn == 1
            assert asking._open == {}

    start = loop.now
    loop.run(main())
    assert loop.now - start < 10


def test_one_of_two_that_leaves_does_not_withdraw_for_the_other(loop: Loop, pair: Pair) -> None:
    person = Person(loop)

    async def main() -> Effect:
        async with Group(loop) as group:
            asking = Asking(loop, group, person.decide, 60)
            leaving, gone = pair()

            async def ask_and_leave() -> None:
                with pytest.raises(HungUp):
                    await asking.ask(RULES, question(), leaving)

            group.start(ask_and_leave())
            staying = group.start(asking.ask(RULES, question(), pair()[0]))
            await loop.sleep(1)
            gone.close()
            await loop.sleep(1)
            assert person.withdrawn == 0
            person.answer.set(Answer.ALLOW_ONCE)
            return (await staying.wait()).effect

    assert loop.run(main()) is Effect.ALLOW


def test_bytes_sent_ahead_are_not_leaving(loop: Loop, pair: Pair) -> None:
    person = Person(loop)

    async def main() -> Effect:
        async with Group(loop) as group:
            asking = Asking(loop, group, person.decide, 60)
            ours, theirs = pair()
            task = group.start(asking.ask(RULES, question(), ours))
            await loop.sleep(1)
            await theirs.send(b"impatient")
            await loop.sleep(1)
            person.answer.set(Answer.ALLOW_ONCE)
            return (await task.wait()).effect

    assert loop.run(main()) is Effect.ALLOW

"""Asks somebody about a host that is in no rule, and waits for the answer no longer than allowed.

- Concurrent requests for the same host, protocol and port share one question.
- A client that leaves withdraws its request; when nobody waits any more the question is withdrawn (its callback is
  cancelled).
- Silence, an error in the callback, and any answer but a clear yes mean no.
- "For this session" is remembered here, for exactly that host, protocol and port; the address guard still applies.
"""

from __future__ import annotations

from doorward.allowlists.decision import Decision, Reason, Source
from doorward.allowlists.host import Host
from doorward.allowlists.ruleset import RuleSet
from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum
from doorward.proxy.channel import Channel
from doorward.proxy.loop import Group, Loop, Promise
from doorward.proxy.task import DeadlinePassed, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeAlias

    Decider: TypeAlias = Callable[["Question"], Coroutine[Any, None, "Answer"]]
    """Runs on the loop; is cancelled when the question is withdrawn or its time is over."""
else:
    Decider = object


class Answer(StrEnum):
    """What may be said to a question."""

    ALLOW_ONCE = "allow-once"
    ALLOW_FOR_SESSION = "allow-for-session"
    DENY = "deny"


class Question(NamedTuple):
    """What is asked; `decision` is the rule set's, with its message and hint."""

    host: Host
    port: int
    protocol: str
    decision: Decision


class _Open:
    """A question that is being asked."""

    __slots__ = ("answer", "deadline", "task", "waiting")

    def __init__(self, answer: Promise[Answer | None], task: Task[None], deadline: float) -> None:
        self.answer = answer
        self.task = task
        self.deadline = deadline
        self.waiting = 0


class Asking:
    """The questions of one run. `group` runs the callbacks."""

    def __init__(self, loop: Loop, group: Group, decider: Decider, seconds: float) -> None:
        self._loop = loop
        self._group = group
        self._decider = decider
        self._seconds = seconds
        self._open: dict[tuple[Host, str, int], _Open] = {}
        self._for_session: dict[tuple[Host, str, int], Decision] = {}

    async def ask(self, rules: RuleSet, question: Question, client: Channel) -> Decision:
        """An allow, or a deny with `not_answered`. Raises HungUp when the client leaves first."""
        key = (question.host, question.protocol, question.port)
        known = self._for_session.get(key)
        if known is not None:
            return known
        asked = self._open.get(key)
        if asked is None:
            asked = self._open[key] = self._begin(rules, key, question)
        asked.waiting += 1
        try:
            answer = await self._answer(asked, client)
        finally:
            asked.waiting -= 1
            if not asked.waiting and self._open.get(key) is asked:
                del self._open[key]
                asked.task.cancel()
        if answer is Answer.ALLOW_ONCE:
            return rules.granted(question.decision, "once")
        if answer is Answer.ALLOW_FOR_SESSION:
            return self._for_session[key]
        why = "the answer was no" if answer is Answer.DENY else "nobody answered"
        message = f"{question.decision.message}, and when asked, {why}"
        return question.decision.refused(Reason.NOT_ANSWERED, Source.DECIDER, message)

    def _begin(self, rules: RuleSet, key: tuple[Host, str, int], question: Question) -> _Open:
        promise: Promise[Answer | None] = Promise(self._loop)

        async def work() -> None:
            try:
                answer = Answer(await self._decider(question))
                if answer is Answer.ALLOW_FOR_SESSION:
                    self._for_session[key] = rules.granted(question.decision, "for this session")
                promise.set(answer)
            except Exception:  # a decider that fails has not said yes
                promise.set(None)
            finally:
                promise.set(None)
                if key in self._open and self._open[key].answer is promise:
                    del self._open[key]  # whoever comes from now on asks anew

        return _Open(promise, self._group.start(work()), self._loop.now + self._seconds)

    async def _answer(self, asked: _Open, client: Channel) -> Answer | None:
        try:
            return await asked.answer.wait(asked.deadline, unless=client)
        except DeadlinePassed:
            return None

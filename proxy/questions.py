"""Questions about hosts, put to the supervisor over the control channel and answered from there.

    proxy to supervisor: {"type": "question", "id", "run", "host", "port", "protocol", "message", "hint"}
                         {"type": "withdrawn", "id"}: nobody waits for the answer any more
    supervisor to proxy: {"type": "answer", "id", "answer"}, one of the words of `asking.Answer`
"""

from __future__ import annotations

import itertools

from doorward.allowlists.host import host_text
from doorward.proxy.asking import Answer, Decider, Question
from doorward.proxy.control import Control
from doorward.proxy.loop import Loop, Promise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Questions:
    """Those of all runs of the process."""

    def __init__(self, loop: Loop, control: Control) -> None:
        self._loop = loop
        self._control = control
        self._numbers = itertools.count(1)
        self._open: dict[int, Promise[Answer]] = {}

    def decider(self, run: str) -> Decider:
        """What a run's door asks with."""

        async def decide(question: Question) -> Answer:
            number = next(self._numbers)
            promise = self._open[number] = Promise(self._loop)
            self._control.tell(
                {
                    "type": "question",
                    "id": number,
                    "run": run,
                    "host": host_text(question.host),
                    "port": question.port,
                    "protocol": question.protocol,
                    "message": question.decision.message,
                    "hint": question.decision.hint,
                }
            )
            try:
                return await promise.wait()
            finally:
                if self._open.pop(number, None) is not None:
                    self._control.tell({"type": "withdrawn", "id": number})

        return decide

    def answer(self, message: Mapping[str, Any]) -> None:
        """The supervisor has answered. What is no answer is a no; one that comes too late is none."""
        promise = self._open.pop(message["id"], None)
        if promise is not None:
            known = message["answer"] in list(Answer)
            promise.set(Answer(message["answer"]) if known else Answer.DENY)

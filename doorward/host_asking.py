"""The questions the proxy has about hosts while one command runs: into the queue, and the answers back.

Nothing here is shown on the terminal, which is the command's: a full-screen program is not disturbed.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from doorward.approvals import QUEUE, Approvals, HostKey, network_question
from doorward.gates.action import Action
from doorward.gates.answer import Answer, Reply, Scope
from doorward.pending import Pending
from doorward.proxy_process import ProxyProcess
from doorward.question import Question
from doorward.session_log import SessionLog

_WORDS = {Scope.ONCE: "allow-once", Scope.SESSION: "allow-for-session", Scope.ALWAYS: "allow-for-session"}


class HostAsking:
    """Those of one run. A no holds for the rest of the run, a yes for the session where it was meant so."""

    def __init__(self, approvals: Approvals, log: SessionLog, proxy: ProxyProcess, action: Action) -> None:
        self._approvals = approvals
        self._log = log
        self._proxy = proxy
        self._action = action
        self._open: dict[int, Pending] = {}
        self._refused: set[HostKey] = set()

    def hear(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """What the proxy says: `question` or `withdrawn`."""
        for message in messages:
            if message["type"] == "question":
                self._asked(message)
            elif (pending := self._open.pop(message["id"], None)) is not None:
                pending.close()
                self._log.answered(pending.question.id, Reply(Answer.NOBODY), QUEUE)

    def register(self, poll: select.poll, readers: dict[int, Callable[[], object]]) -> None:
        """Add what is to be waited for."""
        for number, pending in self._open.items():
            for descriptor in pending.descriptors():
                poll.register(descriptor, select.POLLIN)
                readers[descriptor] = partial(self._ready, number, descriptor)

    def close(self) -> None:
        """The run is over: what is still open is asked no more."""
        for pending in self._open.values():
            pending.close()
        self._open.clear()

    def _asked(self, message: Mapping[str, Any]) -> None:
        number = int(message["id"])
        key = (str(message["host"]), int(message["port"]), str(message["protocol"]))
        if key in self._approvals.granted_hosts:
            self._proxy.answer(number, "allow-for-session")
        elif key in self._refused:
            self._proxy.answer(number, "deny")
        else:
            question = network_question(message, self._action, self._log.session, self._approvals)
            self._log.asked(question.document(), QUEUE)
            self._open[number] = self._approvals.open(question, partial(self._take, number, key, question))

    def _ready(self, number: int, descriptor: int) -> None:
        pending = self._open.get(number)
        if pending is None or descriptor not in pending.descriptors():
            return  # it was answered or withdrawn in the same round
        pending.ready(descriptor)
        if pending.reply is not None:
            del self._open[number]
            pending.close()

    def _take(self, number: int, key: HostKey, question: Question, reply: Reply) -> str:
        why = self._approvals.take(self._log, question, reply, QUEUE)
        if why:
            return why
        if reply.answer is Answer.YES:
            if reply.scope is not Scope.ONCE:
                self._approvals.granted_hosts.add(key)
            self._proxy.answer(number, _WORDS[reply.scope])
        else:
            self._refused.add(key)
            self._proxy.answer(number, "deny")
        return ""

"""The questions of the door alone about hosts: into the pending queue, and the answers back to the worker that asked.

A yes for the session holds while this door runs, in every worker; a no until the same place is asked for again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from doorward.callback_loop import EventLoop
from doorward.errors import EngineError
from doorward.gates.answer import Answer, Reply, Scope
from doorward.notifier import Notifier
from doorward.pending import Pending
from doorward.question import Question, new_id
from doorward.sessions.home import Home
from doorward.sessions.timestamps import rfc3339
from doorward.worker_process import WorkerProcess

_WORDS = {Scope.ONCE: "allow-once", Scope.SESSION: "allow-for-session", Scope.ALWAYS: "allow-for-session"}

HostKey = tuple[str, int, str]
"""Host, port, protocol."""


class _Asked:
    """One question, and the workers whose clients wait for its answer, each with its own number for it."""

    def __init__(self, key: HostKey) -> None:
        self.key = key
        self.pending: Pending | None = None
        self.waiting: list[tuple[WorkerProcess, int]] = []
        self.watched: set[int] = set()


class DoorAsking:
    """Those of all workers; two that ask about the same place share one question."""

    def __init__(self, loop: EventLoop, home: Home, settings: Mapping[str, Any], say: Callable[[str], None]) -> None:
        """`settings` are those of the door (opening.settings_for); `say` tells a person."""
        self._loop = loop
        self._home = home
        self._seconds = float(settings["answer_time"])
        self._notifier = Notifier(settings["approvals"]["notify"], settings["approvals"]["desktop"], os.environ)
        self._say = say
        self._asked: dict[HostKey, _Asked] = {}
        self._granted: set[HostKey] = set()

    def hear(self, worker: WorkerProcess, message: Mapping[str, Any]) -> None:
        """A `question`, or that one is `withdrawn` (proxy/questions.py)."""
        if message["type"] == "question":
            self._question(worker, message)
            return
        for asked in tuple(self._asked.values()):
            if (worker, message["id"]) in asked.waiting:
                asked.waiting.remove((worker, message["id"]))
                self._close_if_alone(asked)

    def forget(self, worker: WorkerProcess) -> None:
        """The worker has ended, its clients with it."""
        for asked in tuple(self._asked.values()):
            asked.waiting = [each for each in asked.waiting if each[0] is not worker]
            self._close_if_alone(asked)

    def close(self) -> None:
        """Nobody is asked any more."""
        for asked in tuple(self._asked.values()):
            asked.waiting.clear()
            self._close_if_alone(asked)
        self._notifier.close()

    def _question(self, worker: WorkerProcess, message: Mapping[str, Any]) -> None:
        key = (str(message["host"]), int(message["port"]), str(message["protocol"]))
        number = int(message["id"])
        if key in self._granted:
            worker.send({"type": "answer", "id": number, "answer": "allow-for-session"})
            return
        asked = self._asked.get(key)
        if asked is not None:
            asked.waiting.append((worker, number))
            return
        asked = self._asked[key] = _Asked(key)
        asked.waiting.append((worker, number))
        question = self._about(key, str(message["message"]))
        try:
            asked.pending = Pending(self._home, question, partial(self._take, asked, question))
        except EngineError as error:
            self._say(f"nobody can be asked: {error}")
            self._answer(asked, "deny")
            return
        self._watch(asked)
        problems = len(self._notifier.problems)
        self._notifier.tell(question)
        for problem in self._notifier.problems[problems:]:
            self._say(problem)
        self._say(f"{question.subject} is asked about: doorward approvals allow {question.id}")

    def _about(self, key: HostKey, why: str) -> Question:
        host, port, protocol = key
        return Question(
            id=new_id(),
            kind="network",
            argv=("doorward", "proxy"),
            cwd=os.getcwd(),
            gate="network",
            asked_at=rfc3339(time.time_ns()),
            timeout_s=self._seconds,
            why=(why,),
            rule=f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            rule_note="adds this rule to network.allow in config.toml: from then on every run may reach that place",
            host=host,
            port=port,
            protocol=protocol,
        )

    def _take(self, asked: _Asked, question: Question, reply: Reply) -> str:
        if reply.answer is not Answer.YES:
            self._answer(asked, "deny")
            return ""
        if reply.scope is Scope.ALWAYS:
            from doorward.approval_memory import keep_host

            if why := keep_host(self._home, question.rule):
                return why
        if reply.scope is not Scope.ONCE:
            self._granted.add(asked.key)
        self._answer(asked, _WORDS[reply.scope])
        return ""

    def _answer(self, asked: _Asked, word: str) -> None:
        self._say(f"{asked.key[0]}:{asked.key[1]}: {word}")
        for worker, number in asked.waiting:
            worker.send({"type": "answer", "id": number, "answer": word})
        asked.waiting.clear()
        if self._asked.get(asked.key) is asked:
            del self._asked[asked.key]

    def _close_if_alone(self, asked: _Asked) -> None:
        if not asked.waiting and self._asked.get(asked.key) is asked:
            del self._asked[asked.key]
            self._end(asked)

    def _watch(self, asked: _Asked) -> None:
        """Listen to what the question can be answered on now."""
        assert asked.pending is not None
        wanted = set(asked.pending.descriptors())
        for descriptor in asked.watched - wanted:
            self._loop.remove_reader(descriptor)
        for descriptor in wanted - asked.watched:
            self._loop.add_reader(descriptor, partial(self._ready, asked, descriptor))
        asked.watched = wanted

    def _ready(self, asked: _Asked, descriptor: int) -> None:
        pending = asked.pending
        if pending is None or descriptor not in pending.descriptors():
            return
        # before it is closed: its number may be another's at once
        self._loop.remove_reader(descriptor)
        asked.watched.discard(descriptor)
        pending.ready(descriptor)
        if pending.reply is not None:
            self._end(asked)
        else:
            self._watch(asked)

    def _end(self, asked: _Asked) -> None:
        for descriptor in asked.watched:
            self._loop.remove_reader(descriptor)
        asked.watched.clear()
        if asked.pending is not None:
            asked.pending.close()

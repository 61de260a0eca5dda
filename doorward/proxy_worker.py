"""One worker of the door alone: a forked process that runs the door and obeys its supervisor.

JSON lines over a stream socket:

  supervisor -> worker: {"type": "policy", "number", "settings", "links"}, {"type": "reopen_log"}, {"type": "stop"}
    (the first drains, the second ends), {"type": "answer"} (proxy/questions.py)
  worker -> supervisor: {"type": "ready"}, {"type": "applied", "number"}, {"type": "not_applied", "number", "message"},
    {"type": "item", "item"} (if records are wanted), {"type": "fault", "message"}, {"type": "log", "problem", "lost"},
    {"type": "question"}, {"type": "withdrawn"}, {"type": "not_trusted", "host", "message"} (proxy/inspection)

A second socket brings the links to inspection workers (proxy/inspection/succession.py).

The end of the socket ends the worker: nothing outlives the supervisor.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from doorward.connection_log import ConnectionLog, LogFailed
from doorward.proxy import records
from doorward.proxy.alone import RUN, DoorAlone
from doorward.proxy.control import Control
from doorward.proxy.loop import Group, Promise
from doorward.proxy.policy import Policy, policy_from_settings
from doorward.proxy.questions import Questions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.asking import Answer, Question
    from doorward.proxy.inspection.succession import Succession
    from doorward.proxy.records import Item

HELD_BACK = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that a fork must not find half-way between the two processes' handlers."""

_COLLECT_AFTER = 10_000  # objects; connections make many, and hardly a cycle among them


_OF_INSPECTION = frozenset(("http_exchange", "credential_used", "inspection_not_trusted"))
"""Events that become lines of the log beside the connections'."""

_ANSWER_TIME = 300.0
"""Seconds, where the queue is switched on while the door runs."""


class WorkerSetup(NamedTuple):
    """What all workers have in common. `own` are sockets of this program that no client may reach through the door."""

    log: ConnectionLog | None
    reports: bool
    drain_time: float
    own: tuple[socket.socket, ...]


def become_worker(
    wire: socket.socket,
    links: socket.socket | None,
    listeners: Iterable[socket.socket],
    policy: Policy,
    setup: WorkerSetup,
) -> NoReturn:
    """The child after the fork, to its end. `HELD_BACK` are blocked; the door unblocks them when its handlers stand."""
    status = 1
    try:
        os.setsid()  # Ctrl-C of a terminal is for the supervisor, who asks the workers to drain
        signal.set_wakeup_fd(-1)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        # what the supervisor left here is never collected: its descriptors' numbers will be in use again
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER, 20, 20)
        listeners = tuple(listeners)
        sockets = (wire, *(() if links is None else (links,)), *listeners, *setup.own)
        kept = [0, 1, 2, *(sock.fileno() for sock in sockets)]
        _close_all_but(kept if setup.log is None else [*kept, setup.log.fileno()])
        _raise_descriptor_limit()
        Worker(wire, links, listeners, policy, setup).run()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


class Worker:
    """The door and its wire."""

    def __init__(
        self,
        wire: socket.socket,
        links: socket.socket | None,
        listeners: Iterable[socket.socket],
        policy: Policy,
        setup: WorkerSetup,
    ) -> None:
        self._setup = setup
        self._links = links
        self._succession: Succession | None = None
        self._door = DoorAlone(
            listeners,
            policy,
            self._keep,
            keeps=setup.log is not None or setup.reports,
            decider=self._ask,
            answer_time=policy.answer_time or _ANSWER_TIME,
            on_error=self._fault,
            drain_time=setup.drain_time,
            beside=self._obey,
        )
        for sock in setup.own:
            self._door.server.way.own.add(sock)
            sock.close()
        self._control = Control(self._door.loop, wire)
        self._questions = Questions(self._door.loop, self._control)
        self._wanted: tuple[int, Mapping[str, object], int] | None = None
        self._changed: Promise[None] = Promise(self._door.loop)
        self._log_problem = ""

    async def _ask(self, question: Question) -> Answer:
        return await self._questions.decider(RUN)(question)

    def run(self) -> None:
        """Until the supervisor ends it."""
        self._door.serve()

    def _keep(self, run: str, item: Item) -> None:
        """Raises LogFailed: then the client gets no answer, and what it asked for does not happen."""
        if self._setup.reports:
            self._control.tell({"type": "item", "item": item})
        payload = item["payload"]
        inspected = item["type"] == "event" and payload["type"] in _OF_INSPECTION
        if inspected and payload["type"] == "inspection_not_trusted":
            self._control.tell({"type": "not_trusted", "host": payload["host"], "message": payload["message"]})
        log = self._setup.log
        if log is None:
            return
        try:
            if item["type"] == "network" or inspected:
                log.write(payload, time.time())
            else:
                log.flush()
        except LogFailed as error:
            self._log_is(str(error), log)
            raise
        if self._log_problem:
            self._log_is("", log)

    def _log_is(self, problem: str, log: ConnectionLog) -> None:
        if problem != self._log_problem:
            self._log_problem = problem
            self._control.tell({"type": "log", "problem": problem, "lost": log.lost})

    def _fault(self, error: BaseException) -> None:
        if not isinstance(error, LogFailed):
            self._control.tell({"type": "fault", "message": records.fault(error)["payload"]["message"]})

    async def _obey(self) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
        try:
            async with Group(self._door.loop) as group:
                group.start(self._control.write())
                group.start(self._apply(group))
                await self._control.messages(self._handle)
                group.cancel()
        finally:
            self._door.server.close()
            await self._control.flush()

    def _handle(self, message: Mapping[str, Any]) -> None:
        kind = message["type"]
        if kind == "policy":
            self._wanted = (message["number"], message["settings"], message["links"])
            self._changed.set(None)
        elif kind == "answer":
            self._questions.answer(message)
        elif kind == "stop":
            self._door.stop()
        elif kind == "reopen_log" and self._setup.log is not None:
            try:
                self._setup.log.reopen()
            except LogFailed as error:
                self._log_is(str(error), self._setup.log)

    async def _inspectable(self, group: Group, policy: Policy, links: int) -> None:
        """Before rules that need an inspection worker are in force its link, the so-manieth, is there."""
        if policy.inspection is not None and self._links is not None:
            if self._succession is None:
                from doorward.proxy.inspection.succession import Succession  # only for those who need it

                self._succession = Succession(self._door.loop, self._links, self._door.server)
                group.start(self._succession.run(group, self._fault))
            await self._succession.has(links)

    async def _apply(self, group: Group) -> None:
        """Put the newest rules in force. They are read beside the loop: a long list must not hold connections up."""
        loop = self._door.loop
        await self._inspectable(group, self._door.server.policy, 1)
        self._control.tell({"type": "ready"})
        while True:
            await self._changed.wait()
            self._changed = Promise(loop)
            assert self._wanted is not None
            number, settings, links = self._wanted
            try:
                policy = await loop.in_thread(lambda settings=settings: policy_from_settings(settings))  # type: ignore[misc]
            except Exception as error:  # the supervisor has read the same: whatever it is, the old rules hold
                self._control.tell({"type": "not_applied", "number": number, "message": str(error)})
                continue
            await self._inspectable(group, policy, links)
            self._door.server.reload(policy)
            if policy.inspection is None and self._succession is not None:
                self._succession.retire()
            self._control.tell({"type": "applied", "number": number})


def _close_all_but(kept: Iterable[int]) -> None:
    """Close every other descriptor, whichever object of the supervisor's held it."""
    keep = set(kept)
    for fd in [int(each) for each in os.listdir("/dev/fd")]:
        if fd not in keep:
            try:
                os.close(fd)
            except OSError:
                pass  # it was the listing's own


def _raise_descriptor_limit() -> None:
    """A connection takes two descriptors and up to four of pipes, and the usual soft limit is 1024."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass

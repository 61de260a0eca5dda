"""The proxy process of a run: started by a fork, fed through two sockets, ended by the end of one.

`control` brings policies and the end of runs and takes records; `handover` brings the listeners, one descriptor a
message. A process serves several runs under several policies. When `control` ends, whatever the reason, everything is
closed and the function returns: nothing here outlives its supervisor.

The start counts: a policy is read, and `ready` told, with the rules loaded and nothing else; one that says nothing, as
most runs' does, cannot be wrong and is read later. What speaks protocols is imported right behind that, or where the
policy came with `hold`, when `serve` says that the command starts: sooner it would take the sandbox's processor.
Connections that come sooner wait in the listeners' queues.
"""

from __future__ import annotations

import _socket
import gc
import select

from doorward.proxy.control import Control
from doorward.proxy.handover import Handover, take
from doorward.proxy.loop import Group, Loop, Promise
from doorward.proxy.task import DeadlinePassed, Task, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import Any

    from doorward.proxy.policy import Policy
    from doorward.proxy.runs import Runs
else:
    import _signal as signal  # the same functions without the enums, which cost 0.5 ms

# The first four reach the whole group, and the supervisor decides what they mean; SIGPIPE comes as EPIPE instead.
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE)
_LAST_WORDS = 5.0  # seconds for the supervisor to take the last records
_COLLECT_AFTER = 10_000  # objects; connections make many, and hardly a cycle among them
# Seconds from the release of a command until it may ask for something, or has ended; and until then the sandbox and the
# command have the processors for themselves.
_SHORTEST = 0.002
# What serves connections, in steps of at most 1 ms: between them a `finish` is heard.
_PARTS = (
    *("doorward.allowlists.host", "doorward.allowlists.pattern", "doorward.allowlists.rule"),
    *("doorward.allowlists.index", "doorward.allowlists.settings", "doorward.proxy.policy"),
    *("doorward.proxy.llhttp", "doorward.proxy.target", "doorward.proxy.http1_write", "doorward.proxy.records"),
    *("doorward.proxy.own_listeners", "doorward.proxy.http1_head", "doorward.proxy.admission"),
    *("doorward.proxy.server", "doorward.proxy.runs"),
)
# What the first answer waits for, who asked; and what is only needed where something is allowed. Most commands take
# longer than that to get so far; shorter ones and what is refused go without. Milliseconds are left between two, in
# which whoever asks sooner is answered, and the end of a short command heard.
_OF_FIRST_ANSWERS = ("doorward.proxy.attribution",)
_OF_ALLOWED = (
    *("doorward.proxy.connecting", "doorward.proxy.forward", "functools", "ipaddress"),
    *("doorward.proxy.tunnelling", "doorward.proxy.socks5_connection"),
)
_PAUSE = 0.003
_LATER = 0.025
_LAST_ROUNDS = 8  # of the loop, in which what waits in a listener's queue is accepted, read, decided and recorded


def run_proxy(
    control: _socket.socket, handover: _socket.socket, inspection: _socket.socket | None = None
) -> None:
    """The body of the proxy process; returns when it is told to shut down, or when `control` ends. `inspection` leads
    to the inspection worker, if one is started."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    loop = Loop()
    try:
        loop.run(ProxyProcess(loop, control, handover, inspection).run())
    finally:
        loop.close()


class ProxyProcess:
    """What one process does: obeys, and takes listeners over."""

    def __init__(
        self, loop: Loop, control: _socket.socket, handover: _socket.socket, inspection: _socket.socket | None
    ) -> None:
        self._loop = loop
        self._inspection = inspection
        self._control = Control(loop, control)
        self._handover = handover
        self._policies: dict[str, Policy] = {}
        self._unread: dict[str, Mapping[str, object]] = {}  # the settings of policies that say nothing
        self._early: list[Handover] = []  # not served yet
        self._group = Group(loop)
        self._end: Promise[None] = Promise(loop)
        self._loaded: Runs | None = None
        self._loading: Task[None] | None = None

    async def run(self) -> None:
        """Until the end."""
        try:
            async with self._group as group:
                work = [group.start(work) for work in (self._control.write(), self._listen(), self._take_listeners())]
                await self._end.wait()
                # what is still loading must not open doors after the end: nobody would ever close them
                if self._loading is not None:
                    self._loading.cancel()
                if self._loaded is not None:
                    self._loaded.close()
                for task in work:
                    task.cancel()
            try:
                await self._control.flush(self._loop.now + _LAST_WORDS)
            except (OSError, DeadlinePassed):
                pass  # nobody is there, or listens, any more
        finally:
            for brought in self._early:
                _close(brought)
            if self._loaded is not None:
                self._loaded.free()
            self._control.close()

    async def _load(self) -> None:
        await self._loop.sleep(_SHORTEST)
        for part in _PARTS:
            __import__(part)
            await self._loop.turn()
        self._serve()
        for parts in (_OF_FIRST_ANSWERS, _OF_ALLOWED):
            for part in parts:
                await self._loop.sleep(_PAUSE)
                __import__(part)
            await self._loop.sleep(_LATER)

    def _serve(self) -> None:
        """From now on listeners are served as they come."""
        if self._loaded is None:
            from doorward.proxy.policy import policy_from_settings
            from doorward.proxy.runs import Runs

            for policy_id, settings in self._unread.items():
                self._policies[policy_id] = policy_from_settings(settings)
            self._unread.clear()
            self._loaded = Runs(self._loop, self._group, self._control, self._inspection)
            _raise_descriptor_limit()
            gc.freeze()  # what was imported stays: the collector need not walk it again
            gc.set_threshold(_COLLECT_AFTER, 20, 20)
            gc.enable()  # a run switches it off for its start, before it forks this process
        early, self._early = self._early, []
        for brought in early:
            self._open(brought)

    async def _listen(self) -> None:
        try:
            await self._control.messages(self._obey)
        finally:
            self._end.set(None)

    def _obey(self, message: Mapping[str, Any]) -> None:
        kind = message["type"]
        if kind == "configure":
            self._configure(message["policy"], message["settings"])
            if self._loaded is None and not message.get("hold"):
                self._serve()
        elif kind == "serve":
            if self._loaded is None and self._loading is None:
                self._loading = self._group.start(self._load())
        elif kind == "answer":
            if self._loaded is not None:
                self._loaded.questions.answer(message)
        elif kind == "finish":
            self._finish(message["run"])
        elif kind == "shutdown":
            self._end.set(None)
        else:
            raise ValueError(f"a control message of unknown type {kind!r}")

    def _configure(self, policy_id: str, settings: Mapping[str, object]) -> None:
        """A new policy, or new contents for one in use."""
        if self._loaded is None and policy_id not in self._policies:
            if not any(settings.values()):
                self._unread[policy_id] = settings
                self._control.tell({"type": "ready", "policy": policy_id, "notices": []})
                return
            self._unread.pop(policy_id, None)
        from doorward.allowlists.rule import MalformedRule
        from doorward.allowlists.settings import MalformedSettings
        from doorward.proxy.limits import MalformedLimit
        from doorward.proxy.parent import MalformedParent
        from doorward.proxy.policy import policy_from_settings

        try:
            policy = policy_from_settings(settings)
        except MalformedRule as error:
            self._complain(policy_id, str(error), error.entry, error.origin.where)
            return
        except (MalformedSettings, MalformedLimit, MalformedParent) as error:
            self._complain(policy_id, str(error))
            return
        self._policies[policy_id] = policy
        self._control.tell({"type": "ready", "policy": policy_id, "notices": list(policy.notices)})
        if self._loaded is not None:
            self._loaded.reload(policy_id, policy)
            self._serve()

    def _complain(self, policy_id: str, message: str, entry: str | None = None, where: str | None = None) -> None:
        """A policy that cannot be (the old contents, if any, stay in force), or a listener that is none."""
        self._control.tell({"type": "error", "policy": policy_id, "message": message, "entry": entry, "where": where})

    def _finish(self, run: str) -> None:
        self._take_waiting_listeners()  # one may have been handed over for this very run
        early = [brought for brought in self._early if brought.run == run]
        if self._loaded is None and any(_has_news(brought) for brought in early):
            self._group.start(self._finish_after_all(run))
            return
        for brought in early:
            self._early.remove(brought)
            _close(brought)
        if self._loaded is not None:
            self._loaded.finish(run)
        else:
            self._control.tell({"type": "finished", "run": run})

    async def _finish_after_all(self, run: str) -> None:
        """The run was over before its door was served, and somebody had knocked: what was asked is put on record."""
        self._serve()
        for _ in range(_LAST_ROUNDS):
            await self._loop.turn()
        self._finish(run)

    async def _take_listeners(self) -> None:
        self._handover.setblocking(False)
        watch = Watch(self._loop, self._handover.fileno())
        try:
            while self._take_waiting_listeners():
                watch.can_read = False
                await watch.readable()
        finally:
            watch.forget(shared=True)
            self._handover.close()

    def _take_waiting_listeners(self) -> bool:
        """Take every listener that was handed over; False when no more can come."""
        while True:
            try:
                brought = take(self._handover)
            except BlockingIOError:
                return True
            if brought is None:
                return False
            if brought.socket is None and not brought.refused:
                self._complain(brought.policy, f"a handover brought no usable socket for {brought.kind!r}")
            else:
                self._open(brought)

    def _open(self, brought: Handover) -> None:
        policy = self._policies.get(brought.policy)
        if policy is None or self._loaded is None:
            self._early.append(brought)
        else:
            self._loaded.open(brought, policy)


def _has_news(brought: Handover) -> bool:
    """Whether somebody has knocked, or there is something to put on record."""
    if brought.socket is None:
        return True
    poll = select.poll()
    poll.register(brought.socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _close(brought: Handover) -> None:
    if brought.socket is not None:
        brought.socket.close()


def _raise_descriptor_limit() -> None:
    """A connection takes two descriptors, and the usual soft limit is 1024."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            pass

"""The proxy process of a run: started by a fork, fed through two sockets, ended by the end of one.

`control` brings policies and the end of runs and takes records; `handover` brings the listeners, one descriptor a
message. A process serves several runs under several policies; a run is one `Server`. When `control` ends, whatever the
reason, everything is closed and the function returns: nothing here outlives its supervisor.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
from collections.abc import Mapping
from typing import Any

from doorward.allowlists.rule import MalformedRule
from doorward.allowlists.settings import MalformedSettings
from doorward.proxy import records
from doorward.proxy.admission import Way
from doorward.proxy.control import Control, SupervisorGone
from doorward.proxy.dial import SocketDialler
from doorward.proxy.limits import MalformedLimit
from doorward.proxy.loop import Group, Loop, Promise, Watch
from doorward.proxy.own_listeners import OwnListeners
from doorward.proxy.parent import MalformedParent
from doorward.proxy.policy import Policy, policy_from_settings
from doorward.proxy.resolver import SystemResolver
from doorward.proxy.server import Server
from doorward.proxy.splice import PipePool

_MESSAGE = 64 * 1024  # bytes of one handover message
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)


def run_proxy(control: socket.socket, handover: socket.socket) -> None:
    """The body of the proxy process; returns when it is told to shut down, or when `control` ends."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)  # they reach the whole group; the supervisor decides what they mean
    _raise_descriptor_limit()
    gc.freeze()  # what was imported stays: the collector need not walk it again
    loop = Loop()
    try:
        loop.run(ProxyProcess(loop, control, handover).run())
    finally:
        loop.close()


class ProxyProcess:
    """The runs of one process."""

    def __init__(self, loop: Loop, control: socket.socket, handover: socket.socket, way: Way | None = None) -> None:
        self._loop = loop
        self._control = Control(loop, control)
        self._handover = handover
        self._way = way or Way(loop, SystemResolver(loop), SocketDialler(), OwnListeners())
        self._pipes = PipePool()
        self._via = b"doorward-" + os.urandom(4).hex().encode("ascii")
        self._policies: dict[str, Policy] = {}
        self._runs: dict[str, tuple[str, Server]] = {}  # by run: its policy's id, its door
        self._early: list[tuple[str, str, socket.socket]] = []  # listeners whose policy is still to come
        self._group = Group(loop)
        self._end: Promise[None] = Promise(loop)

    async def run(self) -> None:
        """Until the end."""
        try:
            async with self._group as group:
                writer = group.start(self._control.write())
                reader = group.start(self._listen())
                takeover = group.start(self._take_listeners())
                await self._end.wait()
                for _, server in self._runs.values():
                    server.close()
                reader.cancel()
                takeover.cancel()
                writer.cancel()
            await self._control.flush()
        finally:
            for _, _, listener in self._early:
                listener.close()
            self._control.close()
            self._pipes.close()

    async def _listen(self) -> None:
        try:
            await self._control.messages(self._obey)
        finally:
            self._end.set(None)

    def _obey(self, message: Mapping[str, Any]) -> None:
        kind = message["type"]
        if kind == "receipt":
            self._control.settle(message["id"])
        elif kind == "configure":
            self._configure(message["policy"], message["settings"])
        elif kind == "finish":
            self._finish(message["run"])
        elif kind == "shutdown":
            self._end.set(None)
        else:
            raise ValueError(f"a control message of unknown type {kind!r}")

    def _configure(self, policy_id: str, settings: Mapping[str, object]) -> None:
        """A new policy, or new contents for one in use."""
        try:
            policy = policy_from_settings(settings)
        except MalformedRule as error:
            self._fail(policy_id, str(error), error.entry, error.origin.where)
            return
        except (MalformedSettings, MalformedLimit, MalformedParent) as error:
            self._fail(policy_id, str(error), None, None)
            return
        self._policies[policy_id] = policy
        for used, server in self._runs.values():
            if used == policy_id:
                server.reload(policy)
        early, self._early = self._early, []
        for run, wanted, listener in early:
            self._open(run, wanted, listener)
        self._control.tell({"type": "ready", "policy": policy_id, "notices": list(policy.rules.notices)})

    def _fail(self, policy_id: str, message: str, entry: str | None, where: str | None) -> None:
        """A policy that cannot be: the old contents, if any, stay in force."""
        self._control.tell({"type": "error", "policy": policy_id, "message": message, "entry": entry, "where": where})

    def _finish(self, run: str) -> None:
        """The run's door closes; `finished` follows its last record."""
        self._take_waiting_listeners()  # one may have been handed over for this very run
        for entry in [entry for entry in self._early if entry[0] == run]:
            self._early.remove(entry)
            entry[2].close()
        if run in self._runs:
            self._runs[run][1].close()  # `_serve` tells when it is done
        else:
            self._control.tell({"type": "finished", "run": run})

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
                data, ancillary, _, _ = self._handover.recvmsg(_MESSAGE, socket.CMSG_SPACE(16 * 4))
            except BlockingIOError:
                return True
            except OSError:
                return False
            descriptors = _descriptors(ancillary)
            if not data:
                return False
            listener = _listener(descriptors)
            message = json.loads(data)
            if listener is None or message.get("listener") != "proxy":
                complaint = {"message": "a handover brought no usable listener", "entry": None, "where": None}
                self._control.tell({"type": "error", "policy": message.get("policy"), **complaint})
                if listener is not None:
                    listener.close()
                continue
            self._open(message["run"], message["policy"], listener)

    def _open(self, run: str, policy_id: str, listener: socket.socket) -> None:
        policy = self._policies.get(policy_id)
        if policy is None:
            self._early.append((run, policy_id, listener))
            return
        known = self._runs.get(run)
        if known is not None:
            known[1].add_listener(listener)
            return
        server = Server(
            self._way,
            self._pipes,
            run,
            policy,
            self._control,
            via=self._via,
            on_error=lambda error: self._note(run, error),
        )
        self._runs[run] = (policy_id, server)
        server.add_listener(listener)
        self._group.start(self._serve(run, server))

    async def _serve(self, run: str, server: Server) -> None:
        try:
            await server.serve()
        finally:
            del self._runs[run]
        self._control.tell({"type": "finished", "run": run})

    def _note(self, run: str, error: BaseException) -> None:
        """A fault of ours, on one connection."""
        if not isinstance(error, SupervisorGone):
            self._control.post(run, [records.fault(error)])


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found += memoryview(data[: len(data) - len(data) % 4]).cast("i").tolist()
    return found


def _listener(descriptors: list[int]) -> socket.socket | None:
    """The one listening socket; whatever else came is closed."""
    sock = None
    if len(descriptors) == 1:
        try:
            sock = socket.socket(fileno=descriptors[0])
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                os.set_inheritable(descriptors[0], False)
                return sock
        except OSError:
            pass
    if sock is not None:
        sock.close()
    else:
        for descriptor in descriptors:
            os.close(descriptor)
    return None


def _raise_descriptor_limit() -> None:
    """A connection takes two descriptors, and the usual soft limit is 1024."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            pass

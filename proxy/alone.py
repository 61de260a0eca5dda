"""The door alone: ordinary listeners, one policy, and signals, for `doorward proxy`.

The first SIGTERM or SIGINT drains: nothing new is accepted, what is under way may finish. A second ends it. SIGHUP asks
for the policy again; a new one that is no good leaves the old one in force.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from doorward.proxy.admission import Way
from doorward.proxy.loop import Group, Loop
from doorward.proxy.own_listeners import OwnListeners
from doorward.proxy.policy import Policy
from doorward.proxy.server import Server
from doorward.proxy.sink import FunctionSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.asking import Decider
    from doorward.proxy.dial import Dialler
    from doorward.proxy.records import Item
    from doorward.proxy.resolver import Resolver

DRAIN_TIME = 30.0
"""Seconds connections get to finish after the first SIGTERM."""

BACKLOG = 1024
"""Connections that may wait to be accepted."""

RUN = "proxy"
"""What the records of a door alone are filed under."""


class DoorAlone:
    """Listeners, their policy and where the items go. `serve` runs it in the main thread, until a signal ends it."""

    def __init__(
        self,
        listeners: Iterable[socket.socket],
        policy: Policy,
        keep: Callable[[str, Item], None],
        *,
        keeps: bool = True,
        reload: Callable[[], Policy | None] = lambda: None,
        decider: Decider | None = None,
        answer_time: float = 300.0,
        on_error: Callable[[BaseException], None] = lambda error: None,
        resolver: Resolver | None = None,
        dialler: Dialler | None = None,
        drain_time: float = DRAIN_TIME,
        beside: Callable[[], Coroutine[Any, None, None]] | None = None,
    ) -> None:
        """`keep(run, item)` keeps an item before anything is answered; without `keeps` it is not told what allowed
        connections did. `reload` gives the policy to go on with, None
        for the one in force; what it raises, and any fault of ours, goes to `on_error`. The listeners become the
        door's, which closes them. `beside` runs while the door does and is cancelled when it has ended."""
        self.loop = Loop()
        self._reload = reload
        self._on_error = on_error
        self._drain_time = drain_time
        self._beside = beside
        self._draining = False
        self._group = Group(self.loop)
        self._way = Way(self.loop, OwnListeners(), resolver=resolver, dialler=dialler)
        self.server = Server(
            self._way,
            RUN,
            policy,
            FunctionSink(self.loop, keep, keeps=keeps),
            via=b"doorward-" + os.urandom(4).hex().encode("ascii"),
            decider=decider,
            answer_time=answer_time,
            on_error=on_error,
        )
        for listener in listeners:
            self.server.add_listener(listener)

    def serve(self) -> None:
        """Serve until a signal, or `stop`, ended it."""
        before = {
            number: signal.signal(number, self._heard) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        }
        try:
            self.loop.run(self._run())
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._way.close()
            self.loop.close()

    def reload(self) -> None:
        """As on SIGHUP; in the loop's thread."""
        try:
            policy = self._reload()
        except Exception as error:  # whatever is wrong with it, the policy in force is better than none
            self._on_error(error)
            return
        if policy is not None:
            self.server.reload(policy)

    def stop(self) -> None:
        """As on SIGTERM; in the loop's thread."""
        if self._draining:
            self.server.close()
        else:
            self._draining = True
            self._group.start(self.server.drain(self._drain_time))

    async def _run(self) -> None:
        async with self._group as group:
            if self._beside is not None:
                group.start(self._beside())
            await group.start(self.server.serve()).wait()
            group.cancel()

    def _heard(self, number: int, _frame: Any) -> None:
        """A signal: it may come at any point, so the loop is asked to see to it."""
        self.loop.post(self.reload if number == signal.SIGHUP else self.stop)


def open_listener(host: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """A listening TCP socket on an address literal; port 0 takes a free one. `reuse_port` lets several processes listen
    on one port and share its connections (SO_REUSEPORT, socket(7)). Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock



"""One run's door: its listeners, the connections that came in on them, and the policy they are held to.

The listener a connection came in on is its identity: it belongs to the run of that listener, whatever its client says.
A process holds any number of these; `doorward proxy` holds one. `serve` runs it; `reload` changes the policy for every
request from then on and leaves open tunnels alone; `drain` ends it without cutting what is under way.
"""

from __future__ import annotations

import _socket
import errno

from doorward.proxy.admission import Way
from doorward.proxy.channel import Channel, do_not_pace, tune
from doorward.proxy.connection import Connection
from doorward.proxy.loop import Group, Loop, Promise
from doorward.proxy.policy import Policy
from doorward.proxy.records import Sink
from doorward.proxy.task import Task, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    from doorward.proxy.asking import Asking, Decider
    from doorward.proxy.attribution import Attribution
    from doorward.proxy.connection import Entry
    from doorward.proxy.inspection.link import InspectionLink
    from doorward.proxy.loopback import Publisher
    from doorward.proxy.name_server import NameServer
    from doorward.proxy.pool import UpstreamPool
    from doorward.proxy.stand_ins import StandIns

    T = TypeVar("T")

_ACCEPTS_A_TURN = 32
_PAUSE = 0.1  # seconds, when the process is out of descriptors or memory, or the network is down


class Server:
    """The door of one run."""

    def __init__(
        self,
        way: Way,
        run: str,
        policy: Policy,
        sink: Sink,
        *,
        via: bytes,
        decider: Decider | None = None,
        answer_time: float = 300.0,
        on_error: Callable[[BaseException], None] | None = None,
        inspection: InspectionLink | None = None,
    ) -> None:
        """`via` is the pseudonym by which loops are known. `decider` answers where the rules say "ask", within
        `answer_time` seconds. `on_error` hears of faults of ours; the connection they hit is closed."""
        self.way = way
        self.loop: Loop = way.loop
        self.run = run
        self.policy = policy
        self.sink = sink
        self.via = via
        self.diagnosis: tuple[_socket.socket, int] | None = None  # see `attribution`; for a sandbox of ours
        self._attribution: Attribution | None = None
        self.unreachable: dict[int, _socket.socket] = {}  # by family: where refused datagrams are answered
        self.stand_ins: StandIns | None = None  # addresses that stand for names inside
        self.names: NameServer | None = None  # the sandbox's name server
        self.publisher: Publisher | None = None  # servers inside that the host may reach
        self.name_servers: tuple[tuple[str, int], ...] | None = None  # to ask for records; None for the machine's own
        self.has_ipv6 = False  # whether the sandbox has it
        self._pool: UpstreamPool | None = None
        self.inspection = inspection
        self.draining = False
        self._on_error = on_error
        self._group = Group(self.loop)
        self.asking: Asking | None = None
        if decider is not None:
            from doorward.proxy.asking import Asking  # most runs ask nobody

            self.asking = Asking(self.loop, self._group, decider, answer_time)
        self._listeners: dict[_socket.socket, Task[None] | None] = {}
        self._entries: dict[_socket.socket, Entry] = {}
        self._services: list[Coroutine[Any, None, None]] = []  # not started yet
        self._connections: dict[Connection, Task[None]] = {}
        self._room: Promise[None] | None = None  # set while the limit of connections is reached
        self._empty: Promise[None] | None = None  # set while a drain waits for the last connection
        self._end: Promise[None] = Promise(self.loop)

    @property
    def attribution(self) -> Attribution | None:
        """Who asks; None for a door that is no sandbox's."""
        if self._attribution is None and self.diagnosis is not None:
            from doorward.proxy.attribution import Attribution  # with the first that asks: many runs have none

            self._attribution = Attribution(*self.diagnosis)
        return self._attribution

    @property
    def pool(self) -> UpstreamPool:
        """Connections to servers that may serve another request."""
        if self._pool is None:
            from doorward.proxy.pool import UpstreamPool  # with the first plain request that is allowed

            limits = self.policy.limits
            self._pool = UpstreamPool(self.loop, limits.pooled, limits.pooled_time)
        return self._pool

    @property
    def connections(self) -> int:
        """Client connections at this moment."""
        return len(self._connections)

    def add_listener(self, listener: _socket.socket, entry: Entry | None = None) -> None:
        """Take over a listening stream socket. Before or while `serve` runs. With an `entry` that serves what comes in
        on it, not as a proxy's client; the socket is then one of a sandbox's, which nothing here could dial."""
        listener.setblocking(False)
        local = entry is not None or _is_loopback(listener)
        tune(listener, local=local)
        if local:
            do_not_pace(listener)
        if entry is None:
            self.way.own.add(listener)
        else:
            self._entries[listener] = entry
        self._listeners[listener] = None
        if self._group.running:
            self._listeners[listener] = self._group.start(self._accept(listener))

    def spawn(self, work: Coroutine[Any, None, None]) -> None:
        """Run something beside the connections; it ends with them."""
        self._group.start(work)

    def remove_listener(self, listener: _socket.socket) -> None:
        """Accept nothing more on it, and close it."""
        task = self._listeners.get(listener)
        if task is None:
            self._drop(listener)
        else:
            task.cancel()

    def add_service(self, service: Coroutine[Any, None, None]) -> None:
        """Run something beside the listeners, until the door closes. Before or while `serve` runs."""
        if self._group.running:
            self._group.start(service)
        else:
            self._services.append(service)

    def start(self, work: Coroutine[Any, None, T]) -> Task[T]:
        """Run a task of the door's own, which ends with it."""
        return self._group.start(work)

    def note(self, error: BaseException) -> None:
        """A fault of ours, which cost one client its answer."""
        if self._on_error is not None:
            self._on_error(error)

    async def serve(self) -> None:
        """Serve until `close` or a `drain` ended it; then every connection is closed and recorded."""
        try:
            async with self._group as group:
                for listener in self._listeners:
                    self._listeners[listener] = group.start(self._accept(listener))
                group.start(self._sweep())
                services, self._services = self._services, []
                for service in services:
                    group.start(service)
                await self._end.wait()
                group.cancel()
        finally:
            for listener in tuple(self._listeners):
                self._drop(listener)
            for connection in self._connections:  # whose task was cancelled before its first step
                connection.channel.close()
            for service in self._services:
                service.close()
            if self.diagnosis is not None:
                (self._attribution or self.diagnosis[0]).close()
            for sock in self.unreachable.values():
                sock.close()
            if self.publisher is not None:
                self.publisher.close()
            if self._pool is not None:
                self._pool.close()

    def reload(self, policy: Policy) -> None:
        """Hold every request from now on to `policy`. Open tunnels stay."""
        self.policy = policy

    def close(self) -> None:
        """End at once: `serve` returns when everything is closed."""
        self._end.set(None)

    async def drain(self, seconds: float) -> None:
        """Accept nothing more, end idle connections, let the others finish for up to `seconds`, then close."""
        self.draining = True
        for task in self._listeners.values():
            if task is not None:
                task.cancel()
        await self.loop.turn()  # a task that is cancelled before its first step never closes its connection
        for connection, task in self._connections.items():
            if connection.idle:
                task.cancel()
        if self._connections:
            self._empty = Promise(self.loop)
            try:
                await self._empty.wait(self.loop.now + seconds)
            except Exception:  # the time is over
                pass
        self.close()

    async def _accept(self, listener: _socket.socket) -> None:
        watch = Watch(self.loop, listener.fileno())
        family = int(listener.family)
        accepted = 0
        try:
            while True:
                if len(self._connections) >= self.policy.limits.connections:
                    if self._room is None or self._room.settled:
                        self._room = Promise(self.loop)
                    await self._room.wait()
                    continue
                try:
                    descriptor, _ = listener._accept()  # type: ignore[attr-defined]  # accept() without its wrapper
                except BlockingIOError:
                    watch.can_read = False
                    accepted = 0
                    await watch.readable()
                    continue
                except OSError as error:
                    if error.errno == errno.ECONNABORTED:  # that client was gone before it was accepted
                        await self.loop.turn()
                    else:
                        await self.loop.sleep(_PAUSE)
                    continue
                sock = _socket.socket(family, _socket.SOCK_STREAM, _socket.IPPROTO_TCP, descriptor)
                self._begin(sock, self._entries.get(listener))
                accepted += 1
                if accepted % _ACCEPTS_A_TURN == 0:
                    await self.loop.turn()
        finally:
            watch.forget(shared=True)
            self._drop(listener)

    def _begin(self, sock: _socket.socket, entry: Entry | None = None) -> None:
        sock.setblocking(False)
        channel = Channel(self.loop, sock)
        connection = Connection(self, channel, entry)
        self._connections[connection] = self._group.start(connection.serve())

    def ended(self, connection: Connection) -> None:
        """It was served, and is closed."""
        del self._connections[connection]
        if self._room is not None:
            self._room.set(None)
        if self._empty is not None and not self._connections:
            self._empty.set(None)

    async def _sweep(self) -> None:
        while True:
            await self.loop.sleep(self.policy.limits.pooled_time / 2)
            if self._pool is not None:
                self._pool.sweep()

    def _drop(self, listener: _socket.socket) -> None:
        if listener in self._listeners:
            del self._listeners[listener]
            if self._entries.pop(listener, None) is None:
                self.way.own.discard(listener)
            listener.close()


def _is_loopback(listener: _socket.socket) -> bool:
    """Whether only this machine, or this network namespace, can connect to it."""
    if listener.family not in (_socket.AF_INET, _socket.AF_INET6):
        return False
    address: str = listener.getsockname()[0]
    return address.startswith("127.") or address == "::1"

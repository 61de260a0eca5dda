"""A tunnel: two flows between a client and a server, from the first bytes to the last.

- What the client sends first is judged (`FirstBytes`) before a byte of it goes on; the server may speak meanwhile
  where the rule names the port.
- Each side may end its direction and go on listening (a half-close).
- A reset on one side becomes a reset on the other, so that half a file never looks like a whole one.
- The idle limit counts from the last byte in either direction, and is long: keep-alive probes find dead peers.
"""

from __future__ import annotations

from doorward.proxy.channel import Channel
from doorward.proxy.first_bytes import Disagreement, FirstBytes
from doorward.proxy.loop import Loop
from doorward.proxy.splice import TURN, Flow, PipePool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from doorward.proxy.task import Task


class Tunnel:
    """Run it with `run()`; afterwards, also after a cancel, it says what happened. It closes neither channel, but may
    abort one."""

    __slots__ = ("_down", "_up", "client", "closed_by", "content", "disagreement", "error", "loop", "pipes",
    "server")  # fmt: skip

    def __init__(self, loop: Loop, client: Channel, server: Channel, pipes: PipePool) -> None:
        self.loop = loop
        self.client = client
        self.server = server
        self.pipes = pipes
        self.closed_by = "proxy"  # until one of them does
        self.error: str | None = None
        self.content: str | None = None  # what the client's first bytes were, see `FirstBytes`
        self.disagreement: Disagreement | None = None
        self._up: Flow | None = None  # until something is said
        self._down: Flow | None = None

    @property
    def moved_up(self) -> int:
        """Bytes the server took."""
        return 0 if self._up is None else self._up.moved

    @property
    def moved_down(self) -> int:
        """Bytes the client took."""
        return 0 if self._down is None else self._down.moved

    async def run(
        self,
        idle: float,
        first: bytes = b"",
        judge: Callable[[], FirstBytes] | None = None,
        *,
        early: bytes = b"",
        may_be_silent: bool = False,
    ) -> None:
        """Move bytes, `first` of the client's and `early` of the server's before all others, until both directions
        ended, one side broke, or nothing moved for `idle` seconds. With a `judge` the client's first bytes go on when
        what it makes agrees; else `disagreement` says why not. `may_be_silent`: what `judge` makes lets the server
        speak first, and the client say nothing for as long as it likes."""
        client_ended = server_ended = False
        if (may_be_silent or judge is None) and not first and not early:
            # Most tunnels of clients that keep some ready, and of those that look whether there is a way, are never
            # used: until something is said this is all there is of them.
            loop, client, server = self.loop, self.client, self.server
            task = loop.current
            deadline = loop.now + idle
            side = client
            try:
                while True:
                    if client.can_read and not client_ended:
                        side = client
                        data = client.try_recv()
                        if data:
                            first = data
                            break
                        if data is not None:
                            client_ended = True
                            if server_ended:
                                return
                            self.closed_by = "client"
                            server.end()
                            deadline = loop.now + idle
                    if server.can_read and not server_ended:
                        side = server
                        data = server.try_recv()
                        if data:
                            early = data
                            break
                        if data is not None:
                            server_ended = True
                            if client_ended:
                                return
                            self.closed_by = "server"
                            client.end()
                            deadline = loop.now + idle
                            continue
                    if not client_ended:
                        if not client.registered:
                            client.watch()
                        client.reader = task
                    if not server_ended:
                        if not server.registered:
                            server.watch()
                        server.reader = task
                    in_time = await loop.park(deadline)
                    client.reader = server.reader = None
                    if not in_time:
                        self._went_idle(idle)
                        return
            except OSError:
                self._reset_by(side)
                return
            finally:
                client.reader = server.reader = None
        await self._talk(idle, first, early, judge, client_ended, server_ended)

    async def _talk(
        self,
        idle: float,
        first: bytes,
        early: bytes,
        judge: Callable[[], FirstBytes] | None,
        client_ended: bool,
        server_ended: bool,
    ) -> None:
        """Something was said, or has to be."""
        up = self._up = Flow(self.client, self.server, self.pipes)
        down = self._down = Flow(self.server, self.client, self.pipes)
        down.begin_with(early, ended=server_ended)
        try:
            if judge is None or client_ended:
                up.begin_with(first, ended=client_ended)
            elif not await self._agree(up, down, judge(), first, idle):
                return
            await self._relay(up, down, idle)
        finally:
            up.close()
            down.close()

    async def _relay(self, up: Flow, down: Flow, idle: float) -> None:
        loop = self.loop
        while True:
            more = False
            if up.may_move:
                more = up.turn(TURN)
                down.last = up.done
            if down.may_move:
                more = down.turn(TURN) or more
                up.last = down.done
            if up.done or down.done:
                if up.broken is not None or down.broken is not None:
                    self._break(up if up.broken is not None else down)
                    return
                if self.closed_by == "proxy":
                    self.closed_by = "client" if up.done else "server"
                if up.done and down.done:
                    return
            if more:
                await loop.turn()
            elif not await self._wait(up, down, loop.now + idle):
                self._went_idle(idle)
                return

    async def _agree(self, up: Flow, down: Flow, judge: FirstBytes, first: bytes, idle: float) -> bool:
        """Whether the client's first bytes may go on; if so `up` begins with them."""
        try:
            agreed = await self._hear(down, judge, first, idle)
        finally:
            self.content = judge.content
        if agreed:
            up.begin_with(judge.data, ended=judge.ended)
        return agreed

    async def _hear(self, down: Flow, judge: FirstBytes, first: bytes, idle: float) -> bool:
        loop, client = self.loop, self.client
        begun = bool(first)
        if begun:
            judge.feed(first)
        deadline = loop.now + (idle if judge.server_may_speak and not begun else judge.time_limit)
        while judge.finding is None:
            try:
                data = client.try_recv()
            except OSError:
                self._reset_by(client)
                return False
            if data:
                if not begun:
                    begun = True
                    deadline = loop.now + judge.time_limit
                judge.feed(data)
                continue
            if data is not None:
                judge.eof()
                break
            if judge.server_may_speak and not down.done:
                moved = down.moved
                more = down.may_move and down.turn(TURN)
                if down.broken is not None:
                    self._break(down)
                    return False
                if not begun and down.moved != moved:
                    deadline = loop.now + idle
                if more:
                    await loop.turn()
                    continue
                in_time = await self._wait(None, down, deadline)
            else:
                in_time = await self._wait(None, None, deadline)
            if not in_time:
                if not begun and judge.server_may_speak:
                    self._went_idle(idle)
                    return False
                judge.timed_out()
        if isinstance(judge.finding, Disagreement):
            self.disagreement = judge.finding
            return False
        return True

    async def _wait(self, up: Flow | None, down: Flow | None, deadline: float) -> bool:
        """Park until one of the flows may go on; without `up`, until the client may be read. As `Loop.wait_any`,
        without the lists: this is the hottest wait."""
        loop, client, server = self.loop, self.client, self.server
        task = loop.current
        if up is None:
            client.watch()
            client.reader = task
        elif not up.done:
            self._await(up, task)
        if down is not None and not down.done:
            self._await(down, task)
        try:
            return await loop.park(deadline)
        finally:
            client.reader = client.writer = server.reader = server.writer = None

    @staticmethod
    def _await(flow: Flow, task: Task[Any]) -> None:
        """Have `task` woken when the flow may go on."""
        if flow.waits_to_read:
            source = flow.source
            if not source.registered:
                source.watch()
            source.reader = task
        else:
            flow.sink.watch_writing()
            flow.sink.writer = task

    def _break(self, flow: Flow) -> None:
        """One side failed. A failed source may have had more to say: its sink gets a reset. A failed sink just left."""
        broken = flow.broken
        if broken is flow.source:
            self._reset_by(broken)
        else:
            self.closed_by = "client" if broken is self.client else "server"

    def _reset_by(self, side: Channel) -> None:
        self.closed_by = "client" if side is self.client else "server"
        self.error = f"connection reset by the {self.closed_by}"
        (self.server if side is self.client else self.client).abort()

    def _went_idle(self, idle: float) -> None:
        self.error = f"idle for {idle:g} s"
        self.closed_by = "proxy"

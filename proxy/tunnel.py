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
    from typing import Any

    from doorward.proxy.task import Task


class Tunnel:
    """Run it with `run()`; afterwards, also after a cancel, it says what happened. It closes neither channel, but may
    abort one."""

    __slots__ = ("client", "closed_by", "disagreement", "down", "error", "loop", "server", "up")

    def __init__(self, loop: Loop, client: Channel, server: Channel, pipes: PipePool) -> None:
        self.loop = loop
        self.client = client
        self.server = server
        self.up = Flow(client, server, pipes)
        self.down = Flow(server, client, pipes)
        self.closed_by = "proxy"  # until one of them does
        self.error: str | None = None
        self.disagreement: Disagreement | None = None

    async def run(self, idle: float, first: bytes = b"", judge: FirstBytes | None = None) -> None:
        """Move bytes, `first` of the client's before all others, until both directions ended, one side broke, or
        nothing moved for `idle` seconds. With a `judge` the client's first bytes go on when it agrees; else
        `disagreement` says why none did."""
        try:
            if judge is None:
                self.up.begin_with(first)
            elif not await self._agree(judge, first, idle):
                return
            await self._relay(idle)
        finally:
            self.up.close()
            self.down.close()

    async def _relay(self, idle: float) -> None:
        loop, up, down = self.loop, self.up, self.down
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
            elif not await self._wait(loop.now + idle):
                self._went_idle(idle)
                return

    async def _agree(self, judge: FirstBytes, first: bytes, idle: float) -> bool:
        """Whether the client's first bytes may go on; if so `up` begins with them."""
        loop, client = self.loop, self.client
        begun = bool(first)
        if begun:
            judge.feed(first)
        deadline = loop.now + (idle if judge.server_may_speak and not begun else judge.time_limit)
        while judge.finding is None:
            try:
                data = client.try_recv()
            except OSError:
                self.closed_by, self.error = "client", "connection reset by the client"
                self.server.abort()
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
            if judge.server_may_speak and not self.down.done:
                moved = self.down.moved
                more = self.down.may_move and self.down.turn(TURN)
                if self.down.broken is not None:
                    self._break(self.down)
                    return False
                if not begun and self.down.moved != moved:
                    deadline = loop.now + idle
                if more:
                    await loop.turn()
                    continue
                in_time = await self._wait(deadline)
            else:
                in_time = await self._wait(deadline, only_up=True)
            if not in_time:
                if not begun and judge.server_may_speak:
                    self._went_idle(idle)
                    return False
                judge.timed_out()
        if isinstance(judge.finding, Disagreement):
            self.disagreement = judge.finding
            return False
        self.up.begin_with(judge.data, ended=judge.ended)
        return True

    async def _wait(self, deadline: float, *, only_up: bool = False) -> bool:
        """Park until one of the flows may go on. As `Loop.wait_any`, without the lists: this is the hottest wait."""
        loop, client, server = self.loop, self.client, self.server
        task = loop.current
        if not self.up.done:
            self._await(self.up, task)
        if not only_up and not self.down.done:
            self._await(self.down, task)
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
        self.closed_by = "client" if flow.broken is self.client else "server"
        if flow.broken is flow.source:
            self.error = f"connection reset by the {self.closed_by}"
            flow.sink.abort()

    def _went_idle(self, idle: float) -> None:
        self.error = f"idle for {idle:g} s"
        self.closed_by = "proxy"

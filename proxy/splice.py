"""Bytes from one channel to another, by splice(2) where there are many of them: a tunnel's direction, or a long body.

- Small reads are copied: two system calls, and no pipe. A read that filled the whole buffer turns the flow to bulk.
- Bulk moves through a kernel pipe and is never seen by Python. Pipes come from a pool and are held only while bytes are
  in them, so a quiet tunnel has none.
- Back-pressure: nothing is read while the sink takes nothing. What a flow holds is bounded by one pipe or one buffer.
- One `turn` moves a bounded number of bytes, so that many streams share the loop fairly.
"""

from __future__ import annotations

import fcntl
import os

from doorward.proxy.channel import READ_SIZE, Channel
from doorward.proxy.loop import Loop

PIPE_SIZE = 1024 * 1024
"""Bytes asked for one pipe (F_SETPIPE_SZ, fcntl(2)). Measured: a quarter less CPU a byte than with 256 KiB, since a
receiver that is woken finds more to do."""

LARGE_PIPES = 32
"""Pipes of that size at once; what is beyond has the kernel's default of 64 KiB. Only flows under back-pressure hold
one for longer than a turn, and a client that never reads must not pin a megabyte for each of its tunnels."""

TURN = 1024 * 1024
"""Most bytes one flow moves before other connections get their turn."""

_REMNANT = 128 * 1024
"""What is left of a turn that the next flow gets: a pipe has a slot for each page, so one splice rarely fills it to the
byte, and the rest would go in two system calls of its own. Measured with 32 streams: they cost a third of the CPU."""

PIPES_KEPT = 16
"""Idle pipes kept: only flows under back-pressure hold one for longer than a turn."""

_FLAGS = os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK if hasattr(os, "splice") else 0


class Pipe:
    """An empty or partly filled kernel pipe."""

    __slots__ = ("read_end", "size", "write_end")

    def __init__(self, *, large: bool) -> None:
        self.read_end, self.write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        if large:
            try:
                fcntl.fcntl(self.write_end, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
            except OSError:  # above the user's share (/proc/sys/fs/pipe-user-pages-soft): a small one serves too
                pass
        self.size = fcntl.fcntl(self.write_end, fcntl.F_GETPIPE_SZ)

    def close(self) -> None:
        """Free it, with what it holds."""
        os.close(self.read_end)
        os.close(self.write_end)


class PipePool:
    """The idle pipes of a process. `usable` false: splice(2) is not to be had here, everything is copied."""

    def __init__(self, *, usable: bool = True) -> None:
        self.usable = usable and hasattr(os, "splice")
        self._idle: list[Pipe] = []
        self._open = 0

    def take(self) -> Pipe | None:
        """A pipe that is empty; None where none can be made (out of descriptors)."""
        if self._idle:
            return self._idle.pop()
        try:
            pipe = Pipe(large=self._open < LARGE_PIPES)
        except OSError:
            return None
        self._open += 1
        return pipe

    def give(self, pipe: Pipe, held: int) -> None:
        """Take a pipe back; one that still holds bytes is closed with them."""
        if held or len(self._idle) >= PIPES_KEPT:
            pipe.close()
            self._open -= 1
        else:
            self._idle.append(pipe)

    def close(self) -> None:
        """Close the idle pipes."""
        while self._idle:
            self._idle.pop().close()
            self._open -= 1


class Flow:
    """Bytes from `source` to `sink`. Ends by passing the source's end on (a half-close), with `broken`, or, where a
    `length` is given, after that many bytes; `short` then says that the source ended before."""

    __slots__ = ("_bulk", "_ended", "_held", "_left", "_pipe", "_pipes", "_rest", "broken", "done", "last", "moved",
                 "short",
                 "sink", "source")  # fmt: skip

    def __init__(self, source: Channel, sink: Channel, pipes: PipePool, length: int | None = None) -> None:
        self.source = source
        self.sink = sink
        self.moved = 0  # bytes the sink took
        self.done = False
        self.broken: Channel | None = None  # the side that failed
        self.short = False
        self.last = False  # the other direction ended before: whoever closes the channels says that this one did too
        self._left = length  # bytes still to be read
        self._pipes = pipes
        self._pipe: Pipe | None = None
        self._held = 0  # bytes in the pipe
        self._rest: memoryview | bytes | bytearray = b""  # copied bytes on their way
        self._ended = False
        self._bulk = False

    def begin_with(self, data: bytes | bytearray, *, ended: bool = False) -> None:
        """Bytes that were read from the source already and come first; `ended`: and its end."""
        self._rest = data
        self._ended = ended

    def turn(self, budget: int) -> bool:
        """Move about `budget` bytes at most. True: it could go on at once. False: it is done, or waits for
        `source` (when `waits_to_read`) or for `sink`. Never raises OSError: see `broken`."""
        source, sink = self.source, self.sink
        start = budget
        while budget > 0:
            if self._rest:
                try:
                    sent = sink.try_send(self._rest)
                except OSError:
                    return self._break(sink)
                if not sent:
                    return False
                self.moved += sent
                budget -= sent
                self._rest = memoryview(self._rest)[sent:] if sent < len(self._rest) else b""
            elif self._held:
                if not sink.can_write:
                    return False
                assert self._pipe is not None
                try:
                    sent = os.splice(self._pipe.read_end, sink.fd, self._held, flags=_FLAGS)
                except BlockingIOError:
                    sink.can_write = False
                    return False
                except OSError:
                    return self._break(sink)
                self.moved += sent
                budget -= sent
                self._held -= sent
                if budget < _REMNANT:
                    budget = 0
            elif self._left == 0:
                return self._finish()
            elif self._ended:
                if self._left is None:
                    if not self.last:
                        sink.end()
                else:
                    self.short = True
                return self._finish()
            elif not source.can_read or not sink.can_write:
                break
            else:
                try:
                    more = self._read_bulk(budget) if self._bulk else self._read_little()
                except OSError:
                    return self._break(source)
                if not more:
                    break
        if self._pipe is not None and not self._held:
            self._pipes.give(self._pipe, 0)
            self._pipe = None
            if start - budget < READ_SIZE:
                self._bulk = False
        return budget <= 0

    @property
    def may_move(self) -> bool:
        """Whether a turn is worth its call."""
        if self.done:
            return False
        return self._ended or (self.sink.can_write and (self.source.can_read or self._held > 0 or len(self._rest) > 0))

    @property
    def waits_to_read(self) -> bool:
        """After a turn that gave False: it is the source that has nothing, not the sink that has no room."""
        return not self._rest and not self._held and self.sink.can_write

    async def run(self, loop: Loop, idle: float) -> None:
        """Take turns until it is done. Raises DeadlinePassed when nothing moved for `idle` seconds."""
        try:
            while True:
                if self.turn(TURN):
                    await loop.turn()
                elif self.done:
                    return
                elif self.waits_to_read:
                    await self.source.readable(loop.now + idle)
                else:
                    await self.sink.writable(loop.now + idle)
        finally:
            self.close()

    def close(self) -> None:
        """Give the pipe back. The channels are their owner's."""
        if self._pipe is not None:
            self._pipes.give(self._pipe, self._held)
            self._pipe = None
        self._held = 0
        self._rest = b""

    def _read_little(self) -> bool:
        left = self._left
        data = self.source.try_recv(READ_SIZE if left is None else min(left, READ_SIZE))
        if data is None:
            return False
        if not data:
            self._ended = True
        elif len(data) == READ_SIZE:
            self._bulk = self._pipes.usable and self.source.splices and self.sink.splices
        if left is not None:
            self._left = left - len(data)
        self._rest = data
        return True

    def _read_bulk(self, budget: int) -> bool:
        pipe = self._pipe
        if pipe is None:
            pipe = self._pipe = self._pipes.take()
            if pipe is None:
                self._bulk = False
                return True
        left = self._left
        size = min(pipe.size, max(budget, READ_SIZE))
        if left is not None and left < size:
            size = left
        try:
            self._held = os.splice(self.source.fd, pipe.write_end, size, flags=_FLAGS)
        except BlockingIOError:
            self.source.can_read = False
            return False
        if not self._held:
            self._ended = True
        elif left is not None:
            self._left = left - self._held
        return True

    def _break(self, side: Channel) -> bool:
        self.broken = side
        return self._finish()

    def _finish(self) -> bool:
        self.done = True
        self.close()
        return False

"""Tasks of the loop, the descriptors they wait for, and how a wait may end. `loop.py` has the rules and runs them."""

from __future__ import annotations

from doorward.proxy.clock import NEVER
from doorward.typing_names import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from doorward.proxy.loop import Group, Loop

T = TypeVar("T")


class Cancelled(BaseException):
    """Thrown into a task at its wait, so that it cleans up and ends. Not to be swallowed."""


class DeadlinePassed(Exception):
    """What was waited for did not come in time."""


class HungUp(Exception):
    """The peer ended or broke its side of a connection while something else was waited for."""


class Task(Generic[T]):
    """One running coroutine. Made by `Group.start` and `Loop.run` only; `await task.wait()` joins it."""

    __slots__ = ("_armed", "_coroutine", "_deadline", "_expired", "_group", "_joiners", "_parked", "_throw", "done",
                 "error", "loop", "value")  # fmt: skip

    def __init__(self, loop: Loop, coroutine: Coroutine[Any, None, T], group: Group | None) -> None:
        self.loop = loop
        self.done = False
        self.value: T | None = None
        self.error: BaseException | None = None
        self._coroutine: Coroutine[Any, None, T] | None = coroutine
        self._group = group
        self._joiners: list[Task[Any]] | None = None
        self._throw: BaseException | None = None
        self._parked = False
        self._expired = False
        self._deadline = NEVER
        self._armed = NEVER  # time of this task's entry in the heap

    def cancel(self, reason: Cancelled | None = None) -> None:
        """Have `Cancelled` thrown at the wait where the task stands, or at its next one. Harmless when it is done."""
        if self.done:
            return
        self._throw = reason or Cancelled()
        self._wake()

    async def wait(self, deadline: float = NEVER) -> T:
        """The task's value; raises what it raised, `Cancelled` included, or DeadlinePassed (it then runs on)."""
        while not self.done:
            if self._joiners is None:
                self._joiners = []
            me = self.loop.current
            self._joiners.append(me)
            try:
                if not await self.loop.park(deadline) and not self.done:
                    raise DeadlinePassed
            finally:
                if me in self._joiners:
                    self._joiners.remove(me)
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]

    def _wake(self) -> None:
        if self._parked:
            self._parked = False
            self.loop._ready.append(self)

    def _finish(self, value: T | None, error: BaseException | None) -> None:
        self.done = True
        self.value = value
        self.error = error
        self._coroutine = None
        self._throw = None
        if self._armed != NEVER:
            self.loop._forget_timer()
        if self._joiners:
            for joiner in self._joiners:
                joiner._wake()
        group = self._group
        if group is not None:
            self._group = None
            group._finished(self)


class Watch:
    """A descriptor the loop watches. At most one task waits for each direction. That it may be written is noted from
    the first time that somebody waits for it, with `only_read` while somebody does: else the loop would wake for each
    thing sent."""

    __slots__ = ("can_read", "can_write", "fd", "first", "hung_up", "loop", "only_read", "reader", "registered",
                 "writer", "writing_noted")  # fmt: skip

    def __init__(self, loop: Loop, fd: int, only_read: bool = False) -> None:
        self.loop = loop
        self.fd = fd
        self.only_read = only_read
        self.first = False  # whether who reads has its turn before others: little to do, which somebody waits for
        self.can_read = True  # until a system call says otherwise
        self.can_write = True
        self.hung_up = False  # the peer ended or broke the connection: a short read no longer means "drained"
        self.registered = False
        self.writing_noted = False
        self.reader: Task[Any] | None = None
        self.writer: Task[Any] | None = None

    async def readable(self, deadline: float = NEVER) -> None:
        """Return when reading is worth a try; raises DeadlinePassed."""
        while not self.can_read:
            if not self.registered:
                self.loop._register(self)
            self.reader = self.loop.current
            try:
                in_time = await self.loop.park(deadline)
            finally:
                self.reader = None
            if not in_time and not self.can_read:
                raise DeadlinePassed

    async def writable(self, deadline: float = NEVER) -> None:
        """Return when writing is worth a try; raises DeadlinePassed."""
        while not self.can_write:
            self.watch_writing()
            self.writer = self.loop.current
            try:
                in_time = await self.loop.park(deadline)
            finally:
                self.writer = None
                if self.only_read:
                    self.loop._note_writing(self, noted=False)
            if not in_time and not self.can_write:
                raise DeadlinePassed

    def watch(self) -> None:
        """Have events noted from now on, though nobody waits for them yet."""
        if not self.registered:
            self.loop._register(self)

    def watch_writing(self) -> None:
        """The same, that it may be written among them. Reported at once if it may be already."""
        if not self.registered:
            self.loop._register(self, writing=True)
        elif not self.writing_noted:
            self.loop._note_writing(self, noted=True)

    def forget(self, *, shared: bool = False) -> None:
        """Stop watching; call it before the descriptor is closed. `shared`: another process holds the same open file,
        so that closing our descriptor would not take it out of the epoll set."""
        fd = self.fd
        if fd < 0:
            return
        self.fd = -1
        if self.registered:
            self.registered = False
            self.loop._watches.pop(fd, None)
            if shared:
                self.loop._epoll.unregister(fd)
        self.can_read = self.can_write = True  # whoever waits finds out by trying
        if self.reader is not None:
            self.reader._wake()
        if self.writer is not None:
            self.writer._wake()

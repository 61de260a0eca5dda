"""The proxy's event loop: coroutines over epoll (kqueue on macOS), without asyncio.

Why not asyncio: importing it costs every run 50-75 ms, and it costs more CPU for each byte moved. What the loop does:

- One thread. A task runs until it parks itself; a descriptor, a deadline or another task wakes it.
- Each descriptor is registered once, edge-triggered, the first time somebody waits for it (for writing, the first time
  somebody waits to write), and stays registered until it is closed (epoll(7), "Level-triggered and edge-triggered").
  So the rule for everyone who reads or writes is: try the system call first; only when it would block, clear
  `can_read` or `can_write` and wait.
- All events of one poll are noted before any task runs. Nothing can be closed or opened in between, so an event never
  reaches the wrong owner of a reused descriptor number. A late event of a closed file that another process still holds
  can do no more than cause one vain system call.
- First come, first served, but for two things. A watch may be `first`, where little is to do that somebody waits for:
  the name server's. And who has answered somebody may give way to whoever that is (`give_way`).
- A task has one deadline at a time, given with each wait as an absolute time of `now`. The heap holds one entry a task,
  moved on lazily, so that a quiet connection costs nothing and a busy one does not fill the heap.
- Every task belongs to a `Group`, which does not end before its tasks ended. None is lost.
"""

from __future__ import annotations

import _thread
import itertools
import os
import sys
import types
from heapq import heapify, heappop, heappush

from doorward.plain_collections import deque
from doorward.proxy.clock import NEVER, Clock, MonotonicClock
from doorward.proxy.task import Cancelled, DeadlinePassed, HungUp, Task, Watch
from doorward.typing_names import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence
    from typing import Any

T = TypeVar("T")

if sys.platform == "linux":
    from select import EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLPRI, EPOLLRDHUP, epoll
else:
    from doorward.proxy.kqueue import EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLPRI, EPOLLRDHUP
    from doorward.proxy.kqueue import Kqueue as epoll

_HANG = EPOLLRDHUP | EPOLLHUP | EPOLLERR
_READ = EPOLLIN | EPOLLPRI | _HANG
_WRITE = EPOLLOUT | EPOLLHUP | EPOLLERR
_READ_EDGES = EPOLLIN | EPOLLRDHUP | EPOLLET
_EDGES = _READ_EDGES | EPOLLOUT
_EVENTS_A_POLL = 256
_FEW_TIMERS = 64
_MOMENT = 0.001  # seconds that a round is put off for whoever was answered
_LONGEST_WAY = 0.002  # and all of them together


class Promise(Generic[T]):
    """A value that comes later; any number of tasks may wait for it."""

    __slots__ = ("_called", "_error", "_loop", "_value", "_waiters", "settled")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.settled = False
        self._called: list[Callable[[BaseException | None], None]] | None = None
        self._value: T | None = None
        self._error: BaseException | None = None
        self._waiters: list[Task[Any]] = []

    def set(self, value: T) -> None:
        """Settle with a value; the first settling counts."""
        self._settle(value, None)

    def fail(self, error: BaseException) -> None:
        """Settle with an error, raised at every waiter."""
        self._settle(None, error)

    def _settle(self, value: T | None, error: BaseException | None) -> None:
        if not self.settled:
            self.settled = True
            self._value, self._error = value, error
            for task in self._waiters:
                task._wake()
            called, self._called = self._called, None
            for function in called or ():
                function(error)

    def then(self, function: Callable[[BaseException | None], None]) -> None:
        """Have `function` called at the settling, or now where that has been: with None, or the error. Without a task,
        which would wait for the next round. It must not raise."""
        if self.settled:
            function(self._error)
        elif self._called is None:
            self._called = [function]
        else:
            self._called.append(function)

    async def wait(self, deadline: float = NEVER, *, unless: Watch | None = None) -> T:
        """The value; raises the error, DeadlinePassed, or HungUp when the peer of `unless` ends or breaks its side."""
        while not self.settled:
            if unless is not None:
                if unless.hung_up:
                    raise HungUp
                if not unless.registered:
                    self._loop._register(unless)
                unless.reader = self._loop.current
            me = self._loop.current
            self._waiters.append(me)
            try:
                if not await self._loop.park(deadline) and not self.settled:
                    raise DeadlinePassed
            finally:
                self._waiters.remove(me)
                if unless is not None:
                    unless.reader = None
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class Loop:
    """The event loop. `run` drives one coroutine, and everything in its groups, to the end."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock = clock or MonotonicClock()
        self.now = clock.now()
        self._epoll = epoll()
        self._watches: dict[int, Watch] = {}
        self._ready: deque[Task[Any]] = deque()
        self._timers: list[tuple[float, int, Task[Any]]] = []
        self._order = itertools.count()
        self._finished_timers = 0
        self._current: Task[Any] | None = None
        self._gave_way = False  # somebody did, in this round
        self._all_ran = self.now  # when last nobody's turn had been put off
        self._threads = 0
        self._started = False  # a task was, in this round
        self._posted: deque[Callable[[], object]] = deque()
        self._bell, self._ringer = _make_bell()
        self._epoll.register(self._bell, EPOLLIN)

    def fileno(self) -> int:
        """The descriptor that can be read when there is something to do that the loop does not know of yet."""
        return self._epoll.fileno()

    @property
    def current(self) -> Task[Any]:
        """The task that is running."""
        assert self._current is not None
        return self._current

    @types.coroutine
    def park(self, deadline: float = NEVER) -> Generator[None, None, bool]:
        """Suspend the current task until something wakes it: True; False when the deadline came first."""
        task = self._current
        assert task is not None
        task._deadline = deadline
        if deadline < task._armed:
            if task._armed != NEVER:
                self._forget_timer()
            task._armed = deadline
            heappush(self._timers, (deadline, next(self._order), task))
        if task._throw is None:
            task._parked = True
        else:
            self._ready.append(task)  # cancelled while it ran
        yield
        if task._expired:
            task._expired = False
            return False
        return True

    def give_way(self) -> None:
        """Somebody outside was answered, and goes on now. Who else could run waits until something happens, at most a
        millisecond: what is left to do of what is over does not keep the processor from the one that asks next. Nobody
        waits for longer than two, however often one gives way."""
        self._gave_way = True

    async def turn(self) -> None:
        """Let every other task that can run have its turn."""
        task = self.current
        self._ready.append(task)
        await _step_aside()

    async def sleep(self, seconds: float) -> None:
        """Wait for that long."""
        deadline = self.now + seconds
        while self.now < deadline:
            await self.park(deadline)

    async def wait_any(
        self, readers: Sequence[Watch], writers: Sequence[Watch], deadline: float = NEVER
    ) -> bool:
        """Park until one of `readers` may be read or one of `writers` written: True; False at the deadline. Call it
        when none of them is known to be."""
        task = self.current
        for watch in readers:
            if not watch.registered:
                self._register(watch)
            watch.reader = task
        for watch in writers:
            watch.watch_writing()
            watch.writer = task
        try:
            return await self.park(deadline)
        finally:
            for watch in readers:
                watch.reader = None
            for watch in writers:
                watch.writer = None

    async def in_thread(self, function: Callable[[], T], deadline: float = NEVER) -> T:
        """What `function` returns or raises, run in a thread of its own; raises DeadlinePassed, the thread is then left
        to itself. `function` must touch nothing of the loop's."""
        promise: Promise[T] = Promise(self)

        def settle(settled: Callable[[], None]) -> None:
            self._threads -= 1
            settled()

        def work() -> None:
            try:
                value = function()
            except BaseException as error:
                failure = error
                self.post(lambda: settle(lambda: promise.fail(failure)))
            else:
                self.post(lambda: settle(lambda: promise.set(value)))

        self._threads += 1
        _thread.start_new_thread(work, ())  # not threading: its import costs, and an exit must not wait for a look-up
        return await promise.wait(deadline)

    def post(self, function: Callable[[], object]) -> None:
        """Have `function` called by the loop; safe from threads and signal handlers."""
        self._posted.append(function)
        try:
            os.write(self._ringer, _RING)
        except (OSError, ValueError):  # the bell rings already, or the loop is closed
            pass

    def run(self, coroutine: Coroutine[Any, None, T]) -> T:
        """Run `coroutine` to its end, give its value or raise what it raises. Every group in it has ended then."""
        task = Task(self, coroutine, None)
        self._ready.append(task)
        while not task.done:
            self._go_round()
        if task.error is not None:
            raise task.error
        return task.value  # type: ignore[return-value]

    def close(self) -> None:
        """Free the loop's own descriptors."""
        self._epoll.close()
        ends, self._bell, self._ringer = {self._bell, self._ringer}, -1, -1
        for end in ends - {-1}:
            os.close(end)

    def _go_round(self) -> None:
        """One round: poll, note events, note passed deadlines, run what can run."""
        ready = self._ready
        timers = self._timers
        clock = self._clock
        waiting = bool(ready)
        if waiting:
            events = self._epoll.poll(_MOMENT if self._gave_way else 0, _EVENTS_A_POLL)
        else:
            seconds = max(0.0, timers[0][0] - clock.now()) if timers else NEVER
            patience = clock.patience(seconds, self._threads)
            events = self._epoll.poll(None if patience == NEVER else patience, _EVENTS_A_POLL)
            if not events:
                clock.slept(seconds, self._threads)
        self.now = now = clock.now()
        self._gave_way = False
        if not waiting:
            self._all_ran = now
        watches = self._watches
        for fd, mask in events:
            watch = watches.get(fd)
            if watch is None:
                if fd == self._bell:
                    self._answer_bell()
                continue
            if mask & _READ:
                watch.can_read = True
                if mask & _HANG:
                    watch.hung_up = True
                task = watch.reader
                if task is not None and task._parked:
                    task._parked = False
                    if watch.first:
                        ready.appendleft(task)
                    else:
                        ready.append(task)
            if mask & _WRITE:
                watch.can_write = True
                task = watch.writer
                if task is not None and task._parked:
                    task._parked = False
                    ready.append(task)
        if timers and timers[0][0] <= now:
            self._note_deadlines(now)
        self._started = False
        self._run_ready()
        if self._started and not self._gave_way:  # it need not wait for another poll
            self._run_ready()
        self._current = None

    def _run_ready(self) -> None:
        """Take each task that can run now as far as it comes; who can run again after that waits for the next call, and
        so does the rest where one gives way."""
        ready = self._ready
        for _ in range(len(ready)):
            task = ready.popleft()
            self._current = task
            coroutine = task._coroutine
            if coroutine is None:
                continue
            try:
                if task._throw is None:
                    coroutine.send(None)
                else:
                    error, task._throw = task._throw, None
                    task._expired = False
                    coroutine.throw(error)
            except StopIteration as stop:
                task._finish(stop.value, None)
            except BaseException as error:
                task._finish(None, error)
            if self._gave_way and self.now - self._all_ran < _LONGEST_WAY:
                return
        self._all_ran = self.now

    def _note_deadlines(self, now: float) -> None:
        timers = self._timers
        while timers and timers[0][0] <= now:
            when, _, task = heappop(timers)
            if task.done or task._armed != when:
                self._finished_timers -= 1  # the task ended, or armed an earlier entry since
                continue
            task._armed = NEVER
            if not task._parked:
                continue  # its next wait arms again
            if task._deadline <= now:
                task._expired = True
                task._wake()
            elif task._deadline != NEVER:
                task._armed = task._deadline
                heappush(timers, (task._deadline, next(self._order), task))

    def _forget_timer(self) -> None:
        """One more entry of the heap means nothing any more; sweep when most of them do."""
        self._finished_timers += 1
        if self._finished_timers > _FEW_TIMERS and self._finished_timers * 2 > len(self._timers):
            self._timers[:] = [entry for entry in self._timers if not entry[2].done and entry[2]._armed == entry[0]]
            heapify(self._timers)
            self._finished_timers = 0

    def _register(self, watch: Watch, *, writing: bool = False) -> None:
        self._watches[watch.fd] = watch
        # reports at once what is already the case
        self._epoll.register(watch.fd, _EDGES if writing else _READ_EDGES)
        watch.registered = True
        watch.writing_noted = writing

    def _note_writing(self, watch: Watch, *, noted: bool) -> None:
        """Whether events of writing are noted; what is the case is reported at once."""
        if watch.registered:
            self._epoll.modify(watch.fd, _EDGES if noted else _READ_EDGES)
            watch.writing_noted = noted

    def _answer_bell(self) -> None:
        try:
            os.read(self._bell, len(_RING))
        except BlockingIOError:
            pass
        while self._posted:
            self._posted.popleft()()


# What an eventfd takes and gives (eventfd(2)); in a pipe it is as good as any eight bytes.
_RING = (1).to_bytes(8, sys.byteorder)


def _make_bell() -> tuple[int, int]:
    """The ends to wait at and to ring at: one eventfd, or a pipe's two where there is none. Ringing never blocks."""
    if hasattr(os, "eventfd"):
        bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return bell, bell
    bell, ringer = os.pipe()
    for end in (bell, ringer):
        os.set_blocking(end, False)
    return bell, ringer


@types.coroutine
def _step_aside() -> Generator[None, None, None]:
    yield


class Group:
    """Owns tasks: `async with Group(loop) as group: group.start(coroutine)` does not end before all of them ended.

    An error in one task cancels the others and the body, and is raised at the end. An error in the body cancels the
    tasks. A cancelled task counts as ended, not as failed."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._tasks: set[Task[Any]] = set()
        self._errors: list[BaseException] = []
        self._host: Task[Any] | None = None
        self._own = Cancelled()  # tells our cancelling of the body from everybody else's
        self._in_body = False
        self._closing = False

    async def __aenter__(self) -> Group:
        self._host = self._loop.current
        self._in_body = True
        return self

    def start(self, coroutine: Coroutine[Any, None, T]) -> Task[T]:
        """Run `coroutine` as a task of this group."""
        task = Task(self._loop, coroutine, self)
        self._tasks.add(task)
        self._loop._ready.append(task)
        self._loop._started = True
        if self._closing:
            task.cancel()
        return task

    def cancel(self) -> None:
        """Cancel every task, those too that are started later."""
        self._closing = True
        for task in tuple(self._tasks):
            task.cancel()

    @property
    def running(self) -> bool:
        """Whether tasks may be started: between the entry and the exit of `async with`."""
        return self._in_body

    def _finished(self, task: Task[Any]) -> None:
        self._tasks.discard(task)
        if task.error is not None and not isinstance(task.error, Cancelled):
            self._errors.append(task.error)
            self.cancel()
            if self._in_body and self._host is not None and self._host._throw is None:
                self._host.cancel(self._own)
        if not self._tasks and not self._in_body and self._host is not None:
            self._host._wake()

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._in_body = False
        host = self._host
        assert host is not None
        if host._throw is self._own:
            host._throw = None  # the body ended before our cancelling reached it
        if error is not None:
            self.cancel()
        outside: Cancelled | None = None
        while self._tasks:
            try:
                await self._loop.park()
            except Cancelled as cancelled:
                outside = cancelled
                self.cancel()
        self._host = None
        if outside is not None:
            raise outside
        if error is not None and error is not self._own:
            return
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            raise BaseExceptionGroup("several tasks failed", self._errors)

"""The few calls of an event loop that the supervisor of the door alone makes, and a loop of that size.

asyncio's loop has them too and takes this one's place where a control listener needs it; without one, importing asyncio
would cost tens of milliseconds and a third of the process's memory for nothing.
"""

from __future__ import annotations

import selectors
import signal
import socket
import time
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol

Callback = Callable[[], object]


class Timer(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """It is not to come any more."""


class EventLoop(Protocol):
    """As asyncio.AbstractEventLoop."""

    def add_reader(self, fd: int, callback: Callback, /) -> Any:
        """Call it whenever `fd` can be read."""

    def remove_reader(self, fd: int, /) -> Any:
        """No more."""

    def add_writer(self, fd: int, callback: Callback, /) -> Any:
        """Call it whenever `fd` can be written."""

    def remove_writer(self, fd: int, /) -> Any:
        """No more."""

    def call_later(self, delay: float, callback: Callback, /) -> Timer:
        """Call it once, `delay` seconds from now."""

    def add_signal_handler(self, sig: int, callback: Callback, /) -> None:
        """Call it when the signal came, as any other callback."""

    def run_forever(self) -> None:
        """Until `stop`."""

    def stop(self) -> None:
        """`run_forever` returns after this round."""

    def close(self) -> None:
        """Free what it holds."""


class CallbackLoop:
    """Readers, writers, timers and signals; in the main thread."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, _Call]] = []
        self._numbers = count()
        self._signals: dict[int, Callback] = {}
        self._stopped = False
        self._bell, self._bell_end = socket.socketpair()
        for end in (self._bell, self._bell_end):
            end.setblocking(False)
        self.add_reader(self._bell.fileno(), self._heard)

    def add_reader(self, fd: int, callback: Callback, /) -> None:
        """See EventLoop."""
        self._set(fd, selectors.EVENT_READ, callback)

    def remove_reader(self, fd: int, /) -> None:
        """See EventLoop."""
        self._set(fd, selectors.EVENT_READ, None)

    def add_writer(self, fd: int, callback: Callback, /) -> None:
        """See EventLoop."""
        self._set(fd, selectors.EVENT_WRITE, callback)

    def remove_writer(self, fd: int, /) -> None:
        """See EventLoop."""
        self._set(fd, selectors.EVENT_WRITE, None)

    def call_later(self, delay: float, callback: Callback, /) -> Timer:
        """See EventLoop."""
        call = _Call(callback)
        heappush(self._timers, (time.monotonic() + delay, next(self._numbers), call))
        return call

    def add_signal_handler(self, sig: int, callback: Callback, /) -> None:
        """See EventLoop."""
        self._signals[sig] = callback
        signal.set_wakeup_fd(self._bell_end.fileno(), warn_on_full_buffer=False)
        signal.signal(sig, _noted)

    def run_forever(self) -> None:
        """See EventLoop."""
        self._stopped = False
        while not self._stopped:
            wait = None if not self._timers else max(0.0, self._timers[0][0] - time.monotonic())
            for key, events in self._selector.select(wait):
                for event in (selectors.EVENT_READ, selectors.EVENT_WRITE):
                    callback = key.data.get(event)
                    if events & event and callback is not None:  # an earlier callback may have removed it
                        callback()
            while self._timers and self._timers[0][0] <= time.monotonic():
                heappop(self._timers)[2].run()

    def stop(self) -> None:
        """See EventLoop."""
        self._stopped = True

    def close(self) -> None:
        """See EventLoop. The signals go back to what they do by themselves."""
        if self._signals:
            signal.set_wakeup_fd(-1)
            for number in self._signals:
                signal.signal(number, signal.SIG_DFL)
        self._selector.close()
        self._bell.close()
        self._bell_end.close()

    def _set(self, fd: int, event: int, callback: Callback | None) -> None:
        known = self._selector.get_map().get(fd)
        callbacks: dict[int, Callback] = {} if known is None else known.data
        if callback is None:
            callbacks.pop(event, None)
        else:
            callbacks[event] = callback
        mask = sum(callbacks)
        if known is None:
            if mask:
                self._selector.register(fd, mask, callbacks)
        elif mask:
            self._selector.modify(fd, mask, callbacks)
        else:
            self._selector.unregister(fd)

    def _heard(self) -> None:
        for number in self._bell.recv(4096):
            callback = self._signals.get(number)
            if callback is not None:
                callback()


class _Call:
    def __init__(self, callback: Callback) -> None:
        self._callback: Callback | None = callback

    def cancel(self) -> None:
        self._callback = None

    def run(self) -> None:
        if self._callback is not None:
            self._callback()


def _noted(_number: int, _frame: object) -> None:
    """The signal's number is in the bell; nothing else is to be done where it came."""

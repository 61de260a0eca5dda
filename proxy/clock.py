"""The clocks a loop can run by: the machine's own, and a simulated one for tests."""

from __future__ import annotations

import time

from doorward.typing_names import Protocol

NEVER = float("inf")
"""The deadline that does not come."""


class Clock(Protocol):
    """Where a loop takes the time from, in seconds; only differences matter."""

    def now(self) -> float:
        """The time."""

    def patience(self, seconds: float, threads: int) -> float:
        """How long the loop may really sleep when its next timer is `seconds` away; `threads` are working for it."""

    def slept(self, seconds: float, threads: int) -> None:
        """A sleep ended with no event, although it might have lasted `seconds`."""


class MonotonicClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """The time."""
        return time.monotonic()

    def patience(self, seconds: float, threads: int) -> float:
        """As long as the loop likes."""
        return seconds

    def slept(self, seconds: float, threads: int) -> None:
        """Nothing to do: time passed by itself."""


class Stuck(Exception):
    """Every task waits, and nothing can ever wake one."""


class SimulatedClock:
    """Time stands still while anything can run and jumps to the next deadline when nothing can.

    So a test of a 60 s limit takes no time, and one that would wait for ever raises `Stuck`. A loop under this clock
    may hold sockets, as long as their other ends are in the same loop or already wrote all they will. While a worker
    thread runs the loop really waits for it, since its work takes no simulated time."""

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start

    def now(self) -> float:
        """The simulated time."""
        return self._now

    def patience(self, seconds: float, threads: int) -> float:
        """Only look; but give a worker thread the time it needs."""
        return NEVER if threads else 0.0

    def slept(self, seconds: float, threads: int) -> None:
        """Nothing was there: jump."""
        if seconds == NEVER:
            raise Stuck("every task waits and there is no deadline")
        self._now += seconds

"""How much processor time a run has used: that of its processes, and of those that have ended."""

import os
import time

from doorward.launcher.process_tree import children

_TICKS = os.sysconf("SC_CLK_TCK")
_PROCESSORS = os.cpu_count() or 1
_SHORTEST_S = 0.05
# From SIGXCPU for the command's first process to the end of the whole run.
GRACE_S = 2.0


def used_s(process: int) -> float:
    """Seconds of the process and everything below it. Children that were waited for count in their parents' own
    sums (proc(5), the fields utime, stime, cutime and cstime of /proc/pid/stat)."""
    ticks = 0
    pending = [process]
    while pending:
        pid = pending.pop()
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                # the command's name may hold blanks and brackets; the state is the first field after it
                ticks += sum(map(int, file.read().rpartition(b")")[2].split()[11:15]))
        except (OSError, ValueError):
            continue
        pending += children(pid)
    return ticks / _TICKS


class Budget:
    """A run's processor time, `limit` in seconds. Looked at only when it could be used up, with every processor
    busy; `due` is that moment on the monotonic clock, None before the run starts."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._before = 0.0
        self.due: float | None = None
        self.ended_at: float | None = None
        """When the run was told to end."""

    def start(self, process: int) -> None:
        """The command is let go; what setting up cost does not count."""
        self._before = used_s(process)
        self.due = time.monotonic() + max(_SHORTEST_S, self._limit / _PROCESSORS)

    def used_up(self, process: int) -> bool:
        """Whether `process` and what is below it have used it up; if not, `due` moves on."""
        left = self._limit - (used_s(process) - self._before)
        self.due = time.monotonic() + max(_SHORTEST_S, left / _PROCESSORS)
        return left <= 0

    def end(self, now: float) -> None:
        """The command is told to end; at `due` it is killed."""
        self.ended_at = now
        self.due = now + GRACE_S

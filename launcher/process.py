"""The supervisor's side of one run: orders to the shim, and what it reports at the end."""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from doorward.launcher.interface import Outcome
from doorward.launcher.plan import Plan

Report = Mapping[str, Any]


class ShimProcess:
    """A run that a shim looks after (see `shim`)."""

    def __init__(self, shim: int, orders: int, report: int, conclude: Callable[[Report | None], Outcome]) -> None:
        self._shim = shim
        self._orders = orders
        self._report = report
        self._conclude = conclude
        self._outcome: Outcome | None = None
        self._collected: Report | None = None
        self._ended = False
        self._closed = False

    def fileno(self) -> int:
        """Readable once everything the shim looked after is gone: it then reports, or has died itself."""
        return self._report

    def send_plan(self, plan: Plan) -> None:
        """The first order: what to mount and what to start."""
        self._send(plan.to_line())

    def release(self) -> None:
        """Let the command start."""
        self._order({"release": True})

    def signal(self, signum: int) -> None:
        """Send a signal to the command's first process; nothing happens once the run has ended."""
        self._order({"signal": int(signum)})

    def kill(self) -> None:
        """Kill the whole tree at once."""
        self._order({"kill": True})

    def wait(self) -> Outcome:
        """Block until everything of the run is gone."""
        if self._outcome is None:
            self._outcome = self._conclude(self.collect())
        return self._outcome

    def collect(self) -> Report | None:
        """The shim's report; None if it died without one."""
        if not self._ended:
            # a report is smaller than a pipe and written at once; end of file without one means it died
            text = b""
            while not text.endswith(b"\n") and (piece := os.read(self._report, 1 << 16)):
                text += piece
            self._ended = True
            try:
                self._collected = json.loads(text)
            except ValueError:
                self._collected = None
        return self._collected

    def close(self) -> None:
        """Give the descriptors back; kills the run if it still goes on."""
        if self._closed:
            return
        if not self._ended:
            self.kill()
            self.collect()
        self._closed = True
        os.close(self._orders)
        os.close(self._report)
        try:
            os.waitpid(self._shim, 0)
        except ChildProcessError:
            pass  # someone else in this process collects children, or SIGCHLD is ignored

    def _order(self, order: Mapping[str, Any]) -> None:
        self._send(json.dumps(order).encode() + b"\n")

    def _send(self, line: bytes) -> None:
        if self._closed:
            return
        data = memoryview(line)
        try:
            while data:
                data = data[os.write(self._orders, data) :]
        except BrokenPipeError:
            pass  # the shim has ended; its report says why


class NeverStarted:
    """The outcome of a command that was not started."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._ended = os.eventfd(1, os.EFD_CLOEXEC)
        self._closed = False

    def fileno(self) -> int:
        """Readable from the start."""
        return self._ended

    def release(self) -> None:
        """There is nothing to release."""

    def signal(self, signum: int) -> None:
        """There is nothing to signal."""

    def kill(self) -> None:
        """There is nothing to kill."""

    def wait(self) -> Outcome:
        """Why it did not start."""
        return self._outcome

    def close(self) -> None:
        """Give the descriptor back."""
        if not self._closed:
            self._closed = True
            os.close(self._ended)

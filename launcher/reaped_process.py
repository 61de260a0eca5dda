"""The supervisor's side of a run that a reaper looks after (see `reaper`)."""

import json
import os
import signal
from _socket import AF_UNIX, SOCK_STREAM, socketpair
from collections.abc import Callable, Mapping
from typing import Any

from doorward.launcher.interface import Outcome
from doorward.launcher.reaper import Start, run

Report = Mapping[str, Any]


class ReapedProcess:
    """See `protocols.Process`. `conclude` makes the outcome of the reaper's report, None if it died without one."""

    def __init__(self, start: Start, conclude: Callable[[Report | None], Outcome]) -> None:
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        # a signal between the fork and the reaper's own handlers would end it with nothing tidied up
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        try:
            self._reaper = os.fork()
            if self._reaper == 0:
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
                run(theirs.detach(), start)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        self._channel = ours.detach()
        self._conclude = conclude
        self._outcome: Outcome | None = None
        self._closed = False

    def fileno(self) -> int:
        """Readable once everything of the run is gone."""
        return self._channel

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
            text = b""
            try:
                while not text.endswith(b"\n") and (piece := os.read(self._channel, 1 << 16)):
                    text += piece
            except ConnectionError:
                pass
            self._outcome = self._conclude(json.loads(text) if text.endswith(b"\n") else None)
        return self._outcome

    def close(self) -> None:
        """Give the descriptor back; kills the run if it still goes on."""
        if self._closed:
            return
        if self._outcome is None:
            self.kill()
            self.wait()
        self._closed = True
        os.close(self._channel)
        try:
            os.waitpid(self._reaper, 0)
        except ChildProcessError:
            pass  # someone else in this process collects children, or SIGCHLD is ignored

    def _order(self, order: Mapping[str, Any]) -> None:
        if not self._closed:
            try:
                os.write(self._channel, json.dumps(order).encode() + b"\n")
            except ConnectionError:
                pass  # the reaper has ended


class NotStarted:
    """The outcome of a command that was not started. Like `process.NeverStarted`, without an eventfd."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._ended, writer = os.pipe()
        os.close(writer)
        self._closed = False

    def fileno(self) -> int:
        """Readable from the start: at its end."""
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

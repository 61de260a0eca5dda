"""The supervisor's side of one run: orders to the shim, and what it reports at the end."""

from __future__ import annotations

import os

from doorward.launcher.interface import Outcome
from doorward.launcher.launch import Launch
from doorward.launcher.seed import Seed
from doorward.start_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Report = Mapping[str, Any]
else:
    Report = dict


class ShimProcess:
    """A run that a shim looks after (see `shim`)."""

    def __init__(self, seed: Seed, launch: Launch, conclude: Callable[[Report | None], Outcome]) -> None:
        self._seed = seed
        self._conclude = conclude
        self._outcome: Outcome | None = None
        self._collected: Report | None = None
        self._ended = False
        self._closed = False
        try:
            seed.send(launch.to_line(), launch.descriptors())
        except ConnectionError:
            pass  # the shim has ended; its report, or that there is none, says why

    def fileno(self) -> int:
        """Readable once everything the shim looked after is gone: it then reports, or has died itself."""
        return self._seed.channel

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
            # a report is smaller than the socket's buffer and sent at once; an end without one means it died
            text = b""
            try:
                while not text.endswith(b"\n") and (piece := os.read(self._seed.channel, 1 << 16)):
                    text += piece
            except ConnectionError:
                pass
            self._ended = True
            try:
                self._collected = loads(text)
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
        self._seed.discard()

    def _order(self, order: Mapping[str, Any]) -> None:
        if not self._closed:
            try:
                os.write(self._seed.channel, dumps(order).encode() + b"\n")
            except ConnectionError:
                pass  # the shim has ended


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

"""One command from the gates to its observation: the loop that waits for it, its streams and the proxy's records."""

from __future__ import annotations

import os
import select
import time

from doorward import exit_status
from doorward.errors import ProxyStopped
from doorward.launcher.interface import Outcome
from doorward.named_tuple import NamedTuple
from doorward.proxy_process import ProxyProcess
from doorward.streams import Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence
    from typing import Final

    from doorward.host_asking import HostAsking
    from doorward.launcher.protocols import Process
    from doorward.proxy_process import Told
else:
    import _signal as signal  # the same functions without the enums, which cost 0.5 ms

FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

SIGNAL_GRACE_S: Final = 5.0
"""From the first forwarded signal to the end of the whole tree (DESIGN §6)."""

TIMEOUT_GRACE_S: Final = 2.0
"""From TERM to KILL after `--timeout` (DESIGN §6)."""

# Where there is no such event (macOS) POLLHUP comes once the far end is closed.
_FAR_END_CLOSED: Final = getattr(select, "POLLRDHUP", select.POLLHUP)

_FINISH_S: Final = 5.0
"""How long the proxy may take to close a run's connections and send their last records."""


class Waited(NamedTuple):
    """How the wait ended. `proxy_stopped`: the proxy died under it, and the network was closed from then on."""

    outcome: Outcome
    timed_out: bool
    proxy_stopped: bool


class SignalInbox:
    """Signals as bytes on a pipe while a command runs, so that the one poll sees them too."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self._writer, False)
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._before = {
            number: signal.signal(number, _noted) for number in (*FORWARDED, signal.SIGWINCH, signal.SIGCONT)
        }

    def take(self) -> bytes:
        """Numbers of the signals that arrived, in order."""
        try:
            return os.read(self.reader, 512)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Put the caller's handlers back."""
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.reader)
        os.close(self._writer)


def _noted(number: int, frame: object) -> None:
    """A Python-level handler must exist for the wake-up descriptor to be written; it has nothing to do."""


class TurnLoop:
    """Waits for one released process. Every way a run can go on ends in `wait` returning."""

    def __init__(
        self,
        process: Process,
        streams: Streams,
        proxy: ProxyProcess | None,
        run: str,
        append: Callable[[Sequence[Told]], None],
        *,
        cancelled_by: int | None = None,
        ask_about_hosts: Callable[[], HostAsking] | None = None,
        kept: Callable[[Sequence[Told]], None] | None = None,
        between: Callable[[], None] | None = None,
    ) -> None:
        """`append` keeps what the proxy's records say; `kept` hears of it when their receipts are sent, so that nobody
        waits for it; `between` is called behind that, while the run goes on. `ask_about_hosts` makes what answers the
        proxy's questions, at the first of them."""
        self._process = process
        self._streams = streams
        self._proxy = proxy
        self._run = run
        self._append = append
        self._cancelled_by = cancelled_by
        self._ask_about_hosts = ask_about_hosts
        self._kept = kept
        self._between = between
        self._asking: HostAsking | None = None
        self._ended = False
        self._finished = proxy is None
        self._killed = False
        self._timed_out = False
        self._proxy_stopped = False
        self._deadlines: dict[str, float] = {}
        self._signals_seen = 0

    def wait(self, inbox: SignalInbox, timeout: float | None) -> Waited:
        """Run until the command is over and the proxy has sent its last record of this run.

        Raises whatever `append` raises (a rollout that cannot be written), after the whole tree was killed.
        """
        if timeout is not None:
            self._deadlines["timeout"] = time.monotonic() + timeout
        outcome: Outcome | None = None
        try:
            while not self._ended:
                self._poll(inbox)
            self._ask_for_the_rest()
            outcome = self._process.wait()
            for inlet in self._streams.inlets:
                inlet.drain(started=outcome.failure is None)
            self._take_the_rest()
            return Waited(outcome, self._timed_out, self._proxy_stopped)
        finally:
            if outcome is None:
                self._kill()
                self._process.wait()
            for inlet in self._streams.inlets:
                inlet.close()
            if self._asking is not None:
                self._asking.close()

    def _poll(self, inbox: SignalInbox) -> None:
        poll = select.poll()
        poll.register(self._process.fileno(), select.POLLIN)
        poll.register(inbox.reader, select.POLLIN)
        readers: dict[int, Callable[[], object]] = {inbox.reader: lambda: self._signals(inbox.take())}
        for inlet in self._streams.inlets:
            if inlet.open and (waits := inlet.outlet.waits) is not None:
                poll.register(waits, select.POLLOUT)
                readers[waits] = inlet.outlet.flush
            elif inlet.open:
                poll.register(inlet.fd, select.POLLIN)
                readers[inlet.fd] = inlet.pump
        if self._proxy is not None and not self._proxy_stopped:
            poll.register(self._proxy.fileno(), select.POLLIN)
            readers[self._proxy.fileno()] = self._proxy_records
        if self._asking is not None:
            self._asking.register(poll, readers)
        terminal = self._streams.terminal
        if terminal is not None and 0 not in readers and "stdin" not in self._deadlines:
            poll.register(0, select.POLLIN)
            readers[0] = self._typed
        if self._cancelled_by is not None:
            poll.register(self._cancelled_by, _FAR_END_CLOSED)
            readers[self._cancelled_by] = self._kill
        proxy = -1 if self._proxy is None or self._proxy_stopped else self._proxy.fileno()
        while True:
            events = poll.poll(self._milliseconds())
            for fd, _ in events:
                if fd in readers:
                    readers[fd]()
                elif fd == self._process.fileno():
                    self._ended = True
            if self._deadlines:
                self._expire()
            # records alone change nothing about what is waited for, and whoever sent them waits for this process
            if len(events) != 1 or events[0][0] != proxy or self._proxy_stopped or self._asking is not None:
                return

    def _milliseconds(self) -> int | None:
        if not self._deadlines:
            return None
        pending = [deadline for deadline in self._deadlines.values() if deadline < float("inf")]
        # poll(2) takes an int of milliseconds; what is further off than that is looked at again then
        left = int((min(pending) - time.monotonic()) * 1000) + 1 if pending else 0
        return min(max(0, left), 2**31 - 1) if pending else None

    def _expire(self) -> None:
        now = time.monotonic()
        for name in [name for name, deadline in self._deadlines.items() if deadline <= now]:
            del self._deadlines[name]
            if name == "timeout":
                self._timed_out = True
                self._process.signal(signal.SIGTERM)
                self._deadlines["kill"] = now + TIMEOUT_GRACE_S
            elif name == "kill":
                self._kill()

    def _signals(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGWINCH:
                if self._streams.terminal is not None:
                    self._streams.terminal.resize()
            elif number in FORWARDED:
                self._signals_seen += 1
                if self._signals_seen > 1:
                    self._kill()
                else:
                    self._process.signal(number)
                    self._deadlines.setdefault("kill", time.monotonic() + SIGNAL_GRACE_S)

    def _typed(self) -> None:
        terminal = self._streams.terminal
        if terminal is not None and not terminal.typed():
            self._deadlines["stdin"] = float("inf")  # at its end: no longer polled

    def _kill(self) -> None:
        if not self._killed:
            self._killed = True
            self._process.kill()

    def _proxy_records(self) -> None:
        proxy = self._proxy
        assert proxy is not None
        try:
            items, receipts, finished = proxy.records()
        except ProxyStopped:
            self._proxy_stopped = self._finished = True
            return
        if items:
            self._append(items)
        if receipts:
            proxy.acknowledge(receipts)
        if items and self._kept is not None:
            self._kept(items)
        if proxy.questions:
            self._take_questions()
        if self._run in finished:
            self._finished = True
        elif self._between is not None:
            self._between()

    def _take_questions(self) -> None:
        assert self._proxy is not None
        messages = [message for message in self._proxy.questions if message["type"] != "question" or not self._ended]
        self._proxy.questions.clear()
        if self._asking is None and messages and self._ask_about_hosts is not None:
            self._asking = self._ask_about_hosts()
        if self._asking is not None:
            self._asking.hear(messages)

    def _ask_for_the_rest(self) -> None:
        """The command is over: let the proxy close this run's connections and send what it still knows of them."""
        if self._proxy is not None and not self._proxy_stopped:
            self._proxy.finish(self._run)

    def _take_the_rest(self) -> None:
        if self._proxy is None or self._proxy_stopped:
            return
        poll = select.poll()
        poll.register(self._proxy.fileno(), select.POLLIN)
        until = time.monotonic() + _FINISH_S
        while not self._finished:
            if not poll.poll(max(0, int((until - time.monotonic()) * 1000))):
                self._proxy_stopped = True  # it hangs: treated as gone, and said so
                return
            self._proxy_records()


def final_status(waited: Waited) -> int:
    """The run's exit code from how the wait ended (DESIGN §6)."""
    return exit_status.TIMED_OUT if waited.timed_out else waited.outcome.exit_code

"""The supervisor's hold on one worker of the door alone: started by a fork, spoken to over a socket, noticed when it
ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from doorward.callback_loop import EventLoop
from doorward.proxy.policy import Policy
from doorward.proxy_worker import HELD_BACK, WorkerSetup, become_worker

_READ = 1 << 18
_READS = 64


class WorkerProcess:
    """Running from the start. `on_message(worker, message)` and, once, `on_end(worker, exit status)` are called by the
    loop; `ready` and `applied` (the number of the newest rules in force there) are the supervisor's to keep."""

    def __init__(
        self,
        loop: EventLoop,
        number: int,
        listeners: Sequence[socket.socket],
        policy: Policy,
        setup: WorkerSetup,
        on_message: Callable[[WorkerProcess, Mapping[str, Any]], None],
        on_end: Callable[[WorkerProcess, int], None],
    ) -> None:
        self.number = number
        self.started = time.monotonic()
        self.ready = False
        self.applied = 0
        self.links = 0
        """Links to inspection workers it was given."""
        self.log_problem = ""
        self._loop = loop
        self._on_message = on_message
        self._on_end = on_end
        self._kept = b""
        self._out = bytearray()
        self._wire, theirs = socket.socketpair()
        self._links: socket.socket | None = None
        their_links: socket.socket | None = None
        if sys.platform == "linux":  # where there is inspection
            self._links, their_links = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                become_worker(theirs, their_links, listeners, policy, setup)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        if their_links is not None:
            their_links.close()
        self._wire.setblocking(False)
        # without pidfds (macOS) the end of what it says is its own: nobody else holds that socket
        self._pidfd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else -1
        self._silent = False
        loop.add_reader(self._wire.fileno(), self._read)
        if self._pidfd >= 0:
            loop.add_reader(self._pidfd, self._ended)

    def send(self, message: Mapping[str, object]) -> None:
        """Send it, now or as soon as the worker takes it."""
        self._out += json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        self._write()

    def give_link(self, link: socket.socket) -> None:
        """Hand over the door's end of a link to an inspection worker; it is closed here."""
        assert self._links is not None
        self.links += 1
        try:
            socket.send_fds(self._links, [b"link"], [link.fileno()])
        except OSError:
            pass  # it is gone: `_ended` hears of it
        link.close()

    def catch_up(self) -> None:
        """Handle what the worker has said so far; but not for ever, if it goes on talking."""
        for _ in range(_READS):
            if not self._read():
                break

    def kill(self) -> None:
        """End it whatever it is doing."""
        try:
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)  # whoever calls has not been told of its end, so it is not reaped
        except OSError:
            pass  # it has ended

    def _write(self) -> None:
        try:
            while self._out:
                del self._out[: self._wire.send(self._out)]
        except BlockingIOError:
            self._loop.add_writer(self._wire.fileno(), self._write)
            return
        except OSError:
            self._out.clear()  # it is gone: `_ended` hears of it
        self._loop.remove_writer(self._wire.fileno())

    def _read(self) -> bool:
        """Whether there may be more."""
        try:
            data = self._wire.recv(_READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            if self._wire.fileno() >= 0:
                self._loop.remove_reader(self._wire.fileno())
                if self._pidfd < 0 and not self._silent:
                    self._silent = True
                    self._loop.call_later(0, self._ended)
            return False
        *lines, self._kept = (self._kept + data).split(b"\n")
        for line in lines:
            self._on_message(self, json.loads(line))
        return True

    def _ended(self) -> None:
        while self._read():  # what it said last
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._loop.remove_reader(self._wire.fileno())
        self._loop.remove_writer(self._wire.fileno())
        self._wire.close()
        if self._links is not None:
            self._links.close()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._on_end(self, status)

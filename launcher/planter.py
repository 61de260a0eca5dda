"""A process that forks shims for a session, so that the supervisor need not.

After a fork the parent pays for each page that it writes to: 0.5 ms and more in every command, while somebody waits for
it. This process is forked once, then sits still; the shims are its children, and are told of the same supervisor. It
ends with the supervisor, or when its channel closes; the shims do not depend on it.
"""

from __future__ import annotations

import gc
import os
import select
from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM, socketpair

from doorward.launcher import descriptor_passing, shim, shim_signals
from doorward.launcher.launch import identity_from
from doorward.launcher.seed import Seed
from doorward.launcher.starter import close_all_but
from doorward.start_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from doorward.launcher.interface import Identity


class Planter:
    """The supervisor's side. Raises OSError where no process can be made or watched."""

    def __init__(self) -> None:
        supervisor = os.pidfd_open(os.getpid())
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
        self._pid = os.fork()
        if self._pid == 0:
            _live(theirs.detach(), supervisor)
        os.close(supervisor)
        theirs.close()
        self._channel = ours.detach()

    def plant(self, namespaces: int, user: Identity | None, *, captured: bool, terminal: bool) -> Seed:
        """A shim as `seed.plant` forks one. Raises OSError if the process is gone, or cannot fork."""
        descriptor_passing.send(self._channel, dumps((namespaces, user, captured, terminal)).encode() + b"\n", ())
        received: list[int] = []
        answer = descriptor_passing.receive(self._channel, received)
        if not answer:
            raise ConnectionResetError("the process that forks shims has ended")
        pid, number = loads(answer)
        if not pid:
            raise OSError(number, os.strerror(number))
        channel, watch = received
        return Seed(pid, channel, namespaces, user, captured, terminal, watch)

    def close(self) -> None:
        """Ends the process; shims that it forked go on."""
        os.close(self._channel)
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:
            pass  # someone else in this process collects children, or SIGCHLD is ignored


def _live(channel: int, supervisor: int) -> NoReturn:
    """The forked process's whole life."""
    try:
        gc.disable()
        inherited = shim_signals.take()
        close_all_but((channel, supervisor))
        os.setsid()
        poll = select.poll()
        poll.register(channel, select.POLLIN)
        poll.register(supervisor, select.POLLIN)
        while supervisor not in dict(poll.poll()):
            line = descriptor_passing.receive(channel, [])
            if not line:
                break
            _fork_one(channel, supervisor, line, inherited)
    finally:
        os._exit(0)


def _collect() -> None:
    """Shims that have ended; the last ones are left to whoever collects after this process."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _fork_one(channel: int, supervisor: int, line: bytes, inherited: tuple[int, ...]) -> None:
    namespaces, user, captured, terminal = loads(line)
    ours, theirs = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
    try:
        try:
            pid = os.fork()
        except OSError as error:
            descriptor_passing.send(channel, dumps((0, error.errno)).encode(), ())
            return
        if pid == 0:
            shim_signals.give(inherited)
            who = None if user is None else identity_from(user)
            shim.run(theirs.detach(), supervisor, namespaces, who, captured=captured, terminal=terminal)
        watch = os.pidfd_open(pid)
        descriptor_passing.send(channel, dumps((pid, 0)).encode(), (ours.fileno(), watch))
        os.close(watch)
    finally:
        ours.close()
        theirs.close()
    _collect()

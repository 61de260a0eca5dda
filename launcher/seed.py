"""Forks a shim ahead of its use: it loads its modules and makes its namespaces while the supervisor goes on.

The channel between them is a unix stream socket: orders go one way, the report comes back, and the command's
descriptors travel with the first order.
"""

from __future__ import annotations

import os
import select
from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM, socketpair

from doorward.launcher import descriptor_passing
from doorward.launcher.interface import Identity, SandboxUnavailable
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Seed(NamedTuple):
    """A waiting shim: its process, our end of the channel, the namespaces it makes (CLONE_NEW* flags), whom it makes
    them for, unless for the caller, whether every address in its network already leads to the door, and whether it
    can give the command a terminal: what it forks before it has one never gets it (tty_ioctl(2), TIOCSCTTY)."""

    shim: int
    channel: int
    namespaces: int
    user: Identity | None = None
    captured: bool = False
    terminal: bool = True
    watch: int = -1
    """Its pidfd, where it is another process's child (see `planter`)."""

    def send(self, line: bytes, descriptors: Sequence[int]) -> None:
        """The first order, with the descriptors that belong to it. Raises OSError if the shim is gone."""
        descriptor_passing.send(self.channel, line, descriptors)

    def discard(self) -> None:
        """Ends a shim that is not needed: it goes when its channel closes."""
        os.close(self.channel)
        if self.watch >= 0:
            poll = select.poll()
            poll.register(self.watch, select.POLLIN)
            poll.poll()
            os.close(self.watch)
            return
        try:
            os.waitpid(self.shim, 0)
        except ChildProcessError:
            pass  # someone else in this process collects children, or SIGCHLD is ignored


def plant(namespaces: int, user: Identity | None = None, *, captured: bool = False, terminal: bool = True) -> Seed:
    """Forks a shim; see `Seed` for what it is told. Raises SandboxUnavailable on a kernel without pidfds."""
    try:
        supervisor = os.pidfd_open(os.getpid())
    except OSError as error:
        raise SandboxUnavailable(
            f"Processes cannot be watched ({error.strerror}).", "Linux 5.3 or later is needed."
        ) from error
    ours, theirs = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
    shim = os.fork()
    if shim == 0:
        from doorward.launcher.shim import run

        run(theirs.detach(), supervisor, namespaces, user, captured=captured, terminal=terminal)
    os.close(supervisor)
    theirs.close()
    return Seed(shim, ours.detach(), namespaces, user, captured, terminal)

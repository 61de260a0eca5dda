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


# <linux/sched.h>
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"


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


def plant_first() -> Seed:
    """Forks the shim of a first run whose policy is not known yet; worth 3 ms of a start.

    Good for a run that is confined or has a network of its own; another one simply does not use it. Raises
    SandboxUnavailable.
    """
    # most runs capture (network.transparent); one that does not has another shim
    return plant(allowed(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET), captured=True, terminal=at_terminal())


def at_terminal() -> bool:
    """Whether the next command may be given a terminal of its own, as far as can be told now."""
    return any(map(os.isatty, (0, 1, 2)))


def allowed(namespaces: int) -> int:
    """The namespaces we may make ourselves. Where AppArmor reserves user namespaces for programs with a
    profile, making one works and is then good for nothing; bubblewrap has such a profile."""
    if namespaces & CLONE_NEWUSER and os.geteuid() != 0:
        try:
            with open(_APPARMOR, encoding="ascii") as file:
                if file.read(2).strip() == "1":
                    return 0
        except OSError:
            pass  # no such restriction here
    return namespaces

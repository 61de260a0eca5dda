"""The three streams of one command: what it gets, and what is read back from it."""

from __future__ import annotations

import os

from doorward.named_tuple import NamedTuple
from doorward.relay import Inlet, Outlet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from doorward.sessions.output import Stream
    from doorward.terminal import Terminal

    Record = Callable[["Stream", bytes], None]
else:
    Record = object


class Streams(NamedTuple):
    """`stdin`, `stdout`, `stderr` are for the command and closed here once it has them (unless they are the caller's
    own); `inlets` are what the supervisor reads."""

    stdin: int
    stdout: int
    stderr: int
    inlets: tuple[Inlet, ...]
    ours: tuple[int, ...]
    terminal: Terminal | None = None

    def hand_over(self) -> None:
        """The command has its descriptors: close our copies, so that end of file means what it says."""
        for fd in self.ours:
            os.close(fd)

    def close(self) -> None:
        """Give up: close what is still open of the pipes and the terminal (idempotent for what the loop closed)."""
        for inlet in self.inlets:
            inlet.close()
        if self.terminal is not None:
            self.terminal.close()


def captured(record: Record, stdin: int = 0) -> Streams:
    """Both outputs through one pipe, so that their order of arrival is exact; shown to nobody."""
    reader, writer = os.pipe()
    stdin, opened = _open_stdin(stdin)
    return Streams(stdin, writer, writer, (Inlet("stdout", reader, Outlet(None), record),), (writer, *opened))


def passed_through(record: Record) -> Streams:
    """The caller's own streams: through pipes of ours without a terminal, through a terminal of ours with one."""
    if os.isatty(0) and _in_foreground():
        return _terminal(record)
    stdin, opened = _open_stdin(0)
    reader, writer = os.pipe()
    out = Inlet("stdout", reader, Outlet(1 if _is_open(1) else None), record)
    if _same_file(1, 2):
        # `2>&1`: one pipe keeps the order in which the command wrote
        return Streams(stdin, writer, writer, (out,), (writer, *opened))
    err_reader, err_writer = os.pipe()
    err = Inlet("stderr", err_reader, Outlet(2 if _is_open(2) else None), record)
    return Streams(stdin, writer, err_writer, (out, err), (writer, err_writer, *opened))


def untouched() -> Streams:
    """The caller's descriptors as they are: nothing is read, nothing recorded (`--no-record-output`)."""
    stdin, opened = _open_stdin(0)
    null = [os.open("/dev/null", os.O_WRONLY)] if not (_is_open(1) and _is_open(2)) else []
    out, err = (fd if _is_open(fd) else null[0] for fd in (1, 2))
    return Streams(stdin, out, err, (), (*null, *opened))


def _terminal(record: Record) -> Streams:
    from doorward.terminal import Terminal

    terminal = Terminal()
    slave = terminal.slave
    master = Inlet("stdout", terminal.master, Outlet(1 if os.isatty(1) else 0), record)
    if os.isatty(1) and os.isatty(2):
        return Streams(slave, slave, slave, (master,), (), terminal)
    # `command | less` and `command 2>log`: what goes to the terminal stays a terminal, the rest is a pipe
    ends = {1: slave, 2: slave}
    inlets, ours = [master], []
    names: tuple[tuple[int, Stream], ...] = ((1, "stdout"), (2, "stderr"))
    for fd, name in names:
        if not os.isatty(fd):
            reader, ends[fd] = os.pipe()
            ours.append(ends[fd])
            inlets.append(Inlet(name, reader, Outlet(fd if _is_open(fd) else None), record))
    return Streams(slave, ends[1], ends[2], tuple(inlets), tuple(ours), terminal)


def _in_foreground() -> bool:
    """False for a background job of a shell: it may neither read the terminal nor change its settings."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True  # a terminal, but not the one that controls us: nobody else has it in hand


def _open_stdin(fd: int) -> tuple[int, tuple[int, ...]]:
    """A closed descriptor 0 becomes /dev/null, as the command must see an open one."""
    if _is_open(fd):
        return fd, ()
    null = os.open("/dev/null", os.O_RDONLY)
    return null, (null,)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _same_file(one: int, other: int) -> bool:
    if not (_is_open(one) and _is_open(other)):
        return False
    return os.path.sameopenfile(one, other)

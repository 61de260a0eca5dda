"""The command's streams on their way out: read from pipes or a pseudo-terminal, recorded, passed on unchanged."""

from __future__ import annotations

import errno
import os
import select
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from doorward.sessions.output import Stream

_CHUNK: Final = 1 << 16
_PIPE_BUF: Final = select.PIPE_BUF
"""A write of at most this much to a pipe that polls writable does not block (pipe(7))."""


class Outlet:
    """Where one stream goes: a descriptor of the caller, or nowhere.

    A full pipe never blocks the supervisor: what does not fit waits here, and while it waits the command's
    stream is not read, so the command feels the back-pressure that it would feel without doorward.
    """

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._waiting = b""
        self.broken = False
        mode = os.fstat(fd).st_mode if fd is not None else 0
        self._can_block = not stat.S_ISREG(mode) and not stat.S_ISBLK(mode)

    @property
    def waits(self) -> int | None:
        """The descriptor to poll for writing while bytes wait; None when nothing does."""
        return self._fd if self._waiting else None

    def write(self, data: bytes) -> None:
        """Pass on `data`, as much as fits now."""
        if self._fd is None or self.broken:
            return
        self._waiting += data
        self.flush()

    def flush(self, *, block: bool = False) -> None:
        """Write what waits; with `block` until it is all written or the reader is gone."""
        poll = select.poll()
        if self._fd is not None:
            poll.register(self._fd, select.POLLOUT)
        view = memoryview(self._waiting)
        sent = 0
        while sent < len(view) and self._fd is not None:
            if self._can_block and not poll.poll(None if block else 0):
                break
            step = view[sent : sent + _PIPE_BUF] if self._can_block else view[sent:]
            try:
                sent += os.write(self._fd, step)
            except BlockingIOError:
                if not block:
                    break
            except OSError as error:
                # the reader left: from here on the command gets what it would get without us, SIGPIPE
                if error.errno not in (errno.EPIPE, errno.EIO, errno.ENOSPC, errno.EBADF):
                    raise
                self.broken = True
                sent = len(view)
        self._waiting = bytes(view[sent:])


_STARTER_SAYS: Final = b"bwrap: "
"""How every message of bubblewrap begins."""

_HELD_AT_MOST: Final = 8192


class Inlet:
    """One stream of the command: the reading end, its name, where it goes.

    What bubblewrap says when it cannot start a command comes on the same stream. So a beginning that looks like it is
    held back until it is clear whose it was: with the next output, or at the end.
    """

    def __init__(self, name: Stream, fd: int, outlet: Outlet, record: Callable[[Stream, bytes], None]) -> None:
        self.name = name
        self.fd = fd
        self.outlet = outlet
        self.open = True
        self._record = record
        self._held = b""
        self._started = False

    def pump(self) -> None:
        """Read once and pass on. Closes itself at end of file, or when nobody reads the outlet any more."""
        try:
            data = os.read(self.fd, _CHUNK)
        except OSError as error:
            if error.errno != errno.EIO:  # a pseudo-terminal says EIO when its last user is gone (pty(7))
                raise
            data = b""
        if data and not self._hold(data):
            self._pass(self._held + data)
            self._held = b""
        if not data or self.outlet.broken:
            self.close()

    def _hold(self, data: bytes) -> bool:
        if self._started:
            return False
        together = self._held + data
        if together.startswith(_STARTER_SAYS) and len(together) < _HELD_AT_MOST:
            self._held = together
            return True
        return False

    def _pass(self, data: bytes) -> None:
        self._started = True
        self._record(self.name, data)
        self.outlet.write(data)

    def drain(self, *, started: bool = True) -> None:
        """Take everything that is still there. Called when no process of the command can write any more; `started`
        False if the command never ran, so that what was held back is bubblewrap's."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        while self.open and poll.poll(0):
            self.pump()
            self._flush()
        if self._held and started:
            self._pass(self._held)
            self._flush()
        self.close()

    def _flush(self) -> None:
        if self.outlet.waits is not None:
            self.outlet.flush(block=True)

    def close(self) -> None:
        """Close the reading end; the command's next write then fails as it should."""
        if self.open:
            self.open = False
            os.close(self.fd)

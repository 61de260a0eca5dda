"""The shim's end of the watching filter: takes each notification, reads the paths, lets the call go on.

Nothing is decided here: what a path says may change between the reading and the call (seccomp_unotify(2)), so this
only tells; the kernel refuses by itself. A call that cannot be read is let go without a word.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct

from doorward.launcher.denial_calls import WATCHED, changes
from doorward.launcher.denials import Denials

# <linux/seccomp.h>, x86, ARM, RISC-V and s390: _IOWR('!', 0, 80), _IOWR('!', 1, 24), _IOW('!', 4, 8)
_RECEIVE = 0xC0502100
_SEND = 0xC0182101
_SET_FLAGS = 0x40082104
_SYNC_WAKE_UP = 1
_CONTINUE = 1
# struct seccomp_notif, with struct seccomp_data: number, architecture, instruction pointer, six arguments
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_LONGEST = 4096  # PATH_MAX
_AT_FDCWD = -100
_AF_UNIX = 1
_SOCKADDR = 110  # struct sockaddr_un
# One visit serves no more, so that signals and the end of the run are seen in between.
_AT_ONCE = 256


class DenialListener:
    """One listener; `calls` says which of WATCHED a system call's number is. `starter` is the process that becomes
    bubblewrap, and `bubblewrap` that program: what those call is not the command's. `denials` is told of
    every other."""

    def __init__(
        self, listener: int, calls: dict[int, int], denials: Denials, *, starter: int = 0, bubblewrap: str = ""
    ) -> None:
        self._listener = listener
        self._calls = calls
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._denials = denials
        self._starter = starter
        self._bubblewrap = os.path.realpath(bubblewrap) if bubblewrap else ""
        self._begun = False
        try:
            fcntl.ioctl(listener, _SET_FLAGS, struct.pack("=Q", _SYNC_WAKE_UP))  # Linux 6.6
        except OSError:
            pass

    def fileno(self) -> int:
        """Readable when a call waits."""
        return self._listener

    def serve(self) -> bool:
        """Lets the calls that wait go on. False once nobody is left who could call."""
        for _ in range(_AT_ONCE):
            ready = self._poll.poll(0)
            if not ready:
                return True
            told = ready[0][1]
            if not told & select.POLLIN:
                # an error alone is a look that a signal interrupted while others held the listener's lock, and every
                # change of a directory that is looked after is a signal: the next look tells
                return not told & (select.POLLHUP | select.POLLNVAL)
            notification = bytearray(_NOTIFICATION.size)
            try:
                fcntl.ioctl(self._listener, _RECEIVE, notification)
            except OSError:
                continue  # the caller was killed meanwhile, or this was interrupted and the call still waits
            identifier, pid, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
            paths = self._read(pid, number, arguments) if self._begun or self._begins(pid) else ()
            if self._let_go(identifier):
                for operation, path, change in paths:
                    self._denials.note(operation, path, change)
        return True

    def _let_go(self, identifier: int) -> bool:
        """False if the caller is gone; what was read may have been somebody else's by then."""
        while True:
            try:
                fcntl.ioctl(self._listener, _SEND, _RESPONSE.pack(identifier, 0, 0, _CONTINUE))
            except InterruptedError:
                continue  # fcntl.ioctl does not try again by itself, and without an answer the call waits for ever
            except OSError:
                return False
            return True

    def _begins(self, pid: int) -> bool:
        """Whether this call is the command's, which then has begun: the sandbox is made by other programs."""
        try:
            ours = pid == self._starter or os.readlink(f"/proc/{pid}/exe") == self._bubblewrap
        except OSError:
            return False
        # now: once its call goes on it may end before anything of it is looked at
        self._begun = not ours and self._denials.enter(pid)
        return self._begun

    def _read(self, pid: int, number: int, arguments: list[int]) -> list[tuple[str, str, bool]]:
        index = self._calls.get(number)
        if index is None:
            return []
        call = WATCHED[index]
        operation, change = call.operation, True
        if call.flags is not None:
            change = changes(arguments[call.flags])
            operation = "write" if change else "read"
        found = []
        try:
            memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            for directory, argument in call.paths:
                raw = os.pread(memory, _SOCKADDR if operation == "connect" else _LONGEST, arguments[argument])
                text = _socket_path(raw) if operation == "connect" else raw.partition(b"\0")[0]
                if not text:
                    continue
                if not text.startswith(b"/"):
                    where = _AT_FDCWD if directory is None else _signed(arguments[directory])
                    link = f"/proc/{pid}/cwd" if where == _AT_FDCWD else f"/proc/{pid}/fd/{where}"
                    text = os.fsencode(os.readlink(link)) + b"/" + text
                found.append((operation, os.fsdecode(text), change))
                operation = "replace" if operation == "rename" else operation  # what it is renamed to
        except (OSError, OverflowError):
            pass  # the address is no address, or the process is gone
        finally:
            os.close(memory)
        return found


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _socket_path(raw: bytes) -> bytes:
    if len(raw) < 3 or struct.unpack_from("=H", raw)[0] != _AF_UNIX:
        return b""
    return raw[2:].partition(b"\0")[0]  # empty for an abstract name

"""kqueue(2) in epoll's clothes, for the event loop on macOS: the same calls, the same words in the masks.

The loop asks for edges: EV_CLEAR is that (an event is told once, and again when something new has come). kqueue tells
reading and writing as two events; which of them came with the end of the stream (EV_EOF) is kept.
"""

from __future__ import annotations

import errno
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# As in <sys/epoll.h>, since the loop's masks are made of them.
EPOLLIN, EPOLLPRI, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLLRDHUP, EPOLLET = 1, 2, 4, 8, 16, 0x2000, 1 << 31

# <sys/event.h>: the same on every system that has it
_READ, _WRITE = -1, -2
_ADD, _DELETE, _CLEAR, _ERROR, _EOF = 0x1, 0x2, 0x20, 0x4000, 0x8000


class Kqueue:
    """`select.epoll`, as far as the loop uses it."""

    def __init__(self) -> None:
        # looked up by name: the type checker of another system does not know them
        self._kevent: Any = vars(select)["kevent"]
        self._queue: Any = vars(select)["kqueue"]()

    def register(self, fd: int, mask: int) -> None:
        """Watch a descriptor: EPOLLIN, EPOLLOUT or both, with EPOLLET for edges. Raises OSError."""
        flags = _ADD | (_CLEAR if mask & EPOLLET else 0)
        wanted = [name for bit, name in ((EPOLLIN, _READ), (EPOLLOUT, _WRITE)) if mask & bit]
        self._queue.control([self._kevent(fd, name, flags) for name in wanted], 0, 0)

    def modify(self, fd: int, mask: int) -> None:
        """Watch it for what `mask` says from now on. Raises OSError."""
        self.register(fd, mask)
        for bit, name in ((EPOLLIN, _READ), (EPOLLOUT, _WRITE)):
            if not mask & bit:
                self._forget(fd, name)

    def unregister(self, fd: int) -> None:
        """Watch it no more. Raises OSError if it was not watched."""
        if self._forget(fd, _READ) + self._forget(fd, _WRITE) == 0:
            raise FileNotFoundError(errno.ENOENT, "not watched")

    def _forget(self, fd: int, name: int) -> bool:
        """Whether there was such an event."""
        try:
            self._queue.control([self._kevent(fd, name, _DELETE)], 0, 0)
        except FileNotFoundError:
            return False
        return True

    def poll(self, timeout: float | None = None, most: int = 256) -> list[tuple[int, int]]:
        """Descriptors and what is the case with them, each at most once. `timeout` in seconds, None or less than 0
        for no end."""
        limit = None if timeout is None or timeout < 0 else timeout
        masks: dict[int, int] = {}
        for event in self._queue.control(None, most, limit):
            if event.filter == _READ:
                mask = EPOLLIN | (EPOLLRDHUP if event.flags & _EOF else 0)
            else:
                # nobody reads what is written: both directions are over
                mask = EPOLLOUT | (EPOLLHUP if event.flags & _EOF else 0)
            if event.flags & _ERROR or (event.flags & _EOF and event.fflags):
                mask |= EPOLLERR
            masks[event.ident] = masks.get(event.ident, 0) | mask
        return list(masks.items())

    def fileno(self) -> int:
        """The queue's own descriptor; it can be read when there are events."""
        number: int = self._queue.fileno()
        return number

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()

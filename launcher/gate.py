"""Holds bubblewrap where its child has namespaces of its own and has mounted nothing yet.

Where only bubblewrap may make namespaces, that is the moment for what we mount in there. It writes its child's number
down twice, to --info-fd and then to --json-status-fd, and lets the child go on after that. The pipe of the second is
full until we read it. (Its own way to be held there, --userns-block-fd, excludes --disable-userns.)
"""

from __future__ import annotations

import os

from doorward.start_json import loads

_FILL = b"\n" * 4096  # a page, or a part of one: what is in front of the first line says nothing


class Gate:
    """`info` is for --info-fd, and to be closed once bubblewrap has it; `status` is the read end of the pipe that
    --json-status-fd writes to, still empty."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._reader, self.info = os.pipe()
        self._said = b""
        self._filled = 0
        writer = os.open(f"/proc/self/fd/{status}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            while True:
                self._filled += os.write(writer, _FILL)
        except BlockingIOError:
            pass
        finally:
            os.close(writer)

    def fileno(self) -> int:
        """Readable when `arrived` has something to read."""
        return self._reader

    def arrived(self) -> int | None:
        """bubblewrap's child, which waits; None while it is not said, and 0 if it never will be."""
        piece = os.read(self._reader, 4096)
        self._said += piece
        if b"}" in self._said:
            pid: int = loads(self._said).get("child-pid", 0)
            return pid
        return None if piece else 0

    def open(self) -> None:
        """Let the child go on."""
        while self._filled:
            self._filled -= len(os.read(self._status, self._filled))

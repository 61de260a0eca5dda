"""Writes the records of `--log-json`: one line for each connection, whole, in the file before the client is answered.

Several workers append to one file: a line is one write(2) to a descriptor opened with O_APPEND. What cannot be written
is kept and tried again at the next record; until then nothing is let through, since nothing may pass unrecorded.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from doorward.errors import UsageError

STANDARD_OUTPUT = "-"

_MOST_WAITING = 4096
"""Lines kept while the file cannot be written; those after them are lost, and counted."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


class LogFailed(Exception):
    """The record could not be written. The text says why."""


class ConnectionLog:
    """An open log. `path` is absolute, or "-" for standard output."""

    def __init__(self, path: str) -> None:
        """Raises UsageError."""
        self.path = path
        self.lost = 0
        self._waiting: deque[bytes] = deque()
        try:
            self._fd = self._open()
        except OSError as error:
            raise UsageError(
                f"doorward proxy: --log-json {path} cannot be written: {os.strerror(error.errno or 0)}; "
                "name a file in a folder that is there and may be written, or - for standard output"
            ) from None

    def write(self, record: Mapping[str, Any], now: float) -> None:
        """Append the record with its time. Raises LogFailed; the record is then written later, before any other."""
        line = _encode({"timestamp": timestamp(now), **record}).encode("ascii") + b"\n"
        if len(self._waiting) >= _MOST_WAITING:
            self.lost += 1
        else:
            self._waiting.append(line)
        self.flush()

    def flush(self) -> None:
        """Write what waits. Raises LogFailed while that fails."""
        while self._waiting:
            line = self._waiting[0]
            try:
                sent = os.write(self._fd, line)
            except BlockingIOError:  # somebody made the pipe non-blocking: wait for its reader
                poll = select.poll()
                poll.register(self._fd, select.POLLOUT)
                poll.poll()
                continue
            except OSError as error:
                raise LogFailed(f"{self.path}: {os.strerror(error.errno or 0)}") from None
            if sent == len(line):
                self._waiting.popleft()
            else:
                self._waiting[0] = line[sent:]

    def reopen(self) -> None:
        """Go on in a new file, after the old one was renamed. Raises LogFailed and goes on in the old one."""
        if self.path == STANDARD_OUTPUT:
            return
        try:
            fresh = self._open()
        except OSError as error:
            raise LogFailed(f"{self.path}: {os.strerror(error.errno or 0)}") from None
        os.close(self._fd)
        self._fd = fresh

    def fileno(self) -> int:
        """Its descriptor."""
        return self._fd

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)

    def _open(self) -> int:
        if self.path == STANDARD_OUTPUT:
            return os.dup(1)
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o600)


def timestamp(now: float) -> str:
    """Seconds since the epoch as a rollout writes them: UTC, milliseconds."""
    whole = int(now)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((now - whole) * 1000):03}Z"

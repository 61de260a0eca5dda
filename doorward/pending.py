"""One question in the pending queue, from the side that waits for its answer.

It is a file to read and a socket to answer on, both in $DOORWARD_HOME/approvals and for the owner alone. The socket is
the proof that somebody waits: a run that dies closes it, and its question is gone. An answer is taken once, whole, and
told to whoever gave it; every other comes too late.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from doorward.errors import EngineError
from doorward.gates.answer import Answer, Reply, Scope
from doorward.question import Question
from doorward.sessions.home import Home, StoreError, private_folder
from doorward.sessions.unnamed_file import UnnamedFile

_MOST = 4096
"""Bytes of an answer."""

_LONGEST_POLL = 2**31 - 1
"""Milliseconds, poll(2)."""

Taking = Callable[[Reply], str]
"""Called with an answer before it holds. Returns "" if it was taken, else a sentence why not; the question stays."""


class Pending:
    """Open from the start; `close` withdraws it. `reply` is the answer once one was taken."""

    def __init__(self, home: Home, question: Question, take: Taking) -> None:
        """Raises EngineError where the queue cannot be written."""
        self.question = question
        self.reply: Reply | None = None
        self._take = take
        self._path = f"{home.approvals}/{question.id}"
        self._conversations: dict[int, tuple[socket.socket, bytearray]] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            private_folder(home.approvals)
            self._listen(home.approvals)
            file = UnnamedFile(home.approvals)
            file.write(json.dumps(question.document()).encode("ascii"))
            file.publish(f"{self._path}.json")
        except (OSError, StoreError) as error:
            self.close()
            raise EngineError(f"the question cannot be put into the queue: {error}") from None

    def _listen(self, folder: str) -> None:
        self._listener.setblocking(False)
        before = os.umask(0o177)  # the socket is 0600 from the moment it is there
        try:
            with socket_address(folder, self.question.id) as address:
                self._listener.bind(address)
        finally:
            os.umask(before)
        self._listener.listen(16)

    def descriptors(self) -> list[int]:
        """What to wait on for reading; then call `ready`."""
        return [] if self.reply is not None else [self._listener.fileno(), *self._conversations]

    def ready(self, descriptor: int) -> None:
        """One of them can be read."""
        if descriptor == self._listener.fileno():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # it has left again
            connection.setblocking(False)
            self._conversations[connection.fileno()] = (connection, bytearray())
            return
        connection, heard = self._conversations[descriptor]
        try:
            data = connection.recv(_MOST)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        heard += data
        if b"\n" in heard and self.reply is None:
            self._answered(connection, bytes(heard.partition(b"\n")[0]))
        if not data or len(heard) > _MOST or b"\n" in heard:
            self._conversations.pop(descriptor, None)
            connection.close()

    def _answered(self, connection: socket.socket, line: bytes) -> None:
        if not _is_outside(connection):
            _tell(connection, "an answer from inside a sandbox does not count")
            return
        try:
            document = json.loads(line)
            reply = Reply(Answer(document["answer"]), Scope(document["scope"]))
            if reply.answer is Answer.NOBODY:
                raise ValueError("nobody answers nothing")
        except (ValueError, KeyError, TypeError):
            _tell(connection, "that is no answer")
            return
        why = self._take(reply)
        if not why:
            self.reply = reply
            self._remove()  # it is gone before the answer is acknowledged
        _tell(connection, why)

    def close(self) -> None:
        """Take the question back. Twice is fine."""
        self._remove()
        for connection, _ in self._conversations.values():
            connection.close()
        self._conversations.clear()
        self._listener.close()

    def _remove(self) -> None:
        for ending in (".json", ".sock"):
            try:
                os.unlink(self._path + ending)
            except OSError:
                pass  # was never made, or somebody has tidied up


@contextmanager
def socket_address(folder: str, name: str) -> Iterator[str]:
    """The address of a question's socket. unix(7) takes 108 bytes, and a home can be deeper: on Linux the folder is
    named by an open descriptor."""
    if sys.platform != "linux":
        yield f"{folder}/{name}.sock"
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}.sock"
    finally:
        os.close(descriptor)


def wait_for(pending: Pending, seconds: float, cancelled_by: int | None) -> Reply | None:
    """The answer, or None: nobody gave one in time, or the far end of `cancelled_by` was closed."""
    import time

    until = time.monotonic() + seconds
    while pending.reply is None:
        poll = select.poll()
        for descriptor in pending.descriptors():
            poll.register(descriptor, select.POLLIN)
        if cancelled_by is not None:
            poll.register(cancelled_by, getattr(select, "POLLRDHUP", select.POLLHUP))  # as in turn
        left = until - time.monotonic()
        if left <= 0:
            return None
        for descriptor, _ in poll.poll(min(int(left * 1000) + 1, _LONGEST_POLL)):
            if descriptor == cancelled_by:
                return None
            pending.ready(descriptor)
    return pending.reply


def _is_outside(connection: socket.socket) -> bool:
    """True if the other side is in our process namespace, which no sandboxed command is. The folder is hidden from
    those besides; this holds where a run has no boundary for files. Linux alone has such namespaces."""
    if sys.platform != "linux":
        return True
    if not hasattr(socket, "SO_PEERCRED"):
        return False  # macOS: nothing tells a sandboxed process from another, so nobody can answer there
    pid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    except OSError:
        return False  # it has ended, or is none of ours to look at


def _tell(connection: socket.socket, why: str) -> None:
    try:
        connection.send(json.dumps({"taken": not why, "why": why}).encode("ascii") + b"\n")
    except OSError:
        pass  # it has not waited; the answer holds all the same

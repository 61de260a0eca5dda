"""Lets the runs of one doorward home know which absent names the others look after.

A name that is protected and absent for one run may stand for a moment because its command just made it. A run
that starts at that moment must not take it for the user's own. So each shim writes down its absent names
before its command starts, in a file it holds locked; a file nobody holds is left from a killed shim.
"""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_DIRECTORY = "guards"
_LIMIT = 1 << 20


class Guard:
    """One shim's entry, from `register` to `close`."""

    def __init__(self, path: str, handle: int) -> None:
        self._path = path
        self._handle = handle

    def close(self) -> None:
        """Takes the entry back."""
        try:
            os.unlink(self._path)
        except OSError:
            pass
        os.close(self._handle)


def register(cache_dir: str, names: Iterable[str]) -> Guard:
    """Writes down absolute paths that shall stay absent. Raises OSError."""
    directory = f"{cache_dir}/{_DIRECTORY}"
    os.makedirs(directory, mode=0o700, exist_ok=True)
    name = f"{os.getpid()}-{os.urandom(8).hex()}"
    # locked before it has its name, so that nobody sees it unlocked and takes it for a leftover
    handle = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.write(handle, b"\0".join(map(os.fsencode, names)))
        # with a descriptor of a directory Python calls linkat(2) and follows /proc; without, link(2) does not
        where = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.link(f"/proc/self/fd/{handle}", name, dst_dir_fd=where, follow_symlinks=True)
        finally:
            os.close(where)
    except OSError:
        os.close(handle)
        raise
    return Guard(f"{directory}/{name}", handle)


def guarded(cache_dir: str) -> frozenset[str]:
    """Every path some living shim keeps absent. Removes what killed shims left."""
    directory = f"{cache_dir}/{_DIRECTORY}"
    found: set[str] = set()
    try:
        names = os.listdir(directory)
    except OSError:
        return frozenset()
    for name in names:
        path = f"{directory}/{name}"
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                os.unlink(path)
            except BlockingIOError:
                data = os.read(handle, _LIMIT)
                found.update(os.fsdecode(item) for item in data.split(b"\0") if item)
        except OSError:
            continue
        finally:
            os.close(handle)
    return frozenset(found)

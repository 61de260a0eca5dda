"""Remembers of large git indexes that they name no submodule, so that the next start need not read them."""

from __future__ import annotations

import os
import time

from doorward.sessions.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# A change within the same step of the file system's clock would not be seen (see `matches`).
_SETTLED_NS = 2_000_000_000


def is_plain(directory: str, stamp: str, cache_dir: str, names_one: Callable[[str], bool]) -> bool:
    """Whether the index of the git directory `directory`, which `stamp` recognises, names no submodule. `names_one`
    reads it."""
    digest = sha256(directory.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    path = f"{cache_dir}/plain-index-{digest}"
    if _read(path) == stamp:
        return True
    if names_one(directory):
        return False
    if int(stamp.rpartition(" ")[2]) < time.time_ns() - _SETTLED_NS:
        _write(cache_dir, path, stamp)
    return True


def _read(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(handle, 256).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(handle)


def _write(directory: str, path: str, stamp: str) -> None:
    """Failing to is no reason not to run."""
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, stamp.encode())
        finally:
            os.close(handle)
        os.rename(temporary, path)
    except OSError:
        pass

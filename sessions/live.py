"""Holds a session still while it is moved or removed: the writer's own lock, taken for that moment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from doorward.sessions import lock
from doorward.sessions.home import StoreError
from doorward.sessions.refused import SessionLive
from doorward.sessions.regular_file import open_regular


@contextmanager
def held_still(session: str, path: str) -> Iterator[os.stat_result]:
    """No writer has the rollout, and none gets it while the block runs. Gives the status of the file.

    Raises SessionLive, StoreError.
    """
    descriptor = open_regular(path)
    try:
        status = os.fstat(descriptor)
        if not lock.take(descriptor):
            raise SessionLive(session, lock.holder(status))
        yield status
    except OSError as error:
        raise StoreError(f"cannot use {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def live_pid(path: str) -> tuple[bool, int | None]:
    """Whether a process writes it now, and which, where that can be told. Raises StoreError."""
    descriptor = open_regular(path)
    try:
        if lock.take(descriptor):
            lock.release(descriptor)
            return False, None
        return True, lock.holder(os.fstat(descriptor))
    finally:
        os.close(descriptor)

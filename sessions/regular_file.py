"""Opens regular files only: never a link, a FIFO, a device or a directory that stands where a file should be."""

import errno
import os
import stat

from doorward.sessions.home import StoreError


def open_regular(path: str, flags: int = os.O_RDONLY) -> int:
    """The descriptor of an existing regular file. Raises StoreError with a sentence that names the path.

    O_NONBLOCK keeps a FIFO from holding the caller up; it means nothing to regular files.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(f"{path} is a link, and links are not read") from error
        if error.errno == errno.ENOENT:
            raise StoreError(f"{path} is missing") from error
        raise StoreError(f"cannot open {path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is not a regular file")
    return descriptor

"""A file that has no name until it is whole, so that a crash leaves nothing behind: O_TMPFILE, then linkat(2)."""

import errno
import os

from doorward.sessions.home import FILE_MODE, StoreError, private_folder
from doorward.sessions.ids import uuid7

_O_TMPFILE: int | None = getattr(os, "O_TMPFILE", None)
"""Linux only."""
# open(2): what a file system, or a kernel, without O_TMPFILE answers
_UNSUPPORTED = frozenset((errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL))
PARTIAL_PREFIX = ".partial-"
"""Where O_TMPFILE is missing the file has such a name until it is whole; after a crash it is safe to remove."""


class UnnamedFile:
    """Written with `write`, then either `publish`ed or `discard`ed. The folder is made when it misses.

    Every method raises StoreError.
    """

    def __init__(self, folder: str) -> None:
        private_folder(folder)
        self._folder = folder
        self._partial: str | None = None
        self._descriptor = -1
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            if _O_TMPFILE is not None:
                try:
                    self._descriptor = os.open(folder, flags | _O_TMPFILE, FILE_MODE)
                except OSError as error:
                    if error.errno not in _UNSUPPORTED:
                        raise
            if self._descriptor < 0:
                self._partial = f"{folder}/{PARTIAL_PREFIX}{uuid7()}"
                self._descriptor = os.open(self._partial, flags | os.O_CREAT | os.O_EXCL, FILE_MODE)
            os.fchmod(self._descriptor, FILE_MODE)
        except OSError as error:
            raise StoreError(f"cannot make a file in {folder}: {error.strerror}") from error

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Appends all of `data`; a write that comes back short is a full disk."""
        try:
            written = os.write(self._descriptor, data)
        except OSError as error:
            raise StoreError(f"cannot write to {self._folder}: {error.strerror}") from error
        if written != len(data):
            raise StoreError(f"cannot write to {self._folder}: only {written} of {len(data)} bytes were taken")

    def keep_times(self, status: os.stat_result) -> None:
        """Takes over the times of another file."""
        os.utime(self._descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))

    def to_disk(self) -> None:
        """Returns when what was written is on the disk."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise StoreError(f"cannot write to {self._folder}: {error.strerror}") from error

    def publish(self, path: str) -> bool:
        """Gives the file its name; False when something has that name already (then ours is gone). Ends the object.

        `path` is on the same file system as the folder, and its own folder exists.
        """
        try:
            if self._partial is None:
                # the descriptors force linkat(2) with AT_SYMLINK_FOLLOW: link(2) would link the /proc entry itself
                os.link(f"/proc/self/fd/{self._descriptor}", path, src_dir_fd=self._descriptor, follow_symlinks=True)
            else:
                os.link(self._partial, path)
        except FileExistsError:
            return False
        except OSError as error:
            raise StoreError(f"cannot name {path}: {error.strerror}") from error
        finally:
            self.discard()
        return True

    def discard(self) -> None:
        """Closes the file; unless it was published, it is gone. Twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            if self._partial is not None:
                os.unlink(self._partial)

"""Removes names and trees through descriptors of directories, whatever someone does to them meanwhile.

Never follows a link; a directory that was opened stays the same directory whatever its path leads to later.
"""

import errno
import os
import stat

# Directories are opened one inside the other while a tree is removed; deeper ones are moved up first.
_DEPTH = 32


def mode_of(directory: int, name: str) -> int:
    """The mode of `name` itself in `directory`, 0 if there is nothing. Raises OSError."""
    try:
        return os.lstat(name, dir_fd=directory).st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return 0
        raise


def remove(directory: int, name: str, limit: int | None = None) -> None:
    """Removes `name` in `directory`, with everything below it; nothing there is fine.

    Raises OSError; ENOTEMPTY once `limit` files were met, for a tree that someone still fills.
    """
    mode = mode_of(directory, name)
    if mode == 0:
        return
    if not stat.S_ISDIR(mode):
        _unlink(directory, name)
        return
    removal = _Removal(limit)
    while True:
        top = _open_for_removal(directory, name)
        if top is None:
            return
        try:
            removal.empty(top, top, 0)
        finally:
            os.close(top)
        try:
            os.rmdir(name, dir_fd=directory)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            # filled again meanwhile, or directories were moved up to be emptied
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


class _Removal:
    """The removal of one tree, and how much of it was met so far."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._met = 0

    def empty(self, top: int, directory: int, depth: int) -> None:
        for name in os.listdir(directory):
            self._met += 1
            if self._limit is not None and self._met > self._limit:
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
            mode = mode_of(directory, name)
            if mode == 0:
                continue
            if not stat.S_ISDIR(mode):
                _unlink(directory, name)
            elif depth >= _DEPTH:
                os.rename(name, f".{self._met}.{name[:64]}", src_dir_fd=directory, dst_dir_fd=top)
            else:
                self._remove_below(top, directory, name, depth)

    def _remove_below(self, top: int, directory: int, name: str, depth: int) -> None:
        child = _open_for_removal(directory, name)
        if child is None:
            return
        try:
            self.empty(top, child, depth + 1)
        finally:
            os.close(child)
        try:
            os.rmdir(name, dir_fd=directory)
        except FileNotFoundError:
            pass


def _unlink(directory: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        pass


def _open_for_removal(directory: int, name: str) -> int | None:
    """Opens a directory and makes it accessible; None if it is gone or no longer one."""
    # O_PATH needs no permission, and what is changed through it is the directory that was looked at,
    # not what was swapped in under its name meanwhile
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return None
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISDIR(mode):
            return None
        if mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(handle)

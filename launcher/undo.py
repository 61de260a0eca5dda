"""Puts protected names back: what was absent is removed, a changed link is made again, a new repository sifted.

Runs in the shim, outside the sandbox, against trees that hostile processes may still be changing. So every
step goes through descriptors of directories and never follows a link, and a directory opened at the start
stays the same directory whatever its path leads to later.
"""

from __future__ import annotations

import errno
import os
import stat

from doorward.launcher.interface import Undone
from doorward.launcher.protected import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.launcher.interface import UndoneHow

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# While the command runs no more than this is removed at a time; the rest waits for the end of the run.
_LIVE_LIMIT = 2000
# Directories are opened one inside the other while a tree is removed; deeper ones are moved up first.
_DEPTH = 32
_CONFIG_LIMIT = 1 << 20


class Keeper:
    """Holds the directories of a list of watches open, and puts the names in them back."""

    def __init__(self, watches: tuple[Watch, ...]) -> None:
        self._roots: dict[str, int] = {}
        self._watches = watches
        self._done: dict[tuple[str, str], Undone] = {}
        for watch in watches:
            if watch.root not in self._roots:
                try:
                    self._roots[watch.root] = os.open(watch.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                except OSError:
                    # not readable for us, so not for the command either; it cannot be written without a name
                    continue

    @property
    def directories(self) -> list[int]:
        """Descriptors of the directories whose entries are looked after."""
        return list(self._roots.values())

    def put_back(self, final: bool) -> None:
        """Undoes what is there now. `final` once no process of the run is left: then repositories too."""
        for watch in self._watches:
            root = self._roots.get(watch.root)
            if root is None or (watch.kind == "repository" and not final):
                continue
            try:
                self._check(watch, root, None if final else _LIVE_LIMIT)
            except OSError as error:
                if final:
                    self._note(watch, "", "could not be undone", error.strerror or str(error))

    @property
    def report(self) -> tuple[Undone, ...]:
        """Everything undone so far, each path once."""
        return tuple(self._done.values())

    def close(self) -> None:
        """Closes the directories."""
        for root in self._roots.values():
            os.close(root)
        self._roots.clear()

    def _note(self, watch: Watch, below: str, what: UndoneHow, detail: str = "") -> None:
        path = f"{watch.root.rstrip('/')}/{watch.name}{below}"
        self._done[(path, what)] = Undone(path, what, detail)

    def _check(self, watch: Watch, root: int, limit: int | None) -> None:
        if watch.kind == "link":
            if _readlink(root, watch.name) != watch.target:
                remove(root, watch.name, limit)
                os.symlink(watch.target, watch.name, dir_fd=root)
                self._note(watch, "", "link restored")
            return
        opened = _open_parent(root, watch.name)
        if opened is None:
            return
        parent, name = opened
        try:
            mode = _mode(parent, name)
            if mode == 0:
                return
            if watch.kind == "repository" and stat.S_ISDIR(mode):
                self._sift(watch, parent, name)
            else:
                remove(parent, name, limit)
                self._note(watch, "", "removed")
        finally:
            os.close(parent)

    def _sift(self, watch: Watch, parent: int, name: str) -> None:
        directory = os.open(name, _DIRECTORY, dir_fd=parent)
        try:
            if _mode(directory, "commondir"):
                # it would make git read hooks and settings elsewhere
                remove(directory, "commondir")
                self._note(watch, "/commondir", "removed")
            for file in ("config", "config.worktree"):
                self._sift_settings(watch, directory, file)
            self._sift_hooks(watch, directory)
        finally:
            os.close(directory)

    def _sift_settings(self, watch: Watch, directory: int, name: str) -> None:
        mode = _mode(directory, name)
        if mode == 0:
            return
        from doorward.launcher.git_settings import sift  # only for a repository that was made in the run

        text = None
        if stat.S_ISREG(mode):
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
            try:
                data = os.read(handle, _CONFIG_LIMIT + 1)
            finally:
                os.close(handle)
            text = os.fsdecode(data) if len(data) <= _CONFIG_LIMIT else None
        if text is None:
            remove(directory, name)
            self._note(watch, f"/{name}", "removed")
            return
        sifted = sift(text)
        if not sifted.removed:
            return
        # written beside and renamed: the file may be a second name of one that must not change
        temporary = f"{name}.doorward"
        remove(directory, temporary)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, 0o644, dir_fd=directory)
        try:
            os.write(handle, os.fsencode(sifted.text))
        finally:
            os.close(handle)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        self._note(watch, f"/{name}", "settings removed", ", ".join(sifted.removed))

    def _sift_hooks(self, watch: Watch, directory: int) -> None:
        mode = _mode(directory, "hooks")
        if mode == 0:
            return
        if not stat.S_ISDIR(mode):
            remove(directory, "hooks")
            self._note(watch, "/hooks", "removed")
            return
        hooks = os.open("hooks", _DIRECTORY, dir_fd=directory)
        try:
            for name in os.listdir(hooks):
                # git never runs a *.sample; its template puts them there
                if not name.endswith(".sample"):
                    remove(hooks, name)
                    self._note(watch, f"/hooks/{name}", "removed")
        finally:
            os.close(hooks)


def _open_parent(root: int, name: str) -> tuple[int, str] | None:
    """The directory that holds the last part of `name` below `root`; None if it is not there."""
    *above, last = name.split("/")
    # opened anew, never duplicated: closing a duplicate would end the notification on `root` (fcntl(2))
    parent = os.open(".", _DIRECTORY, dir_fd=root)
    for part in above:
        try:
            child = os.open(part, _DIRECTORY, dir_fd=parent)
        except OSError:
            return None
        finally:
            os.close(parent)
        parent = child
    return parent, last


def _mode(directory: int, name: str) -> int:
    try:
        return os.lstat(name, dir_fd=directory).st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return 0
        raise


def _readlink(directory: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError:
        return None


def remove(directory: int, name: str, limit: int | None = None) -> None:
    """Removes `name` in `directory`, with everything below it; nothing there is fine.

    Raises OSError; ENOTEMPTY once `limit` files were met, for a tree that someone still fills.
    """
    mode = _mode(directory, name)
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
            mode = _mode(directory, name)
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

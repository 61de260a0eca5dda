"""Puts protected names back: what was absent is removed, a changed link is made again, a new repository sifted.

Runs in the shim, outside the sandbox, against trees that hostile processes may still be changing. So every
step goes through descriptors of directories and never follows a link, and a directory opened at the start
stays the same directory whatever its path leads to later.
"""

from __future__ import annotations

import os
import stat

from doorward.launcher.interface import Undone
from doorward.launcher.removal import mode_of, remove
from doorward.launcher.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.launcher.interface import UndoneHow

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# While the command runs no more than this is removed at a time; the rest waits for the end of the run.
_LIVE_LIMIT = 2000


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
            if root is None or (watch.kind in ("repository", "submodules") and not final):
                continue
            try:
                self._check(watch, root, None if final else _LIVE_LIMIT)
            except OSError as error:
                if final:
                    self._note(_path(watch), "could not be undone", error.strerror or str(error))

    @property
    def report(self) -> tuple[Undone, ...]:
        """Everything undone so far, each path once."""
        return tuple(self._done.values())

    def close(self) -> None:
        """Closes the directories."""
        for root in self._roots.values():
            os.close(root)
        self._roots.clear()

    def _note(self, path: str, what: UndoneHow, detail: str = "") -> None:
        self._done[(path, what)] = Undone(path, what, detail)

    def _check(self, watch: Watch, root: int, limit: int | None) -> None:
        if watch.kind == "link":
            if _readlink(root, watch.name) != watch.target:
                remove(root, watch.name, limit)
                os.symlink(watch.target, watch.name, dir_fd=root)
                self._note(_path(watch), "link restored")
            return
        if watch.kind == "submodules":
            self._check_submodules(watch, root)
            return
        if watch.kind != "repository" and not _begins(root, watch.name):
            return  # nearly every name of nearly every run
        opened = _open_parent(root, watch.name)
        if opened is None:
            return
        parent, name = opened
        try:
            mode = mode_of(parent, name)
            if watch.kind == "repository":
                self._check_repository(watch, parent, mode)
            elif mode:
                remove(parent, name, limit)
                self._note(_path(watch), "removed")
        finally:
            os.close(parent)

    def _check_repository(self, watch: Watch, root: int, mode: int) -> None:
        if stat.S_ISDIR(mode):
            from doorward.launcher.new_repository import NewRepository  # only where one was made in the run

            with _Opened(root, watch.name) as directory:
                repository = NewRepository(_path(watch), directory, self._note, watch.granted)
                repository.sift()
                repository.sift_submodules(watch.root, root)
        elif mode:
            remove(root, watch.name)
            self._note(_path(watch), "removed")
        elif mode_of(root, "HEAD") and (mode_of(root, "refs") or mode_of(root, "commondir")):
            from doorward.launcher.new_repository import NewRepository, is_repository

            # git takes a folder that looks like this for a repository without a work tree
            if is_repository(root):
                if watch.target:
                    # its `config` is the project's own, and no repository's
                    remove(root, "HEAD")
                    self._note(f"{watch.root}/HEAD", "removed")
                else:
                    NewRepository(watch.root, root, self._note, watch.granted).sift()

    def _check_submodules(self, watch: Watch, root: int) -> None:
        path, before, *known = watch.target.split("\0")
        from doorward.launcher.git_directories import index_stamp, may_name_submodules

        stamp = index_stamp(path)
        if (stamp and stamp == before) or not may_name_submodules(path, stamp):
            return
        from doorward.launcher.git_index import gitlinks

        with _Opened(None, path) as directory:
            if not set(gitlinks(directory)) - set(known):
                return
            from doorward.launcher.new_repository import NewRepository

            NewRepository(path, directory, self._note, watch.granted).sift_submodules(watch.root, root, known)


class _Opened:
    """A directory, open for the length of a `with`. Raises OSError."""

    def __init__(self, parent: int | None, name: str) -> None:
        self._handle = os.open(name, _DIRECTORY, dir_fd=parent)

    def __enter__(self) -> int:
        return self._handle

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def _path(watch: Watch) -> str:
    return f"{watch.root.rstrip('/')}/{watch.name}"


def _begins(root: int, name: str) -> bool:
    """False if not even the first part of `name` is in the directory."""
    try:
        os.stat(name.partition("/")[0], dir_fd=root, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        pass  # let the long way find out
    return True


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


def _readlink(directory: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError:
        return None

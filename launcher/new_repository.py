"""Makes a git repository that was made inside a run harmless: its hooks go, and every setting that may run something.

Submodules belong to it: `git status` outside enters each that the index names and believes the configuration
it finds there. Everything goes through descriptors and follows no link (see `removal`).
"""

from __future__ import annotations

import os
import stat

from doorward.launcher.git_directories import is_head
from doorward.launcher.git_index import gitlinks
from doorward.launcher.removal import mode_of, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from doorward.launcher.interface import UndoneHow

    Note = Callable[[str, UndoneHow, str], None]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONFIG_LIMIT = 1 << 20
# A git file holds one short line.
_SMALL = 4096
# Submodules of submodules are followed so far.
_DEPTH = 8


class NewRepository:
    """`path` is the git directory's, `directory` a descriptor of it, `note` takes what was undone. What is named in
    `granted` (absolute paths) stays as it is."""

    def __init__(self, path: str, directory: int, note: Note, granted: Container[str] = (), depth: int = 0) -> None:
        self._path = path
        self._directory = directory
        self._note = note
        self._granted = granted
        self._depth = depth

    def sift(self, worktree: str = "") -> None:
        """Takes hooks and settings away. `worktree` is what core.worktree may say. Raises OSError."""
        if self._path in self._granted:
            return
        if mode_of(self._directory, "commondir"):
            # it would make git read hooks and settings elsewhere
            remove(self._directory, "commondir")
            self._note(f"{self._path}/commondir", "removed", "")
        for file in ("config", "config.worktree"):
            self._sift_settings(file, worktree)
        self._sift_hooks()

    def _sift_settings(self, name: str, worktree: str) -> None:
        mode = mode_of(self._directory, name)
        if mode == 0 or f"{self._path}/{name}" in self._granted:
            return
        from doorward.launcher.git_settings import sift

        directory = self._directory
        text = _read(directory, name, _CONFIG_LIMIT) if stat.S_ISREG(mode) else None
        if text is None:
            remove(directory, name)
            self._note(f"{self._path}/{name}", "removed", "")
            return
        sifted = sift(text, worktree)
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
        self._note(f"{self._path}/{name}", "settings removed", ", ".join(sifted.removed))

    def _sift_hooks(self) -> None:
        mode = mode_of(self._directory, "hooks")
        if mode == 0 or f"{self._path}/hooks" in self._granted:
            return
        if not stat.S_ISDIR(mode):
            remove(self._directory, "hooks")
            self._note(f"{self._path}/hooks", "removed", "")
            return
        hooks = os.open("hooks", _DIRECTORY, dir_fd=self._directory)
        try:
            for name in os.listdir(hooks):
                # git never runs a *.sample; its template puts them there
                if not name.endswith(".sample") and f"{self._path}/hooks/{name}" not in self._granted:
                    remove(hooks, name)
                    self._note(f"{self._path}/hooks/{name}", "removed", "")
        finally:
            os.close(hooks)

    def sift_submodules(self, folder: str, worktree: int, known: Iterable[str] = ()) -> None:
        """Does the same to each submodule the index names, but for those in `known`. `worktree` is a descriptor
        of the work tree `folder`. Raises OSError."""
        known = frozenset(known)
        for name in gitlinks(self._directory):
            if name in known:
                continue
            handle = _descend(worktree, name)
            if handle is None:
                continue
            try:
                self._sift_submodule(f"{folder.rstrip('/')}/{name}", handle)
            finally:
                os.close(handle)

    def _sift_submodule(self, folder: str, worktree: int) -> None:
        mode = mode_of(worktree, ".git")
        if mode == 0 or f"{folder}/.git" in self._granted:
            return
        handle: int | None = None
        path, allowed = f"{folder}/.git", ""
        if stat.S_ISDIR(mode):
            handle = os.open(".git", _DIRECTORY, dir_fd=worktree)
        elif stat.S_ISREG(mode):
            # `git submodule add` puts the real directory among the modules of the upper one; nothing else will do
            text = _read(worktree, ".git", _SMALL) or ""
            target = os.path.normpath(os.path.join(folder, text.removeprefix("gitdir:").strip()))
            modules = f"{self._path}/modules/"
            if text.startswith("gitdir:") and target.startswith(modules):
                handle = _descend(self._directory, "modules/" + target[len(modules) :])
                path, allowed = target, os.path.relpath(folder, target)
        if handle is None or self._depth >= _DEPTH:
            remove(worktree, ".git")
            self._note(f"{folder}/.git", "removed", "")
            if handle is not None:
                os.close(handle)
            return
        try:
            repository = NewRepository(path, handle, self._note, self._granted, self._depth + 1)
            repository.sift(allowed)
            repository.sift_submodules(folder, worktree)
        finally:
            os.close(handle)


def is_repository(directory: int) -> bool:
    """Whether git would take the directory itself for a repository (gitrepository-layout(5))."""
    mode = mode_of(directory, "HEAD")
    # a link is an old form of a branch's name, and not looked at any further
    head = (_read(directory, "HEAD", _SMALL) or "") if stat.S_ISREG(mode) else "ref: refs/" * stat.S_ISLNK(mode)
    parts = bool(mode_of(directory, "refs") and mode_of(directory, "objects"))
    return is_head(head) and (parts or bool(mode_of(directory, "commondir")))


def _descend(directory: int, name: str) -> int | None:
    """Opens `name` below `directory`, part by part; None if it is not there or leads through a link."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return None
    handle = os.open(".", _DIRECTORY, dir_fd=directory)
    for part in parts:
        try:
            child = os.open(part, _DIRECTORY, dir_fd=handle)
        except OSError:
            return None
        finally:
            os.close(handle)
        handle = child
    return handle


def _read(directory: int, name: str, limit: int) -> str | None:
    """The text of a regular file; None if it is longer than `limit`."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        data = os.read(handle, limit + 1)
    finally:
        os.close(handle)
    return os.fsdecode(data) if len(data) <= limit else None

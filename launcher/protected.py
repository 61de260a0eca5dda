"""Which paths under a writable root stay as they are: what shells, git and agents run or believe at their start.

A path that exists is mounted read-only. One that does not exist has nothing to mount on (and a placeholder
would be a file of ours in the user's tree), and a link cannot be a mount point; those two are *watched*:
the shim puts them back at once when they change and once more when the run has ended.
"""

import os
import stat
from collections.abc import Iterable
from typing import Literal

from doorward.launcher.git_directories import git_paths
from doorward.launcher.rules import is_below
from doorward.named_tuple import NamedTuple

_AGENTS = (".doorward", ".codex", ".claude", ".agents", ".vscode")
_SHELLS = (
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".config/fish",
)
_GIT = (".gitconfig", ".config/git")
PROTECTED_NAMES = _AGENTS + _SHELLS + _GIT


class Watch(NamedTuple):
    """A name the shim looks after: `path` is `root` (an existing directory) plus `name`.

    absent: must not exist · link: must be a symlink to `target` · repository: a git directory that did
    not exist before the run, whose hooks and settings must be harmless at its end.
    """

    kind: Literal["absent", "link", "repository"]
    root: str
    name: str
    target: str = ""


class Protection(NamedTuple):
    """What one writable root needs."""

    read_only: tuple[str, ...]
    pinned: tuple[str, ...]  # existing directories between the root and a read-only path
    writable: tuple[str, ...]  # git's own directories elsewhere
    watched: tuple[Watch, ...]


def protect(roots: Iterable[str], granted: frozenset[str], guarded: frozenset[str] = frozenset()) -> Protection:
    """What stays as it is under `roots` (resolved directories), but for the paths in `granted`.

    What stands at a path in `guarded` counts as absent: another run is about to remove it.
    """
    read_only: dict[str, None] = {}
    pinned: dict[str, None] = {}
    writable: dict[str, None] = {}
    watched: dict[Watch, None] = {}

    def keep(path: str, root: str) -> None:
        if path in granted:
            return
        if path in guarded:
            watched[Watch("absent", os.path.dirname(path), os.path.basename(path))] = None
            return
        # `root` is resolved, so one lstat settles the usual cases; realpath costs a look-up a component
        mode = _mode(path)
        resolved = path
        parent = os.path.dirname(path)
        if stat.S_ISLNK(mode) or (parent != root and os.path.islink(parent)):
            for link, target in (*_links(parent, root), *_links(path, root)):
                watched[Watch("link", os.path.dirname(link), os.path.basename(link), target)] = None
            resolved = os.path.realpath(path)
            if resolved in granted:
                return
            mode = _mode(resolved)
        if mode and not stat.S_ISLNK(mode):
            read_only[resolved] = None
            above = os.path.dirname(resolved)
            while is_below(above, root):
                pinned[above] = None
                above = os.path.dirname(above)
        elif not mode:
            where = absent(resolved)
            if where is not None:
                watched[where] = None

    for root in roots:
        for name in PROTECTED_NAMES:
            keep(f"{root}/{name}", root)
        git = git_paths(root) if f"{root}/.git" not in guarded else None
        if git is None:
            if f"{root}/.git" not in granted:
                watched[Watch("repository", root, ".git")] = None
            continue
        if os.path.islink(f"{root}/.git"):
            watched[Watch("link", root, ".git", os.readlink(f"{root}/.git"))] = None
        for path in git.pin:
            pinned[path] = None
        for path in git.write:
            writable[path] = None
        for path in git.protect:
            keep(path, root)
    return Protection(tuple(read_only), tuple(pinned), tuple(writable), tuple(watched))


def absent(path: str) -> Watch | None:
    """The watch for a resolved path that does not exist: its deepest existing directory, and the rest."""
    root = os.path.dirname(path)
    while True:
        try:
            mode = os.lstat(root).st_mode
        except OSError:
            root = os.path.dirname(root)
            continue
        # below a file nothing can be made
        return Watch("absent", root, path[len(root.rstrip("/")) + 1 :]) if stat.S_ISDIR(mode) else None


def _mode(path: str) -> int:
    """The mode of `path` itself, 0 if there is nothing."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _links(path: str, root: str) -> list[tuple[str, str]]:
    """The symlinks met while following `path`, each with its text, as far as they lie under `root`."""
    met: list[tuple[str, str]] = []
    for _ in range(40):  # as many as the kernel follows, path_resolution(7)
        try:
            target = os.readlink(path)
        except OSError:
            break
        directory = os.path.realpath(os.path.dirname(path))
        path = f"{directory}/{os.path.basename(path)}"
        if not is_below(path, root):
            break
        met.append((path, target))
        path = os.path.join(directory, target)
    return met

"""Which paths under a writable root stay as they are: what shells, git and agents run or believe at their start.

A path that exists is mounted read-only. One that does not exist has nothing to mount on (and a placeholder
would be a file of ours in the user's tree), and a link cannot be a mount point; those two are *watched*:
the shim puts them back at once when they change and once more when the run has ended.
"""

from __future__ import annotations

import os
import stat

from doorward.launcher.git_directories import git_paths
from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.rules import is_below
from doorward.launcher.watch import Watch
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
# How often the names are looked at until they keep still.
_LOOKS = 8
PROTECTED_NAMES = _AGENTS + _SHELLS + _GIT


class Protection(NamedTuple):
    """What one writable root needs."""

    read_only: tuple[str, ...]
    pinned: tuple[str, ...]  # existing directories between the root and a read-only path
    writable: tuple[str, ...]  # git's own directories elsewhere
    watched: tuple[Watch, ...]


def protect(
    roots: Iterable[str],
    granted: frozenset[str],
    guarded: Callable[[], frozenset[str]] = frozenset,
    cache_dir: str = "",
) -> Protection:
    """What stays as it is under `roots` (resolved directories), but for the paths in `granted`.

    `guarded` tells what other runs keep absent. Something that stands at such a path is about to be removed
    and counts as absent. A run tells before its command can make anything, and takes it back only after it
    has removed it: so what stands unchanged before and after `guarded` was asked is judged by its answer.
    Raises SandboxUnavailable if the names do not keep still.
    """
    roots = tuple(roots)
    doomed: frozenset[str] = frozenset()
    for _ in range(_LOOKS):
        look = _Look(granted, doomed, cache_dir)
        for root in roots:
            look.at(root)
        taken = guarded() if look.standing else frozenset()
        found = frozenset(path for path in look.standing if path in taken)
        if not found and all(_identity(path) == was for path, was in look.standing.items()):
            return look.protection()
        doomed |= found
    raise SandboxUnavailable("Protected names in the workspace keep changing while a run starts.", "Try again.")


class _Look:
    """One look at everything that is protected."""

    def __init__(self, granted: frozenset[str], doomed: frozenset[str], cache_dir: str) -> None:
        self._granted = granted
        self._doomed = doomed
        self._cache_dir = cache_dir
        self._read_only: dict[str, None] = {}
        self._pinned: dict[str, None] = {}
        self._writable: dict[str, None] = {}
        self._watched: dict[Watch, None] = {}
        self.standing: dict[str, tuple[int, ...]] = {}  # what was there, and how it is recognised

    def protection(self) -> Protection:
        """What the look found."""
        return Protection(tuple(self._read_only), tuple(self._pinned), tuple(self._writable), tuple(self._watched))

    def at(self, root: str) -> None:
        """Looks at one root."""
        for name in PROTECTED_NAMES:
            self._keep(f"{root}/{name}", root)
        entry = f"{root}/.git"
        git = None
        if entry not in self._doomed:
            self._stands(entry)
            git = git_paths(root, self._cache_dir)
        if git is None:
            if entry not in self._granted:
                own = "config" if os.path.lexists(f"{root}/config") else ""
                self._watched[Watch("repository", root, ".git", own, self._granted_below(root))] = None
            return
        if os.path.islink(entry):
            self._watched[Watch("link", root, ".git", os.readlink(entry))] = None
        for path in git.pin:
            self._pinned[path] = None
        for path in git.write:
            self._writable[path] = None
        for path in git.protect:
            self._keep(path, root)
        if entry not in self._granted:
            for folder, directory, stamp, known in git.submodules:
                granted = self._granted_below(folder, directory)
                target = "\0".join((directory, stamp, *known))
                self._watched[Watch("submodules", folder, ".git", target, granted)] = None

    def _granted_below(self, *directories: str) -> tuple[str, ...]:
        return tuple(sorted(path for path in self._granted if any(is_below(path, above) for above in directories)))

    def _keep(self, path: str, root: str) -> None:
        if path in self._granted:
            return
        if path in self._doomed:
            self._watched[Watch("absent", os.path.dirname(path), os.path.basename(path))] = None
            return
        # `root` is resolved, so one lstat settles the usual cases; realpath costs a look-up a component
        mode = self._stands(path)
        resolved = path
        parent = os.path.dirname(path)
        if stat.S_ISLNK(mode) or (parent != root and os.path.islink(parent)):
            for link, target in (*_links(parent, root), *_links(path, root)):
                self._watched[Watch("link", os.path.dirname(link), os.path.basename(link), target)] = None
            resolved = os.path.realpath(path)
            if resolved in self._granted:
                return
            mode = self._stands(resolved)
        if mode and not stat.S_ISLNK(mode):
            self._read_only[resolved] = None
            above = os.path.dirname(resolved)
            while is_below(above, root):
                self._pinned[above] = None
                above = os.path.dirname(above)
        elif not mode:
            where = absent(resolved)
            if where is not None:
                self._watched[where] = None

    def _stands(self, path: str) -> int:
        """The mode of `path` itself, 0 if there is nothing; notes what is there."""
        identity = _identity(path)
        if not identity:
            return 0
        self.standing[path] = identity
        return identity[0]


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


def _identity(path: str) -> tuple[int, ...]:
    """The mode of `path` itself and what tells it from another one there, empty if there is nothing.

    A number of a removed file is soon used again, so the time of change belongs to it; but not for `.git`,
    which git changes all the time and no run removes.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    if path.endswith("/.git"):
        return (found.st_mode, found.st_dev, found.st_ino)
    return (found.st_mode, found.st_dev, found.st_ino, found.st_ctime_ns)


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

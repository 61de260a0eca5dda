"""Which project a folder belongs to, and what the person said about it.

Trust is kept under folders; the nearest one that holds the working folder counts, so a sub-folder inherits. Both sides
are compared as real paths, so links and other spellings are one. A linked git worktree counts as its repository. The
project's own configuration is read from the folder that was trusted and no other: a command that makes a
`.doorward` further down has trusted nothing.
"""

import os
from collections.abc import Iterator, Mapping


def trust_of(cwd: str, levels: Mapping[str, str]) -> tuple[str, str] | None:
    """The level that `levels` (real path to level) give the absolute folder `cwd`, and the folder named; or None."""
    real = os.path.realpath(cwd)
    for folder in upwards(real):
        if folder in levels:
            return levels[folder], folder
    repository = repository_of_worktree(real)
    for folder in upwards(repository) if repository is not None else ():
        if folder in levels:
            return levels[folder], folder
    return None


def upwards(folder: str) -> Iterator[str]:
    """`folder` and every folder above it."""
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def repository_of_worktree(cwd: str) -> str | None:
    """The main repository of the linked worktree that holds `cwd` (gitrepository-layout(5)), or None.

    The repository must point back: a `.git` file alone, which anybody can write, claims nothing.
    """
    for folder in upwards(cwd):
        link = os.path.join(folder, ".git")
        if not os.path.lexists(link):
            continue
        text = _first_line(link)
        if text is None or not text.startswith("gitdir:"):
            return None
        administration = os.path.realpath(os.path.join(folder, text.removeprefix("gitdir:").strip()))
        worktrees, git = os.path.dirname(administration), os.path.dirname(os.path.dirname(administration))
        if os.path.basename(worktrees) != "worktrees" or os.path.basename(git) != ".git":
            return None
        back = _first_line(os.path.join(administration, "gitdir"))
        if back is None or os.path.realpath(os.path.join(administration, back)) != os.path.realpath(link):
            return None
        return os.path.dirname(git)
    return None


def _first_line(path: str) -> str | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.fsdecode(os.read(fd, 8192)).partition("\n")[0]
    except OSError:
        return None  # a folder: an ordinary repository
    finally:
        os.close(fd)

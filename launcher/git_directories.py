"""Finds what git would run or believe from a folder: hooks, configuration, and where they really live.

A `.git` may be a directory, a link to one, or a file (`gitdir: PATH`) in a linked worktree or a submodule.
The file can be written by whoever may write the folder, so what it points to is granted only if that place
points back: `gitdir` in a worktree's directory, `core.worktree` in a submodule's configuration. Those lie
outside the folder and were written by git itself.
"""

from __future__ import annotations

import os
import stat

from doorward.named_tuple import NamedTuple

# A git file holds one short line; anything longer is none.
_SMALL = 4096
# Configuration larger than this is not searched for core.hooksPath and core.worktree.
_CONFIG = 1 << 20
# Each protected worktree costs three mounts. Above this many the folder that lists them is held as a whole.
_WORKTREES = 32
_MODULES = 64
_MODULE_DEPTH = 5

# An index larger than this is read so far; an entry takes about 100 bytes.
_INDEX = 1 << 30
# From this size on it is remembered that an index names no submodule.
_LARGE = 1 << 19
# The mode of an entry that is another repository, as an index has it (gitformat-index(5)).
GITLINK = b"\0\0\xe0\0"

_SETTING = r"^[ \t]*(hookspath|worktree)[ \t]*=[ \t]*(.*?)[ \t\r]*$"


class Submodules(NamedTuple):
    """Those of one repository that are protected, by their paths in its work tree `folder`; others may come in a
    run. `stamp` recognises its index as it was looked at, and is empty where it must be looked at again."""

    folder: str
    directory: str  # its git directory
    stamp: str
    known: tuple[str, ...] = ()


class GitPaths(NamedTuple):
    """What a folder's repository needs. Every path is absolute and resolved."""

    write: tuple[str, ...] = ()  # git's own directories outside the folder, needed for add, commit and fetch
    protect: tuple[str, ...] = ()  # stays as it is, whether it exists or not
    pin: tuple[str, ...] = ()  # may not be renamed away from above a protected path
    submodules: tuple[Submodules, ...] = ()


def git_paths(folder: str, cache_dir: str = "") -> GitPaths | None:
    """What to protect for the repository whose work tree is `folder`; None if there is none yet. `cache_dir`, if
    given, is where it is remembered that a large index names no submodule."""
    entry = f"{folder}/.git"
    try:
        kind = os.lstat(entry).st_mode
    except OSError:
        return _bare(folder)
    if stat.S_ISLNK(kind):
        # the link itself is looked after by its name; what it leads to is not granted
        target = os.path.realpath(entry)
        return _repository(target, folder, cache_dir) if os.path.isdir(target) else GitPaths()
    if stat.S_ISDIR(kind):
        return _repository(entry, folder, cache_dir)
    return _linked(entry, folder, cache_dir)


def _bare(folder: str) -> GitPaths | None:
    if not is_head(_read(f"{folder}/HEAD", _SMALL)) or not os.path.isfile(f"{folder}/config"):
        return None
    return GitPaths(protect=(f"{folder}/config", f"{folder}/hooks", f"{folder}/commondir"))


def is_head(text: str) -> bool:
    """Whether git would take this for a HEAD: the name of a branch, or of a commit (gitrepository-layout(5))."""
    if text.startswith("ref:"):
        return text[4:].lstrip().startswith("refs/")
    return len(text) >= 40 and not text[:40].strip("0123456789abcdefABCDEF")


def _linked(entry: str, folder: str, cache_dir: str) -> GitPaths:
    text = _read(entry, _SMALL)
    if not text.startswith("gitdir:"):
        return GitPaths(protect=(entry,))
    own = os.path.realpath(os.path.join(folder, text[len("gitdir:") :].strip()))
    back = _read(f"{own}/gitdir", _SMALL).strip()
    if back and os.path.realpath(os.path.join(own, back)) == os.path.realpath(entry):
        common = os.path.realpath(os.path.join(own, _read(f"{own}/commondir", _SMALL).strip() or "."))
        if os.path.dirname(own) == f"{common}/worktrees" and _is_git_directory(common):
            found = _repository(common, folder, cache_dir, own)
            return found._replace(write=(common, own), protect=(entry, *found.protect))
    elif not back and "/modules/" in own and _is_git_directory(own):
        worktree = _setting(f"{own}/config", "worktree")
        if worktree and os.path.realpath(os.path.join(own, worktree)) == folder:
            found = _repository(own, folder, cache_dir)
            return found._replace(write=(own,), protect=(entry, *found.protect))
    return GitPaths(protect=(entry,))


def _repository(common: str, folder: str, cache_dir: str, own: str = "") -> GitPaths:
    protect = [f"{common}/{name}" for name in ("config", "hooks", "config.worktree", "commondir")]
    for config in (f"{common}/config", *_user_configurations()):
        text = _read(config, _CONFIG)
        hooks = _setting_in(text, "hookspath")
        if hooks:
            protect.append(os.path.realpath(os.path.join(folder, os.path.expanduser(hooks))))
        if "include" in text.lower():
            from doorward.launcher.git_includes import included  # not needed by most runs

            protect.extend(included(config))
    pin = [common]
    worktrees = f"{common}/worktrees"
    names = _names(worktrees)
    if own:
        protect.append(worktrees)  # a command in one worktree has no business in the others
        protect.extend(f"{own}/{name}" for name in ("commondir", "gitdir", "config.worktree"))
    elif len(names) > _WORKTREES:
        protect.append(worktrees)
    elif names:
        pin.append(worktrees)
        for name in names:
            pin.append(f"{worktrees}/{name}")
            protect.extend(f"{worktrees}/{name}/{part}" for part in ("commondir", "gitdir", "config.worktree"))
    modules = f"{common}/modules"
    found = _modules(modules)
    if len(found) > _MODULES:
        protect.append(modules)
    elif found:
        for module in found:
            above = module
            while above != common:
                pin.append(above)
                above = os.path.dirname(above)
            protect.extend(f"{module}/{part}" for part in ("config", "hooks", "commondir"))
    return _with_submodules(GitPaths(protect=tuple(protect), pin=tuple(pin)), folder, own or common, cache_dir)


def _with_submodules(found: GitPaths, folder: str, directory: str, cache_dir: str) -> GitPaths:
    """Adds what the submodules need that the index names: `git status` enters each of them."""
    stamp = index_stamp(directory)
    if not may_name_submodules(directory, stamp, cache_dir):
        return found._replace(submodules=(Submodules(folder, directory, stamp),))
    from doorward.launcher.git_index import index_gitlinks  # few repositories have any

    known: list[str] = []
    protect, pin, below = [*found.protect], [*found.pin], [*found.submodules]
    names = index_gitlinks(directory)
    for name in names:
        inner = f"{folder}/{name}"
        if not os.path.lexists(f"{inner}/.git") or os.path.realpath(inner) != inner:
            continue  # nothing there yet, or git does not enter it since it is behind a link
        submodule = git_paths(inner, cache_dir)
        if submodule is None:
            continue
        known.append(name)
        above = inner
        while above != folder:
            pin.append(above)
            above = os.path.dirname(above)
        if os.path.islink(f"{inner}/.git"):
            protect.append(f"{inner}/.git")
        # what it would need to be written is not granted: the place it names was not written by this folder's owner
        protect.extend(submodule.protect)
        pin.extend(submodule.pin)
        below.extend(submodule.submodules)
    # one that is not there yet can be made without a change to the index
    below.append(Submodules(folder, directory, stamp if len(known) == len(names) else "", tuple(known)))
    return GitPaths(found.write, tuple(protect), tuple(pin), tuple(below))


def index_stamp(directory: str) -> str:
    """What recognises the index of a git directory as unchanged: nobody can set a change time (inode(7)). Empty where
    there is none, or where it is split: the other part could be written without a change to this one."""
    try:
        if any(name.startswith("sharedindex.") for name in os.listdir(directory)):
            return ""
        found = os.stat(f"{directory}/index")
    except OSError:
        return ""
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_ctime_ns}"


def may_name_submodules(directory: str, stamp: str, cache_dir: str = "") -> bool:
    """False where the index of the git directory certainly names no submodule, as in most repositories."""
    if not stamp:
        return os.path.lexists(f"{directory}/index")
    if cache_dir and int(stamp.split(" ")[2]) > _LARGE:
        from doorward.launcher.plain_index import is_plain  # reading takes a millisecond for every megabyte or two

        return not is_plain(directory, stamp, cache_dir, _names_one)
    return _names_one(directory)


def _names_one(directory: str) -> bool:
    return GITLINK in _read_bytes(f"{directory}/index", _INDEX)


def _modules(directory: str, depth: int = 0) -> list[str]:
    found: list[str] = []
    for name in _names(directory):
        path = f"{directory}/{name}"
        if os.path.isfile(f"{path}/HEAD"):
            found.append(path)
            found.extend(_modules(f"{path}/modules", depth + 1))
        elif depth < _MODULE_DEPTH and len(found) <= _MODULES:
            found.extend(_modules(path, depth + 1))  # a module's name may hold slashes
    return found


def _names(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as listing:
            return [item.name for item in listing if item.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _is_git_directory(path: str) -> bool:
    return os.path.isfile(f"{path}/HEAD") and os.path.isdir(f"{path}/objects") and os.path.isdir(f"{path}/refs")


def _user_configurations() -> tuple[str, ...]:
    """What git reads besides a repository's own settings (git-config(1), FILES)."""
    home = os.path.expanduser("~")
    return (
        "/etc/gitconfig",
        f"{os.environ.get('XDG_CONFIG_HOME') or home + '/.config'}/git/config",
        f"{home}/.gitconfig",
    )


def _setting(config: str, name: str) -> str:
    return _setting_in(_read(config, _CONFIG), name)


def _setting_in(text: str, name: str) -> str:
    # only two names are ever looked for, and neither means anything in another section
    value = ""
    if name not in text.lower():
        return value  # as in most repositories; loading `re` takes longer than all the rest
    import re

    for match in re.finditer(_SETTING, text, re.IGNORECASE | re.MULTILINE):
        if match[1].lower() == name:
            value = match[2].strip('"')
    return value


def _read(path: str, limit: int) -> str:
    return os.fsdecode(_read_bytes(path, limit))


def _read_bytes(path: str, limit: int) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return b""
    try:
        found = os.fstat(handle)
        # no more is asked for than there is: a buffer of the limit's size would be cleared first
        return os.read(handle, min(limit, found.st_size)) if stat.S_ISREG(found.st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(handle)

"""Finds what git would run or believe from a folder: hooks, configuration, and where they really live.

A `.git` may be a directory, a link to one, or a file (`gitdir: PATH`) in a linked worktree or a submodule.
The file can be written by whoever may write the folder, so what it points to is granted only if that place
points back: `gitdir` in a worktree's directory, `core.worktree` in a submodule's configuration. Those lie
outside the folder and were written by git itself.
"""

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

_SETTING = r"^[ \t]*(hookspath|worktree)[ \t]*=[ \t]*(.*?)[ \t\r]*$"


class GitPaths(NamedTuple):
    """What a folder's repository needs. Every path is absolute and resolved."""

    write: tuple[str, ...] = ()  # git's own directories outside the folder, needed for add, commit and fetch
    protect: tuple[str, ...] = ()  # stays as it is, whether it exists or not
    pin: tuple[str, ...] = ()  # may not be renamed away from above a protected path


def git_paths(folder: str) -> GitPaths | None:
    """What to protect for the repository whose work tree is `folder`; None if there is none yet."""
    entry = f"{folder}/.git"
    try:
        kind = os.lstat(entry).st_mode
    except OSError:
        return _bare(folder)
    if stat.S_ISLNK(kind):
        # the link itself is looked after by its name; what it leads to is not granted
        target = os.path.realpath(entry)
        return _repository(target, folder) if os.path.isdir(target) else GitPaths()
    if stat.S_ISDIR(kind):
        return _repository(entry, folder)
    return _linked(entry, folder)


def _bare(folder: str) -> GitPaths | None:
    head = _read(f"{folder}/HEAD", _SMALL)
    if not head.startswith("ref: ") or not os.path.isfile(f"{folder}/config"):
        return None
    return GitPaths(protect=(f"{folder}/config", f"{folder}/hooks", f"{folder}/commondir"))


def _linked(entry: str, folder: str) -> GitPaths:
    text = _read(entry, _SMALL)
    if not text.startswith("gitdir:"):
        return GitPaths(protect=(entry,))
    own = os.path.realpath(os.path.join(folder, text[len("gitdir:") :].strip()))
    back = _read(f"{own}/gitdir", _SMALL).strip()
    if back and os.path.realpath(os.path.join(own, back)) == os.path.realpath(entry):
        common = os.path.realpath(os.path.join(own, _read(f"{own}/commondir", _SMALL).strip() or "."))
        if os.path.dirname(own) == f"{common}/worktrees" and _is_git_directory(common):
            found = _repository(common, folder, own)
            return GitPaths((common, own), (entry, *found.protect), found.pin)
    elif not back and "/modules/" in own and _is_git_directory(own):
        worktree = _setting(f"{own}/config", "worktree")
        if worktree and os.path.realpath(os.path.join(own, worktree)) == folder:
            found = _repository(own, folder)
            return GitPaths((own,), (entry, *found.protect), found.pin)
    return GitPaths(protect=(entry,))


def _repository(common: str, folder: str, own: str = "") -> GitPaths:
    protect = [f"{common}/{name}" for name in ("config", "hooks", "config.worktree", "commondir")]
    hooks = _setting(f"{common}/config", "hookspath")
    if hooks:
        protect.append(os.path.realpath(os.path.join(folder, os.path.expanduser(hooks))))
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
    return GitPaths(protect=tuple(protect), pin=tuple(pin))


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


def _setting(config: str, name: str) -> str:
    # only two names are ever looked for, and neither means anything in another section
    import re  # not needed by most runs

    value = ""
    text = _read(config, _CONFIG)
    if name not in text.lower():
        return value  # as in most repositories; compiling the pattern takes longer than all the rest
    for match in re.finditer(_SETTING, text, re.IGNORECASE | re.MULTILINE):
        if match[1].lower() == name:
            value = match[2].strip('"')
    return value


def _read(path: str, limit: int) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return os.fsdecode(os.read(handle, limit))
    except OSError:
        return ""
    finally:
        os.close(handle)

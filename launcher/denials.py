"""Tells which of the calls that a command made the sandbox refused. Structure only: mounts, links, permissions.

A call is refused by the sandbox where the mount inside is read-only (or the place is hidden, or not there at all) and
the same user could have done it outside. The question is put to the mounts themselves, through the command's own
root, so it needs no copy of the policy.
"""

from __future__ import annotations

import errno
import os
import stat

from doorward.launcher.interface import Denied

# Distinct refusals that are kept; the last ones, since what made a command give up is among them.
_MOST = 100
_REMOVING = ("remove", "rename", "replace")


class Denials:
    """Collects what was refused in one run. `hidden` are the paths that masks cover."""

    def __init__(self, hidden: tuple[str, ...]) -> None:
        self._hidden = frozenset(hidden)
        self._root = ""
        self._held = -1
        self._mounts: frozenset[str] = frozenset()
        self._open: dict[str, bool] = {}
        self._found: dict[str, Denied] = {}

    def enter(self, process: int) -> bool:
        """Takes the root and the mounts of a process inside. False if it is gone."""
        try:
            # with the last process the mounts would be taken apart while what it did last is still being judged
            self._held = os.open(f"/proc/{process}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            self._root = f"/proc/self/fd/{os.open(f'/proc/{process}/root', os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)}"
            with open(f"/proc/{process}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
                self._mounts = frozenset(_unescaped(line.split()[4]) for line in file)
        except OSError:
            return False
        return True

    @property
    def found(self) -> tuple[Denied, ...]:
        """What was refused, each path once with what was tried last, in the order of the last attempts."""
        return tuple(self._found.values())[-_MOST:]

    def note(self, operation: str, path: str, change: bool) -> None:
        """One call: an absolute path as seen from inside."""
        folder = os.path.dirname(path)
        if change and self._open.get(folder, False) and path not in self._mounts:
            return  # by far the most frequent case
        why, place = self._judge(operation, os.path.normpath(path), change)
        if not why:
            return
        key = os.path.normpath(path)
        self._found.pop(key, None)
        self._found[key] = Denied(key, operation, why, place)
        if len(self._found) > 2 * _MOST:
            self._found = dict(list(self._found.items())[-_MOST:])

    def _judge(self, operation: str, path: str, change: bool) -> tuple[str, str]:
        """Why it was refused ("" if it was not), and which path would have to be granted."""
        if operation == "connect":
            return self._judge_socket(path)
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if os.path.islink(real) and operation in ("read", "write", "chmod", "chown"):
            real = os.path.realpath(real)
        folder = os.path.dirname(real)
        hidden = next((each for each in (real, *_above(real)) if each in self._hidden), "")
        if hidden:
            return "hidden", hidden
        if not change:
            return "", ""
        inside = _mode(self._root + real)
        if operation in ("mkdir", "link", "mknod") and inside:
            return "", ""  # EEXIST, wherever it is
        if operation in ("remove", "rename") and not inside:
            return "", ""  # ENOENT
        if operation == "replace" and stat.S_ISDIR(inside):
            return "", ""  # a folder that what is moved goes into, or no way to replace it anywhere
        if operation in _REMOVING and real in self._mounts:
            return ("protected", real) if _may_write(folder) else ("", "")
        target = real if inside and operation in ("write", "chmod", "chown") else folder
        read_only = self._read_only(target)
        if read_only is None:
            # not there: the sandbox has a folder of its own above it
            private = os.path.isdir(folder) and _may_write(folder)
            return ("private", folder) if private else ("", "")
        if not read_only:
            if target == folder:
                self._open[os.path.dirname(path)] = True
            return "", ""
        if not _may_write(target):
            return "", ""  # the same user may not write it outside either
        island = self._island(real)
        if island:
            return "protected", island
        itself = folder == "/" or (stat.S_ISDIR(inside) and operation in ("chmod", "chown"))
        return "outside", real if itself else folder

    def _judge_socket(self, path: str) -> tuple[str, str]:
        real = os.path.realpath(path)
        if not stat.S_ISSOCK(_mode(real)) or stat.S_ISSOCK(_mode(self._root + real)):
            return "", ""
        return "socket", real

    def _read_only(self, path: str) -> bool | None:
        try:
            return bool(os.statvfs(self._root + path).f_flag & os.ST_RDONLY)
        except OSError as error:
            return None if error.errno in (errno.ENOENT, errno.ENOTDIR) else False

    def _island(self, path: str) -> str:
        """The mount that keeps `path` read-only in the midst of what may be written, or ""."""
        for each in (path, *_above(path)):
            if each in self._mounts and each != "/":
                return each if self._read_only(os.path.dirname(each)) is False else ""
        return ""


def _may_write(path: str) -> bool:
    """Whether the command's user may write it outside. access(2) leaves out the capabilities of our own namespace where
    it looks at real ids; for another user those are root's, and the effective ones have no capabilities."""
    return os.access(path, os.W_OK, effective_ids=os.getuid() != os.geteuid())


def _above(path: str) -> list[str]:
    found = []
    while path not in ("/", ""):
        path = os.path.dirname(path)
        found.append(path)
    return found


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _unescaped(text: str) -> str:
    """proc(5): blanks, tabs, newlines and backslashes stand as octal escapes."""
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, character)
    return text

"""Looks patterns up in a tree, and remembers what it found, so that the next start asks each directory only
whether it changed.

A directory's change time moves whenever a name in it is made, removed or renamed, and nobody can set it
(inode(7)). So a directory with the same inode and change time as last time holds the same names, and a new file
that matches is found. Two cases are read anew each time:

- A directory that changed within the last two seconds: file systems keep time in steps, and a change within the
  same step would not be seen.
- Everything on another file system than the base, or where the base lies on one whose times come from elsewhere
  (network, virtual machine, FUSE).
"""

from __future__ import annotations

import os
import sys
import time

from doorward.launcher.globs import ANYWHERE, is_name_anywhere
from doorward.launcher.mounts import Kind
from doorward.named_tuple import NamedTuple
from doorward.sessions.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

# Longer than the coarsest step of the file systems below (ext3: one second).
_SETTLED_NS = 2_000_000_000
_LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "tmpfs", "overlay", "jfs"))
_PREFIX = "matches-"
_FORMAT = b"1"
# Trees remembered for one doorward home; the oldest goes first.
_KEPT = 32
_LIMIT = 256 << 20


class Match(NamedTuple):
    """`path` is relative to the base; `kinds` are those of the patterns that match it."""

    path: str
    kinds: tuple[Kind, ...]


class Pattern(NamedTuple):
    """A pattern for `fullmatch` on paths relative to the base, and what its matches shall be."""

    kind: Kind
    expression: re.Pattern[str]


def find_matches(base: str, patterns: Sequence[Pattern], cache_dir: str) -> list[Match]:
    """What matches below `base`. A hidden directory is not entered; links are matched by their own name and never
    followed. Directories that cannot be read are passed over: the command, with the same identity, cannot read
    them either."""
    name = _name(base, patterns)
    walk = _Walk(base, patterns, _load(f"{cache_dir}/{name}"))
    try:
        walk.go()
    except FileNotFoundError:
        return []
    if walk.learned and _is_local(base):
        _save(cache_dir, name, walk.remembered())
    return walk.matches


class _Known(NamedTuple):
    """What the last walk found: directories in the order it met them, with the place of the one above in the same
    list, inode and change time; matches, with the place of their directory. Paths are relative to the base."""

    directories: list[str]
    above: list[int]
    stamps: list[int]  # inode and change time in turn
    matches: list[str]
    places: list[int]
    kinds: list[str]


class _Walk:
    """One look at a tree."""

    def __init__(self, base: str, patterns: Sequence[Pattern], known: _Known | None) -> None:
        self._base = base
        self._prefix = base.rstrip("/") + "/"
        self._patterns = patterns
        self._known = known
        self.matches: list[Match] = []
        self.learned = False
        self._kinds: dict[str, str] = {}
        self._found = _Known([], [], [], [], [], [])
        self._names: re.Pattern[str] | None = None
        self._paths: re.Pattern[str] | None = None

    def go(self) -> None:
        """Fills `matches`. Raises FileNotFoundError where there is no base."""
        try:
            self._device = os.lstat(self._base).st_dev
        except OSError as error:
            raise FileNotFoundError(self._base) from error
        self._settled = time.time_ns() - _SETTLED_NS
        same = self._still_there()
        if same is not None:
            self._descend(same)

    def remembered(self) -> _Known:
        """What to keep for the next walk."""
        return self._found

    def _still_there(self) -> dict[str, int] | None:
        """The places of the directories that did not change; None if that is all, and the matches are known."""
        known = self._known
        if known is None:
            return {}
        same: dict[str, int] = {}
        # this loop is what a later start costs: 2.3 µs a directory, nearly all of them the system call
        look, device, stamps, prefix = os.lstat, self._device, iter(known.stamps), self._prefix
        for place, name in enumerate(known.directories):
            inode, changed = next(stamps), next(stamps)
            try:
                found = look(prefix + name)
            except OSError:
                continue
            if found.st_ino == inode and found.st_ctime_ns == changed and found.st_dev == device:
                same[name] = place
        if len(same) < len(known.directories):
            return same
        self.matches = [_match(name, kinds) for name, kinds in zip(known.matches, known.kinds, strict=True)]
        return None

    def _descend(self, same: dict[str, int]) -> None:
        known = self._known
        below: dict[int, list[str]] = {}
        matched: dict[int, list[int]] = {}
        if known is not None:
            for name, parent in zip(known.directories[1:], known.above[1:], strict=True):
                below.setdefault(parent, []).append(name)
            for index, place in enumerate(known.places):
                matched.setdefault(place, []).append(index)
        self._compile()
        found = self._found
        pending = [("", -1)]
        while pending:
            name, above = pending.pop()
            was = same.get(name)
            if known is not None and was is not None:
                here = len(found.directories)
                found.directories.append(name)
                found.above.append(above)
                found.stamps.extend(known.stamps[2 * was : 2 * was + 2])
                for index in matched.get(was, ()):
                    self._add(known.matches[index], known.kinds[index], here)
                pending += [(child, here) for child in below.get(was, ())]
                continue
            pending += self._read(name, above)

    def _read(self, name: str, above: int) -> list[tuple[str, int]]:
        """Lists one directory; gives those below it that are to be entered."""
        path = self._prefix + name if name else self._base
        try:
            # looked at before it is read: what changes meanwhile gets a later time
            before = os.lstat(path)
        except OSError:
            return []
        try:
            listing = os.scandir(path)
        except OSError:
            listing = None
        here = len(self._found.directories)
        self._found.directories.append(name)
        self._found.above.append(above)
        if listing is not None and before.st_dev == self._device and 0 < before.st_ctime_ns < self._settled:
            self._found.stamps.extend((before.st_ino, before.st_ctime_ns))
            self.learned = True
        else:
            self._found.stamps.extend((0, 0))  # no directory has such: it is read again next time
        if listing is None:
            return []
        entered: list[tuple[str, int]] = []
        names, paths, inside = self._names, self._paths, self._inside(name)
        prefix = name + "/" if name else ""
        try:
            with listing:
                for item in listing:
                    if (names is not None and names.fullmatch(item.name)) or (
                        paths is not None and paths.fullmatch(prefix + item.name)
                    ):
                        below = prefix + item.name
                        kinds = "".join(
                            sorted({str(int(p.kind)) for p in self._patterns if p.expression.fullmatch(below)})
                        )
                        # below a directory that is the same already there is nothing to say, but of a link,
                        # which leads elsewhere
                        if kinds != inside or item.is_symlink():
                            self._add(below, kinds, here)
                        if _HIDDEN in kinds:
                            continue
                    if item.is_dir(follow_symlinks=False):
                        entered.append((prefix + item.name, here))
        except OSError:
            pass
        return entered

    def _inside(self, name: str) -> str:
        """The kinds of the deepest match at or above a directory."""
        kinds = self._kinds
        while name and name not in kinds:
            name = name.rpartition("/")[0]
        return kinds.get(name, "")

    def _compile(self) -> None:
        """One expression for patterns that look at a name alone, wherever it is, and one for the others."""
        import re

        names: list[str] = []
        paths: list[str] = []
        for pattern in self._patterns:
            text = pattern.expression.pattern
            if is_name_anywhere(text):
                names.append("(?s:" + text[len(ANYWHERE) :])
            else:
                paths.append(text)
        self._names = re.compile("|".join(names)) if names else None
        self._paths = re.compile("|".join(paths)) if paths else None

    def _add(self, name: str, kinds: str, place: int) -> None:
        self.matches.append(_match(name, kinds))
        self._kinds[name] = kinds
        self._found.matches.append(name)
        self._found.places.append(place)
        self._found.kinds.append(kinds)


_HIDDEN = str(int(Kind.HIDDEN))


def _match(name: str, kinds: str) -> Match:
    return Match(name, tuple(Kind(int(kind)) for kind in kinds))


def _name(base: str, patterns: Sequence[Pattern]) -> str:
    parts = [str(os.geteuid()), base, *(f"{int(pattern.kind)}{pattern.expression.pattern}" for pattern in patterns)]
    return _PREFIX + sha256(_FORMAT + "\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _is_local(path: str) -> bool:
    """Whether the file system at `path` keeps its times itself (proc_pid_mountinfo(5))."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
    except OSError:
        return False
    best, kind = "", ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = fields.split(" ")[4]
        if "\\" in point:
            point = point.encode("latin-1", "surrogateescape").decode("unicode_escape")
        # a later mount on the same place covers an earlier one
        if len(point) >= len(best) and (path == point or path.startswith(point.rstrip("/") + "/")):
            best, kind = point, rest.split(" ", 1)[0]
    return kind in _LOCAL


def _load(path: str) -> _Known | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        size = os.fstat(handle).st_size
        data = os.read(handle, size) if size <= _LIMIT else b""
    except OSError:
        return None
    finally:
        os.close(handle)
    try:
        head, _, rest = data.partition(b"\n")
        count, found, numbers, text = map(int, head.split())
        if len(rest) != numbers + text:
            return None
        values = memoryview(rest)[:numbers].cast("Q").tolist()
        names = os.fsdecode(rest[numbers:]).split("\0")
        above = [value - 1 for value in values[2 * count : 3 * count]]
        places = values[3 * count :]
        directories, matches = names[:count], names[count : count + found]
        kinds = names[count + found :]
    except (ValueError, TypeError):
        return None
    if not len(matches) == len(places) == len(kinds) == found or len(above) != count or directories[:1] != [""]:
        return None
    return _Known(directories, above, values[: 2 * count], matches, places, kinds)


def _save(directory: str, name: str, known: _Known) -> None:
    """Keeps what was found; failing to is no reason not to run."""
    if known.directories[:1] != [""]:
        return
    values = [*known.stamps, *(value + 1 for value in known.above), *known.places]
    numbers = b"".join([value.to_bytes(8, sys.byteorder) for value in values])
    text = os.fsencode("\0".join((*known.directories, *known.matches, *known.kinds)))
    head = f"{len(known.directories)} {len(known.matches)} {len(numbers)} {len(text)}\n".encode()
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        temporary = f"{directory}/.{name}.{os.getpid()}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(head + numbers + text)
            while view:
                view = view[os.write(handle, view) :]
        finally:
            os.close(handle)
        os.rename(temporary, f"{directory}/{name}")
        _forget_old(directory)
    except OSError:
        pass


def _forget_old(directory: str) -> None:
    kept = [name for name in os.listdir(directory) if name.startswith(_PREFIX)]
    if len(kept) <= _KEPT:
        return
    kept.sort(key=lambda name: os.stat(f"{directory}/{name}").st_mtime_ns)
    for name in kept[:-_KEPT]:
        os.unlink(f"{directory}/{name}")

"""Frees room: blobs that no record names, archived rollouts compressed, lines of deleted sessions nobody shares.

A rollout is read for blobs as bytes, so that a damaged line still keeps what it names. A live session may have stored
a blob whose record is still to be written: whatever is newer than the oldest live session is left.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from hashlib import sha256

from doorward.named_tuple import NamedTuple
from doorward.sessions.deletion import drop_unshared
from doorward.sessions.folders import Found, Problem, rollouts
from doorward.sessions.home import Home, StoreError
from doorward.sessions.ids import uuid7_milliseconds
from doorward.sessions.live import held_still, live_pid
from doorward.sessions.refused import SessionLive
from doorward.sessions.stored_file import COMPRESSED, open_stored
from doorward.sessions.unnamed_file import PARTIAL_PREFIX, UnnamedFile
from doorward.sessions.zstd import compressor

_CHUNK = 1 << 20
_NAMED = re.compile(rb'"blob":\{"sha256":"([0-9a-f]{64})"')
_BLOB = re.compile(r"([0-9a-f]{64})(?:\.zst)?")
_OVERLAP = 128


class Freed(NamedTuple):
    """One file. `after` is its size now (0: removed); None where nothing was done yet (dry run) and it is not known."""

    path: str
    before: int
    after: int | None


class Pruned(NamedTuple):
    """What was done, or with `applied` False what would be."""

    applied: bool
    blobs: tuple[Freed, ...]
    archived: tuple[Freed, ...]
    shared: tuple[Freed, ...]
    problems: tuple[Problem, ...]
    """What could not be read, or done. While a rollout cannot be read no blob is removed: it may name it."""

    @property
    def freed(self) -> int:
        """Bytes, those of a dry run without what compression would give."""
        return sum(each.before - (each.before if each.after is None else each.after) for each in self.archived) + sum(
            each.before for each in (*self.blobs, *self.shared)
        )


def prune(home: Home, *, apply: bool = False, progress: Callable[[int], object] | None = None) -> Pruned:
    """Looks everything through; changes something only with `apply`. `progress` is told how many rollouts were read.

    Raises StoreError.
    """
    newest = time.time_ns()
    problems: list[Problem] = []
    named: set[str] = set()
    unread = False
    for number, found in enumerate(_everywhere(home)):
        if progress is not None:
            progress(number)
        if isinstance(found, Problem):
            problems.append(found)
            continue
        try:
            if not found.archived and live_pid(found.path)[0]:
                newest = min(newest, (uuid7_milliseconds(found.id) or 0) * 1_000_000)
            named |= _names(found.path)
        except (StoreError, OSError) as error:
            problems.append(Problem(found.path, f"cannot be read: {error}"))
            unread = True
    blobs = () if unread else tuple(_unnamed(home, named, newest))
    if unread:
        problems.append(Problem(home.blobs, "no blob is removed while a rollout cannot be read: it may name it"))
    archived = tuple(_compress(home, problems, apply=apply))
    shared = tuple(Freed(path, _size(path), 0) for path in drop_unshared(home, dry_run=True))
    if apply:
        for each in blobs:
            os.unlink(each.path)
        drop_unshared(home)
    return Pruned(apply, blobs, archived, shared, tuple(problems))


def _everywhere(home: Home) -> Iterator[Found | Problem]:
    for archived in (False, True):
        yield from rollouts(home, archived=archived)
    if os.path.isdir(home.shared):
        for name in sorted(os.listdir(home.shared)):
            if name.endswith(".jsonl"):
                yield Found(name, f"{home.shared}/{name}", True)


def _names(path: str) -> set[str]:
    """The blobs that a rollout names."""
    found: set[str] = set()
    descriptor = open_stored(path)
    try:
        position, before = 0, b""
        while data := os.pread(descriptor, _CHUNK, position):
            position += len(data)
            found.update(match.decode("ascii") for match in _NAMED.findall(before + data))
            before = data[-_OVERLAP:]
    finally:
        os.close(descriptor)
    return found


def _unnamed(home: Home, named: set[str], newest: int) -> Iterator[Freed]:
    for folder, _, names in os.walk(home.blobs):
        for name in names:
            path = f"{folder}/{name}"
            blob = _BLOB.fullmatch(name)
            if (blob is None or blob[1] in named) and not name.startswith(PARTIAL_PREFIX):
                continue
            status = os.stat(path, follow_symlinks=False)
            if status.st_mtime_ns < newest:
                yield Freed(path, status.st_size, 0)


def _compress(home: Home, problems: list[Problem], *, apply: bool) -> Iterator[Freed]:
    for found in list(rollouts(home, archived=True)):
        if isinstance(found, Problem) or found.path.endswith(COMPRESSED):
            continue
        try:
            before = _size(found.path)
            yield Freed(found.path, before, compress(found.id, found.path) if apply else None)
        except SessionLive as error:
            problems.append(Problem(found.path, str(error)))
        except (StoreError, OSError) as error:
            problems.append(Problem(found.path, f"cannot be compressed: {error}"))


def compress(session: str, path: str) -> int:
    """Puts the compressed form in the place of a rollout, with its times; returns the new size.

    The plain one goes only when what was written reads back as it. Raises SessionLive, StoreError, OSError.
    """
    target = path + COMPRESSED
    with held_still(session, path) as status:
        made = UnnamedFile(os.path.dirname(path))
        try:
            frame, plain, position = compressor(), open_stored(path), 0
            digest = sha256()
            try:
                while data := os.pread(plain, _CHUNK, position):
                    position += len(data)
                    digest.update(data)
                    made.write(frame.compress(data))
            finally:
                os.close(plain)
            made.write(frame.flush())
            made.keep_times(status)
            made.to_disk()
            # one that stands there is what a crash left between the two steps below
            made.publish(target)
        finally:
            made.discard()
        if _digest(target) != digest.digest():
            raise StoreError(f"{target} does not hold what {path} does: move one of them away")
        os.unlink(path)
    return _size(target)


def _digest(path: str) -> bytes:
    digest, position, descriptor = sha256(), 0, open_stored(path)
    try:
        while data := os.pread(descriptor, _CHUNK, position):
            position += len(data)
            digest.update(data)
    finally:
        os.close(descriptor)
    return digest.digest()


def _size(path: str) -> int:
    return os.stat(path, follow_symlinks=False).st_size

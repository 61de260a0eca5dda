"""Checks a session with the lines it shares with others, and many sessions at once, each on a core of its own."""

import os
from collections.abc import Iterator, Mapping, Sequence

from doorward.named_tuple import NamedTuple
from doorward.sessions import chain
from doorward.sessions.folders import Found, Problem
from doorward.sessions.head import Head
from doorward.sessions.history import Segment, segments
from doorward.sessions.home import Home, StoreError
from doorward.sessions.verify import Verification, verify


class Checked(NamedTuple):
    """One session of many. Without a `verification` it could not be read, and `problem` says why."""

    id: str
    path: str
    verification: Verification | None
    problem: str


def verify_session(home: Home, session: str, path: str, known: Head | None = None) -> Verification:
    """As `verify`, the lines that a fork shares included. Raises StoreError."""
    own: Verification | None = None
    expected: Head | None = None
    notes: list[str] = []
    for segment in reversed(segments(home, session, path)):
        if isinstance(segment, Problem):
            notes.append(f"not provable: {segment.sentence}")
        elif own is None:
            own = verify(path, known, before=_head(segment))
        else:
            shared = verify(segment.path, expected, size=segment.size, before=_head(segment))
            where = f"of the lines shared with session {segment.session}"
            if shared.finding is not None:
                finding = shared.finding._replace(detail=f"{where}: {shared.finding.detail}")
                return own._replace(finding=own.finding or finding)
            notes += [f"{where}: {note}" for note in shared.notes]
        if isinstance(segment, Segment):
            expected = _head(segment)
    assert own is not None  # `segments` raises where the session itself cannot be read
    return own._replace(notes=(*own.notes, *notes))


def _head(segment: Segment) -> Head | None:
    """The last of the lines that stand before a segment; None where nothing does, or nothing can be proven of it."""
    base = segment.before
    return None if base is None or base.chain == chain.NOTHING_BEFORE else Head(base.end_ordinal - 1, base.chain)


def verify_many(home: Home, found: Sequence[Found], heads: Mapping[str, Head]) -> Iterator[Checked]:
    """All of them, in the order they end; a process for each core that this one may use."""
    cores = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, len(found))
    if cores < 2:
        for each in found:
            yield _checked(home, each, heads.get(each.id))
        return
    import multiprocessing  # only where there is more than one thing to do at a time

    # nothing of this process is needed in the others, and it has no threads: forking is the cheap way
    context = multiprocessing.get_context("fork")
    # the longest first, or one core would be left with it at the end
    ordered = sorted(found, key=lambda each: -_size(each.path))
    with context.Pool(cores) as pool:
        work = ((home, each, heads.get(each.id)) for each in ordered)
        yield from pool.imap_unordered(_unpacked, work, chunksize=1 if len(found) < 1000 else 16)


def _unpacked(work: tuple[Home, Found, Head | None]) -> Checked:
    return _checked(*work)


def _checked(home: Home, found: Found, known: Head | None) -> Checked:
    try:
        return Checked(found.id, found.path, verify_session(home, found.id, found.path, known), "")
    except (StoreError, OSError) as error:
        return Checked(found.id, found.path, None, str(error))


def _size(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except OSError:
        return 0

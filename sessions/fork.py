"""Makes a session that goes on from a point of another one: what lies before is shared, not copied (`history.py`).

The source is only read: its bytes and times stay as they are, also while its writer is at work. A fork begins where
the source has ended a turn, or at the start of one, never inside.
"""

import os
from collections.abc import Mapping
from typing import Any

from doorward.named_tuple import NamedTuple
from doorward.sessions.folders import Problem
from doorward.sessions.history import Base, Segment, history_file, segments
from doorward.sessions.home import Home, StoreError
from doorward.sessions.lookup import SessionRef
from doorward.sessions.refused import SessionRefused
from doorward.sessions.rollout import Rollout
from doorward.sessions.stored_file import open_stored
from doorward.sessions.summary import session_meta
from doorward.sessions.tail import Tail, read_tail
from doorward.sessions.turn_offset import turn_offset

INHERITED = ("cwd", "sandbox_profile", "git")
"""What a fork's `session_meta` takes over from its source's."""


class Forked(NamedTuple):
    """The new session."""

    id: str
    path: str
    forked_from: str
    turns: int
    """Shared ones; the next turn is one more."""


class _Point(NamedTuple):
    base: Base
    tail: Tail


def fork(
    home: Home,
    source: SessionRef,
    *,
    at: int | None = None,
    name: str | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Forked:
    """A new session that shares what lies before the start of turn `at`, or all of the source.

    `meta` adds keys to the new `session_meta`. Raises SessionRefused for an open turn, or one that is not in the file.
    """
    point = _end(source) if at is None else _start_of(home, source, at)
    own = _meta(source.path)
    inherited = {key: own[key] for key in INHERITED if key in own}
    new = Rollout.create(
        home,
        cwd=str(inherited.get("cwd") or home.path),
        name=name,
        meta={
            **inherited,
            "forked_from_id": source.id,
            "history_base": point.base.to_json(),
            **(meta or {}),
        },
        after=point.tail,
    )
    with new:
        if history_file(home, point.base.session) is None:
            os.unlink(new.path)
            raise StoreError(f"session {source.id} was deleted while it was being forked")
        new.sync()
        return Forked(new.id, new.path, source.id, new.turns)


def _end(source: SessionRef) -> _Point:
    descriptor = open_stored(source.path)
    try:
        size = os.fstat(descriptor).st_size
        tail = read_tail(descriptor, size)
    except OSError as error:
        raise StoreError(f"cannot read {source.path}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if tail.totals.open:
        turn = tail.totals.turn
        raise SessionRefused(
            f"turn {turn} of session {source.id} is open, and a fork does not begin inside a turn",
            f"doorward fork --at {turn} {source.id} takes what lies before it",
        )
    # a torn tail, or what another program put there, is no history; without a link there is only all of it
    end = tail.linked_end or size
    return _Point(Base(source.id, tail.next_ordinal, end, tail.chain), tail)


def _start_of(home: Home, source: SessionRef, turn: int) -> _Point:
    for segment in reversed(segments(home, source.id, source.path)):
        if isinstance(segment, Problem):
            raise StoreError(segment.sentence)
        point = _within(segment, turn)
        if point is not None:
            return point
    raise SessionRefused(
        f"session {source.id} has no turn {turn} that a fork could begin at",
        f"doorward show {source.id} lists its turns; without --at all of it is taken",
    )


def _within(segment: Segment, turn: int) -> _Point | None:
    descriptor = open_stored(segment.path)
    try:
        size = os.fstat(descriptor).st_size
        offset = turn_offset(descriptor, size if segment.size is None else min(size, segment.size), turn)
        if offset is None:
            return None
        if not offset and segment.before is not None:
            raise StoreError(f"{segment.path} does not begin with a session_meta")
        tail = read_tail(descriptor, offset)
    except OSError as error:
        raise StoreError(f"cannot read {segment.path}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    return _Point(Base(segment.session, tail.next_ordinal, offset, tail.chain), tail)


def _meta(path: str) -> dict[str, Any]:
    descriptor = open_stored(path)
    try:
        return session_meta(descriptor, os.fstat(descriptor).st_size) or {}
    finally:
        os.close(descriptor)

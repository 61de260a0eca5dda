"""A session across its forks: which lines it shares with which other session, and reading all of them in order.

A forked session's `session_meta` says where its history is, in Codex's words and one of ours:

    "forked_from_id": "<UUID>",
    "history_base": {"thread_id": "<UUID>", "end_ordinal_exclusive": 8, "end_byte_offset": 4711, "chain": "<64 digits>"}

The shared lines are those of `thread_id`'s file before that byte. The fork's own lines go on from there: its first
record has the ordinal `end_ordinal_exclusive`, and is linked to `chain`, the link of the last shared line. So shared
and own lines together are one sequence without a gap, and one chain.

The file is looked for among the active and the archived sessions, then under `shared_history/`, where a session that
was deleted leaves the lines that others share.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

from doorward.named_tuple import NamedTuple
from doorward.sessions import chain
from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.folders import Found, Problem, expected, rollouts
from doorward.sessions.home import Home, StoreError
from doorward.sessions.line import Line
from doorward.sessions.reading import lines_of, stored_of
from doorward.sessions.stored_file import open_stored
from doorward.sessions.summary import session_meta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.sessions.line import JsonObject

_Read = TypeVar("_Read")
_DEEPEST = 1000
"""Forks of forks; a loop that somebody made by hand ends here."""


class Base(NamedTuple):
    """Where a fork's history is."""

    session: str
    end_ordinal: int
    """Exclusive."""
    end_byte: int
    chain: str
    """The link of the last shared line; zeros where none is linked."""

    def to_json(self) -> dict[str, object]:
        """As `session_meta` holds it."""
        return {
            "thread_id": self.session,
            "end_ordinal_exclusive": self.end_ordinal,
            "end_byte_offset": self.end_byte,
            "chain": self.chain,
        }


class Segment(NamedTuple):
    """A stretch of one file that belongs to a session."""

    session: str
    path: str
    size: int | None
    """Bytes from the start of the file; None for all of it."""
    before: Base | None
    """What stands before it."""


def base_in(meta: JsonObject) -> Base | None:
    """The base that a `session_meta` names; None where there is none, or it is not readable."""
    found = meta.get("history_base")
    if not isinstance(found, dict):
        return None
    session, ordinal, end = (found.get(key) for key in ("thread_id", "end_ordinal_exclusive", "end_byte_offset"))
    digits = found.get("chain")
    if not isinstance(session, str) or not isinstance(ordinal, int) or not isinstance(end, int) or end < 0:
        return None
    return Base(session, ordinal, end, digits if isinstance(digits, str) else chain.NOTHING_BEFORE)


def base_of(path: str) -> Base | None:
    """The base of the session in this file. Raises StoreError."""
    descriptor = open_stored(path)
    try:
        return base_in(session_meta(descriptor, os.fstat(descriptor).st_size) or {})
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def history_file(home: Home, session: str) -> str | None:
    """Where the lines of a session that others may share are: its rollout, or what a deleted one left."""
    for found in expected(home, session):
        return found.path
    left = f"{home.shared}/rollout-{session}.jsonl"
    if os.path.lexists(left):
        return left
    for archived in (False, True):
        for each in rollouts(home, archived=archived):
            if isinstance(each, Found) and each.id == session:
                return each.path
    return None


def segments(home: Home, session: str, path: str) -> list[Segment | Problem]:
    """The stretches a session consists of, the oldest first; a Problem stands for one that cannot be had."""
    found: list[Segment | Problem] = []
    size: int | None = None
    while True:
        try:
            base = base_of(path)
        except StoreError as error:
            if not found:
                raise
            found.append(Problem(path, f"holds lines that are shared, and they cannot be read: {error}"))
            break
        found.append(Segment(session, path, size, base))
        if base is None:
            break
        held = history_file(home, base.session)
        if held is None or len(found) > _DEEPEST:
            found.append(Problem(path, f"shares {base.end_ordinal} lines with session {base.session}, which is gone"))
            break
        session, path, size = base.session, held, base.end_byte
    return found[::-1]


def session_lines(home: Home, session: str, path: str) -> Iterator[Line | Damage]:
    """As `read_lines`, shared lines first; what is missing of those is told as Damage. Raises StoreError."""
    return _through(home, session, path, lines_of)


def session_bytes(home: Home, session: str, path: str) -> Iterator[bytes | Damage]:
    """As `stored_bytes`, shared lines first; what is missing of those is told as Damage. Raises StoreError."""
    return _through(home, session, path, stored_of)


def _through(
    home: Home, session: str, path: str, read: Callable[[int, int], Iterator[_Read]]
) -> Iterator[_Read | Damage]:
    for segment in segments(home, session, path):
        if isinstance(segment, Problem):
            yield Damage(DamageKind.LOST, 0, 0, 0, segment.sentence)
            continue
        descriptor = open_stored(segment.path)
        try:
            size, lost = _extent(descriptor, segment)
            yield from read(descriptor, size)
            if lost is not None:
                yield lost
        except OSError as error:
            raise StoreError(f"cannot read {segment.path}: {error.strerror}") from error
        finally:
            os.close(descriptor)


def _extent(descriptor: int, segment: Segment) -> tuple[int, Damage | None]:
    """How much of the open file belongs to the segment, and what is missing of it."""
    size = os.fstat(descriptor).st_size
    if segment.size is None or segment.size <= size:
        return (size if segment.size is None else segment.size), None
    detail = f"{segment.path} is {segment.size - size} bytes shorter than what was shared of it"
    return size, Damage(DamageKind.LOST, 0, 0, 0, detail)

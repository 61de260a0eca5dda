"""The head digests that the mirror keeps: the last link that was seen of each session, so that a cut tail shows.

One only ever moves forward: a file that ends before it keeps it, and says so.
"""

import os
import sqlite3
from collections.abc import Iterable

from doorward.sessions.head import Head
from doorward.sessions.home import Home, StoreError
from doorward.sessions.mirror_file import MirrorBusy, Unusable, connected
from doorward.sessions.stored_file import open_stored
from doorward.sessions.summary import SessionSummary
from doorward.sessions.tail import SEARCH_LIMIT, tail_within


def move_head(database: sqlite3.Connection, session: str, descriptor: int, size: int) -> str | None:
    """Takes the head of an open file; returns a note when the file ends before the one that was seen.

    OSError and sqlite3.DatabaseError pass.
    """
    head = _head(descriptor, size)
    seen = database.execute("SELECT ordinal FROM heads WHERE id = ?", (session,)).fetchone()
    if seen is not None and (head is None or head.ordinal < seen[0]):
        return f"ends before record {seen[0]}, which was seen: doorward verify {session}"
    if head is not None and (seen is None or head.ordinal > seen[0]):
        database.execute("REPLACE INTO heads (id, ordinal, chain) VALUES (?, ?, ?)", (session, *head))
    return None


def keep_heads(home: Home, sessions: Iterable[SessionSummary]) -> None:
    """Keeps the heads of sessions that were just listed from their files; nothing where that cannot be done."""
    try:
        # nobody waits for this: who holds the index now keeps the heads itself, or the next listing does
        database = connected(home.mirror, busy_s=0.0)
    except (MirrorBusy, Unusable):
        return  # the listing is out; `refresh` makes the index anew when it is needed
    try:
        database.execute("BEGIN")
        for session in sessions:
            descriptor = open_stored(session.path)
            try:
                move_head(database, session.id, descriptor, os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)
        database.execute("COMMIT")
    except (sqlite3.DatabaseError, StoreError, OSError):
        pass  # kept later it proves as much from then on
    finally:
        database.close()


def kept_heads(home: Home) -> dict[str, Head]:
    """The head of each session; empty where there is no usable index. Nothing is made."""
    if not os.path.lexists(home.mirror):
        return {}
    try:
        database = connected(home.mirror)
    except (MirrorBusy, Unusable):
        return {}
    try:
        return {session: Head(*rest) for session, *rest in database.execute("SELECT id, ordinal, chain FROM heads")}
    except sqlite3.DatabaseError:
        return {}
    finally:
        database.close()


def forget_head(home: Home, session: str) -> None:
    """Of a session that was deleted: another one may come under its id, by an import. Nothing where it cannot."""
    if not os.path.lexists(home.mirror):
        return
    try:
        database = connected(home.mirror)
    except (MirrorBusy, Unusable):
        return
    try:
        database.execute("DELETE FROM heads WHERE id = ?", (session,))
    except sqlite3.DatabaseError:
        pass
    finally:
        database.close()


def _head(descriptor: int, size: int) -> Head | None:
    tail = tail_within(descriptor, size, SEARCH_LIMIT)
    return Head(tail.ordinal, tail.chain) if tail is not None and tail.linked_end and tail.ordinal is not None else None

"""The SQLite index over the rollouts: a cache that is thrown away and rebuilt whenever it is not as it should be.

- The rollouts are the original. Where row and file disagree, the file is right; where row and folder disagree about
  `archived`, the folder is. Paths are kept relative to the home, so a home can be moved.
- It is brought up to date when it is read (`refresh`), never by a run: a run neither waits for it nor needs it.
- A file that is no database, or is damaged, is set aside under a dated name and rebuilt, with one notice.
- It is waited for at most BUSY_S; after that MirrorBusy, and the caller reads the files instead.

One thing here is not in the rollouts: the head digest that was seen last of each, which proves that a tail was not cut.
It only ever moves forward: a file that ends before it keeps it, and says so.
"""

import os
import sqlite3
from collections.abc import Callable
from typing import Any, Self, TypeVar

from doorward.named_tuple import NamedTuple
from doorward.sessions.filters import Filter
from doorward.sessions.folders import Found, Problem, rollouts
from doorward.sessions.head import Head
from doorward.sessions.heads import move_head
from doorward.sessions.home import Home, StoreError
from doorward.sessions.listing import Listing, list_sessions
from doorward.sessions.mirror_file import MirrorBusy, Unusable, connected, file_is_not_at_fault, set_aside
from doorward.sessions.search_text import Texts, clean, texts_of
from doorward.sessions.stored_file import open_stored
from doorward.sessions.summary import SessionSummary, summary_of

_COLUMNS = "id, name, cwd, created_at, updated_at, archived, turns, refused, path, notes"
_Result = TypeVar("_Result")
Progress = Callable[[int], object]


def _quiet(count: int) -> None:
    """Nobody watches."""


class Refreshed(NamedTuple):
    """What `refresh` found."""

    files: int
    """Readable rollouts."""
    rows: int
    """Before anything was corrected."""
    both: int
    """Rows that had their file in its place, before anything was corrected."""
    problems: tuple[Problem, ...]
    """A line for each thing that a person should know."""


class Mirror:
    """The open index. Made by `open`; a context manager that closes it. Every method may raise MirrorBusy."""

    def __init__(self, home: Home, database: sqlite3.Connection, notices: tuple[str, ...]) -> None:
        self._home = home
        self._database = database
        self._progress: Progress = _quiet
        self.notices = notices
        """What had to be rebuilt, one sentence each."""

    @classmethod
    def open(cls, home: Home) -> Self:
        """The index of this home, made anew when it must be. Call `refresh` before reading."""
        home.ensure()
        try:
            return cls(home, connected(home.mirror), ())
        except Unusable as reason:
            aside = set_aside(home.mirror)
            notice = f"{home.mirror} {reason} and is rebuilt; the old one is {aside}"
        try:
            return cls(home, connected(home.mirror), (notice,))
        except Unusable as reason:
            raise MirrorBusy(f"{home.mirror} {reason}") from reason

    def refresh(self, progress: Progress | None = None) -> Refreshed:
        """Brings the rows in line with the files: new, changed, moved, archived and deleted ones.

        `progress` is told how many files were looked at so far.
        """
        self._progress = progress or _quiet
        return self._recovering(self._refresh)

    def sessions(
        self, *, archived: bool | None = False, limit: int | None = None, only: Filter | None = None
    ) -> tuple[SessionSummary, ...]:
        """As `list_sessions`, from the rows alone."""
        where, values = (only or Filter()).conditions()
        if archived is not None:
            where += f" AND archived = {archived:d}"
        query = f"SELECT {_COLUMNS} FROM sessions WHERE {where} ORDER BY created_at DESC, id DESC LIMIT ?"

        def read() -> tuple[SessionSummary, ...]:
            rows = self._database.execute(query, [*map(_encoded, values), -1 if limit is None else limit])
            return tuple(self._summary(row) for row in rows)

        return self._recovering(read)

    def head(self, session: str) -> Head | None:
        """The last head digest that was seen of a session, for `verify`."""

        def read() -> Head | None:
            row = self._database.execute("SELECT ordinal, chain FROM heads WHERE id = ?", (session,)).fetchone()
            return Head(*row) if row else None

        return self._recovering(read)

    def close(self) -> None:
        """Twice is fine."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _recovering(self, work: Callable[[], _Result]) -> _Result:
        """Does `work`; when the database turns out to be damaged it is rebuilt once, and the work done again."""
        path = self._home.mirror
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if file_is_not_at_fault(error):
                raise MirrorBusy(f"{path} cannot be used now: {error}") from error
            self.close()
            self.notices += (f"{path} is damaged ({error}) and is rebuilt; the old one is {set_aside(path)}",)
        try:
            self._database = connected(path)
            self._refresh()
            return work()
        except (Unusable, sqlite3.DatabaseError) as error:
            raise MirrorBusy(f"{path} cannot be rebuilt: {error}") from error

    def _refresh(self) -> Refreshed:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            refreshed = self._compared()
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        return refreshed

    def _compared(self) -> Refreshed:
        query = "SELECT path, id, archived, size, modified_ns, searched, key FROM sessions"
        known = {_decoded(path): rest for path, *rest in self._database.execute(query)}
        problems: list[Problem] = []
        listed: dict[str, str] = {}
        unreadable: set[str] = set()
        both = 0
        for archived in (False, True):
            for found in rollouts(self._home, archived=archived):
                if isinstance(found, Problem):
                    problems.append(found)
                elif found.id in listed:
                    problems.append(Problem(found.path, f"has the id of {listed[found.id]}, which is listed"))
                else:
                    self._progress(len(listed))
                    path = self._relative(found.path)
                    both += path in known
                    try:
                        self._compare(found, path, known.get(path))
                    except (StoreError, OSError) as error:
                        problems.append(Problem(found.path, str(error).removeprefix(f"{found.path} is ")))
                        unreadable.add(found.id)
                    else:
                        listed[found.id] = found.path
        here = {self._relative(path) for path in listed.values()}
        for path, (identifier, *_) in known.items():
            if path not in here:
                key = known[path][-1]
                for table, column in (("sessions", "key"), ("hosts", "key"), ("words", "rowid")):
                    self._database.execute(f"DELETE FROM {table} WHERE {column} = ?", (key,))
                if identifier not in listed and identifier not in unreadable:
                    problems.append(Problem(f"{self._home.path}/{path}", "its file is missing"))
        return Refreshed(len(listed), len(known), both, tuple(problems))

    def _relative(self, path: str) -> str:
        # the walk gives paths below the home as it is spelled; os.path.relpath would cost more than the rest
        return path.removeprefix(f"{self._home.path}/")

    def _compare(self, found: Found, path: str, row: list[Any] | None) -> None:
        status = os.stat(found.path, follow_symlinks=False)
        if row is not None and row[1:4] == [found.archived, status.st_size, status.st_mtime_ns]:
            return
        descriptor = open_stored(found.path)
        try:
            plain = os.fstat(descriptor).st_size
            summary = summary_of(found, descriptor, status)
            note = move_head(self._database, found.id, descriptor, plain)
            # a file that only grew is read on from where it was read to
            before, searched, key = (row[2], row[4], row[5]) if row is not None else (0, 0, None)
            grown = key is not None and status.st_size > before and found.path.endswith(".jsonl")
            texts, searched = texts_of(descriptor, searched if grown else 0, plain)
        finally:
            os.close(descriptor)
        notes = summary.notes if note is None else (*summary.notes, note)
        fields = summary._replace(path=path)._asdict()
        fields |= {"notes": "\n".join(notes), "size": status.st_size, "modified_ns": status.st_mtime_ns}
        fields |= {"searched": searched, "key": key}
        names, marks = ", ".join(fields), ", ".join("?" * len(fields))
        values = [_encoded(value) for value in fields.values()]
        cursor = self._database.execute(f"REPLACE INTO sessions ({names}) VALUES ({marks})", values)
        self._index(cursor.lastrowid if key is None else key, summary.name, texts, grown=grown)

    def _index(self, key: int | None, name: str | None, texts: Texts, *, grown: bool) -> None:
        """Makes the words and hosts of a session those in `texts`, or with `grown` adds these."""
        if grown:
            query = "SELECT names, commands, messages FROM words WHERE rowid = ?"
            row = self._database.execute(query, (key,)).fetchone()
            texts = Texts(*row).plus(texts) if row else texts
        else:
            self._database.execute("DELETE FROM hosts WHERE key = ?", (key,))
        self._database.executemany("REPLACE INTO hosts VALUES (?, ?)", [(key, host) for host in texts.hosts])
        hosts = [host for (host,) in self._database.execute("SELECT host FROM hosts WHERE key = ?", (key,))]
        names = "\n".join(dict.fromkeys((*texts.names.split("\n"), clean(name or ""))))
        self._database.execute("DELETE FROM words WHERE rowid = ?", (key,))
        self._database.execute(
            "INSERT INTO words (rowid, names, commands, hosts, messages) VALUES (?, ?, ?, ?, ?)",
            (key, names, texts.commands, "\n".join(hosts), texts.messages),
        )

    def _summary(self, row: tuple[Any, ...]) -> SessionSummary:
        fields = dict(zip(_COLUMNS.split(", "), map(_decoded, row), strict=True))
        fields["path"] = f"{self._home.path}/{fields['path']}"
        fields["archived"] = bool(fields["archived"])
        fields["notes"] = tuple(filter(None, fields["notes"].split("\n")))
        return SessionSummary(**fields)


def mirrored_listing(
    home: Home,
    *,
    archived: bool | None = False,
    limit: int | None = None,
    only: Filter | None = None,
    progress: Progress | None = None,
) -> Listing:
    """`list_sessions` through the index; from the files where it cannot be had. A rebuild is among the problems."""
    try:
        with Mirror.open(home) as mirror:
            found = mirror.refresh(progress).problems
            sessions = mirror.sessions(archived=archived, limit=limit, only=only)
            notices = [Problem(home.mirror, notice.removeprefix(f"{home.mirror} ")) for notice in mirror.notices]
    except MirrorBusy as busy:
        listing = list_sessions(home, archived=archived, limit=limit, only=only)
        told = Problem(home.mirror, str(busy).removeprefix(f"{home.mirror} "))
        return listing._replace(problems=(*listing.problems, told))
    notes = [Problem(session.path, note) for session in sessions for note in session.notes]
    return Listing(sessions, (*found, *notes, *notices))


def _encoded(value: Any) -> Any:
    """SQLite's text is UTF-8; a text with lone surrogates (a path with bad bytes) is kept as a BLOB."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogatepass")
    return value


def _decoded(value: Any) -> Any:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value

"""The database file of the mirror: made whole or not at all, told apart from what it must not be, set aside."""

import os
import sqlite3
import stat
import time

from doorward.sessions.home import FILE_MODE
from doorward.sessions.ids import uuid7

BUSY_S = 1.0
"""Seconds that another process's lock is waited for."""
VERSION = 2
"""Of the tables; a file of any other version, older or newer, is made anew."""

_TABLES = """
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    path TEXT UNIQUE NOT NULL, id TEXT NOT NULL, archived INTEGER NOT NULL, name TEXT, cwd TEXT,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, turns INTEGER, refused INTEGER, notes TEXT NOT NULL,
    size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, searched INTEGER NOT NULL
);
CREATE TABLE hosts (key INTEGER NOT NULL, host TEXT NOT NULL, PRIMARY KEY (key, host)) WITHOUT ROWID;
CREATE INDEX hosts_by_name ON hosts (host);
CREATE VIRTUAL TABLE words USING fts5 (names, commands, hosts, messages, detail = 'full');
CREATE INDEX sessions_by_time ON sessions (archived, created_at, id);
CREATE TABLE heads (id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL, chain TEXT NOT NULL) WITHOUT ROWID;
"""


class MirrorBusy(Exception):
    """The database cannot be had now (locked, disk full, read-only home): read the files instead."""


class Unusable(Exception):
    """Why the file at the database's place cannot be used as it is; reads on after its path."""


def connected(path: str, busy_s: float = BUSY_S) -> sqlite3.Connection:
    """The database at `path`, made when it misses; in autocommit mode. Raises MirrorBusy, Unusable.

    Another process's lock is waited for `busy_s` seconds, here and by every statement.
    """
    try:
        if not os.path.lexists(path):
            _make(path)
        # by lstat: opening and closing the file here would drop the locks of another connection of this process
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            raise Unusable("is not a regular file")
        if stat.S_IMODE(status.st_mode) != FILE_MODE:
            os.chmod(path, FILE_MODE)
    except OSError as error:
        raise MirrorBusy(f"{path} cannot be made: {error.strerror}") from error
    database = None
    try:
        database = sqlite3.connect(path, timeout=busy_s, isolation_level=None)
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            raise Unusable(f"is of version {version}, not {VERSION}," if version else "is an empty database")
        # nothing here is an original: not worth an fsync at every commit
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException as error:
        if database is not None:
            database.close()
        if not isinstance(error, sqlite3.DatabaseError):
            raise
        if file_is_not_at_fault(error):
            raise MirrorBusy(f"{path} cannot be used now: {error}") from error
        raise Unusable(f"is no usable database ({error})") from error
    return database


def _make(path: str) -> None:
    """A new database, whole when its name appears, so that another process never finds it half made."""
    partial = f"{path}.{uuid7()}.new"
    # SQLite would make it with the umask's mode; its -wal and -shm files take the mode of this one
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, FILE_MODE))
    try:
        os.chmod(partial, FILE_MODE)
        database = sqlite3.connect(partial, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        finally:
            database.close()
        try:
            os.link(partial, path)
        except FileExistsError:
            pass  # another process was first
    except sqlite3.DatabaseError as error:
        # also where SQLite was built without full-text search: the files answer then
        raise MirrorBusy(f"{path} cannot be made: {error}") from error
    finally:
        for suffix in ("", "-wal", "-shm"):
            if os.path.lexists(partial + suffix):
                os.unlink(partial + suffix)


def file_is_not_at_fault(error: sqlite3.DatabaseError) -> bool:
    """Whether SQLite's primary result code tells of locks, the disk or permissions, and not of what is in the file."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
    )


def set_aside(path: str) -> str:
    """Moves the file and what belongs to it out of the way; returns the dated name it has now. Raises MirrorBusy."""
    dated = f"{path}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    target, number = dated, 1
    while os.path.lexists(target):
        target, number = f"{dated}-{number}", number + 1
    try:
        os.rename(path, target)
        for suffix in ("-wal", "-shm"):
            if os.path.lexists(path + suffix):
                os.rename(path + suffix, target + suffix)
    except OSError as error:
        raise MirrorBusy(f"{path} cannot be set aside: {error.strerror}") from error
    return target

"""The database file: made whole or not at all, and set aside under a name nobody has."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from doorward.sessions.mirror_file import MirrorBusy, Unusable, connected, file_is_not_at_fault, set_aside


def test_it_is_made_once(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with closing(connected(path)) as database:
        database.execute("INSERT INTO heads VALUES ('x', 1, 'y')")
    with closing(connected(path)) as database:
        assert database.execute("SELECT * FROM heads").fetchall() == [("x", 1, "y")]
    assert os.listdir(tmp_path) == ["db"]


def test_many_processes_find_none(tmp_path: Path, in_child: Callable[..., tuple[object, int]]) -> None:
    """All get a whole one, and it is the same."""
    path = str(tmp_path / "db")
    children = []
    reader, writer = os.pipe()
    for _ in range(4):
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)  # until all are there
            try:
                with closing(connected(path)) as database:
                    database.execute("INSERT INTO heads VALUES (?, 1, '')", (str(os.getpid()),))
                os._exit(0)
            except BaseException:
                os._exit(1)
        children.append(child)
    os.close(reader)
    os.close(writer)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    with closing(connected(path)) as database:
        assert database.execute("SELECT count(*) FROM heads").fetchone() == (4,)
    assert os.listdir(tmp_path) == ["db"]


def test_a_half_made_one_is_never_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "db")

    def fails(*given: object, **more: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(sqlite3, "connect", fails)
    with pytest.raises(MirrorBusy):
        connected(path)
    assert os.listdir(tmp_path) == []


def test_another_version_says_so(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with closing(connected(path)) as database:
        database.execute("PRAGMA user_version = 7")
    with pytest.raises(Unusable, match="is of version 7, not"):
        connected(path)


def test_names_aside_do_not_collide(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        (tmp_path / "db").write_text("x")
        (tmp_path / "db-wal").write_text("y")
        names.add(set_aside(str(tmp_path / "db")))
    assert len(names) == 3
    assert all(Path(name + "-wal").read_text() == "y" for name in names)
    with pytest.raises(MirrorBusy):
        set_aside(str(tmp_path / "db"))


def test_whose_fault_it_is() -> None:
    busy, corrupt = sqlite3.OperationalError("x"), sqlite3.DatabaseError("x")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY_SNAPSHOT
    corrupt.sqlite_errorcode = sqlite3.SQLITE_NOTADB
    assert file_is_not_at_fault(busy)
    assert not file_is_not_at_fault(corrupt)
    assert not file_is_not_at_fault(sqlite3.DatabaseError("without a code"))

"""The index: always what the files say, whatever happened to it."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from doorward.sessions import mirror_file
from doorward.sessions.folders import Problem
from doorward.sessions.home import Home
from doorward.sessions.listing import list_sessions
from doorward.sessions.mirror import Mirror, mirrored_listing
from doorward.sessions.mirror_file import MirrorBusy
from doorward.sessions.rollout import Rollout
from doorward.sessions.verify import verify

New = Callable[..., str]


def id_of(path: str) -> str:
    return path[-len("019ad1d2-0000-7000-8000-000000000001.jsonl") : -len(".jsonl")]


def archive(home: Home, path: str) -> str:
    os.makedirs(home.archived, exist_ok=True)
    moved = f"{home.archived}/{os.path.basename(path)}"
    os.rename(path, moved)
    return moved


@pytest.fixture
def filled(home: Home, new: New) -> list[str]:
    """Six sessions, all in the index."""
    paths = [new(index, name=f"n{index}") for index in range(6)]
    assert mirrored_listing(home).problems == ()
    return paths


@pytest.fixture
def lock(home: Home) -> Iterator[Callable[[], None]]:
    """Holds the database as another process would."""
    with closing(sqlite3.connect(home.mirror, isolation_level=None)) as other:

        def hold() -> None:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")

        yield hold


def same_as_files(home: Home, archived: bool | None = None) -> None:
    assert mirrored_listing(home, archived=archived).sessions == list_sessions(home, archived=archived).sessions


def test_it_says_what_the_files_say(home: Home, filled: list[str]) -> None:
    archive(home, filled[2])
    for archived in (False, True, None):
        same_as_files(home, archived)
    assert mirrored_listing(home, limit=2).sessions == list_sessions(home, limit=2).sessions


def test_it_follows_every_change(home: Home, new: New, filled: list[str]) -> None:
    with Rollout.open(home, filled[0]) as rollout:
        rollout.append("refusal", {"turn": 1})
        rollout.append("event_msg", {"type": "thread_name_updated", "thread_name": "new"})
    os.unlink(filled[1])
    new(name=os.fsdecode(b"bad \xff"), cwd=os.fsdecode(b"/w/\xfe"))
    new(name="half \ud83d", cwd="/日本")
    same_as_files(home)


def test_it_is_private_and_leaves_nothing_beside_it(home: Home, filled: list[str]) -> None:
    before = os.umask(0)
    try:
        os.unlink(home.mirror)
        with Mirror.open(home) as mirror:
            mirror.refresh()
            files = [name for name in os.listdir(home.path) if name.startswith("state")]
            assert {stat.S_IMODE(os.stat(f"{home.path}/{name}").st_mode) for name in files} == {0o600}
    finally:
        os.umask(before)
    assert sorted(os.listdir(home.path)) == ["sessions", "state.sqlite"]


@pytest.mark.parametrize("damage", ["garbage", "empty", "truncated", "directory", "link", "old", "new", "no tables"])
def test_a_bad_database_is_set_aside_and_rebuilt(home: Home, filled: list[str], damage: str) -> None:
    """P-RS-07: every session is listed, with one notice, and the next time without."""
    path = Path(home.mirror)
    data = path.read_bytes()
    if damage in ("old", "new", "no tables"):
        with closing(sqlite3.connect(path)) as database:
            if damage == "no tables":
                database.execute("DROP TABLE sessions")
            else:
                database.execute(f"PRAGMA user_version = {99 if damage == 'new' else -1}")
            database.commit()
    else:
        path.unlink()
    if damage == "garbage":
        path.write_bytes(b"this is no database" * 100)
    elif damage == "empty":
        path.touch()
    elif damage == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "directory":
        path.mkdir()
        (path / "file").touch()
    elif damage == "link":
        path.symlink_to("/dev/null")
    listing = mirrored_listing(home)
    assert listing.sessions == list_sessions(home).sessions
    (problem,) = listing.problems
    assert problem.path == home.mirror
    assert "is rebuilt; the old one is " in problem.detail
    (aside,) = [name for name in os.listdir(home.path) if name.startswith("state.sqlite.2")]
    assert aside in problem.detail
    assert mirrored_listing(home).problems == ()


def test_lost_permissions_are_given_back(home: Home, filled: list[str]) -> None:
    """P-RS-07: mode 000."""
    os.chmod(home.mirror, 0)
    assert mirrored_listing(home).sessions == list_sessions(home).sessions
    assert stat.S_IMODE(os.stat(home.mirror).st_mode) == 0o600


def test_a_damage_that_shows_late(home: Home, filled: list[str]) -> None:
    """P-RS-07: the first page is good, the rest is not."""
    data = bytearray(Path(home.mirror).read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    Path(home.mirror).write_bytes(data)
    listing = mirrored_listing(home)
    assert listing.sessions == list_sessions(home).sessions
    assert len(listing.problems) == 1


def test_a_locked_database_is_not_waited_for(
    home: Home, filled: list[str], lock: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-RS-08: appending never waits, listing falls back to the files in under 2 s, and it catches up later."""
    lock()
    monkeypatch.setattr(mirror_file.connected, "__defaults__", (60.0,))
    started = time.monotonic()
    with Rollout.open(home, filled[0]) as rollout:
        rollout.append("network", {})
    assert time.monotonic() - started < 60
    assert mirror_file.BUSY_S < 2
    monkeypatch.setattr(mirror_file.connected, "__defaults__", (0.05,))
    listing = mirrored_listing(home)
    assert listing.sessions == list_sessions(home).sessions
    (problem,) = listing.problems
    assert problem == Problem(home.mirror, "cannot be used now: database is locked")


def test_it_catches_up_after_a_lock(home: Home, new: New, filled: list[str]) -> None:
    with closing(sqlite3.connect(home.mirror, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        new(name="meanwhile")
        other.execute("ROLLBACK")
    same_as_files(home)


def test_missing_rows_are_added(home: Home, new: New, filled: list[str]) -> None:
    """P-RS-09: half of the rows gone, files copied in from elsewhere; told as files, rows and both."""
    with closing(sqlite3.connect(home.mirror)) as database:
        database.execute("DELETE FROM sessions WHERE name IN ('n0', 'n1', 'n2')")
        database.commit()
    new(name="copied in")
    with Mirror.open(home) as mirror:
        assert mirror.refresh() == (7, 3, 3, ())
        assert mirror.refresh() == (7, 7, 7, ())
    same_as_files(home)


def test_a_home_that_moved(home: Home, filled: list[str], tmp_path: Path) -> None:
    """P-RS-10: nothing is read again, since nothing changed."""
    moved = Home(str(tmp_path / "elsewhere"))
    os.rename(home.path, moved.path)
    with Mirror.open(moved) as mirror:
        assert mirror.refresh() == (6, 6, 6, ())
        assert {session.path for session in mirror.sessions()} == {
            path.replace(home.path, moved.path) for path in filled
        }


def test_archived_and_back(home: Home, filled: list[str]) -> None:
    """P-RS-10: the row follows the file each time."""
    moved = archive(home, filled[0])
    same_as_files(home)
    os.rename(moved, filled[0])
    same_as_files(home)
    assert mirrored_listing(home).problems == ()


def test_a_deleted_file_is_missing_not_corrupt(home: Home, filled: list[str]) -> None:
    """P-RS-10."""
    os.unlink(filled[0])
    assert mirrored_listing(home).problems == (Problem(filled[0], "its file is missing"),)
    assert mirrored_listing(home).problems == ()


def test_the_folder_decides_what_is_archived(home: Home, filled: list[str]) -> None:
    """P-RS-11: the flag set by hand does not move a session: the row is corrected, and stays so."""
    moved = archive(home, filled[0])
    with Mirror.open(home) as mirror:
        mirror.refresh()
        assert [session.path for session in mirror.sessions(archived=True)] == [moved]
    with closing(sqlite3.connect(home.mirror)) as database:
        database.execute("UPDATE sessions SET archived = 1 - archived")
        database.commit()
    for _ in range(2):
        assert [session.path for session in mirrored_listing(home, archived=True).sessions] == [moved]
        assert len(mirrored_listing(home).sessions) == 5


def test_the_head_proves_a_tail(home: Home, filled: list[str]) -> None:
    path = filled[5]
    with Mirror.open(home) as mirror:
        head = mirror.head(id_of(path))
    assert head == verify(path).head
    assert verify(path, head).tail == "proven"


def test_a_cut_tail_keeps_its_head(home: Home, filled: list[str]) -> None:
    """The digest only moves forward: a refresh after the cut does not forget, and the listing says so."""
    path = filled[5]
    lines = Path(path).read_bytes().splitlines(keepends=True)
    Path(path).write_bytes(b"".join(lines[:3]))
    for _ in range(2):
        (problem,) = mirrored_listing(home).problems
        assert problem.detail == f"ends before record 5, which was seen: doorward verify {id_of(path)}"
    with Mirror.open(home) as mirror:
        finding = verify(path, mirror.head(id_of(path))).finding
    assert finding is not None
    assert (finding.line, finding.what) == (4, "removed")


def test_without_an_index_nothing_is_lost_but_proof(home: Home, filled: list[str]) -> None:
    os.unlink(home.mirror)
    same_as_files(home)
    assert mirrored_listing(home).problems == ()


def test_unchanged_files_are_not_read_again(home: Home, filled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorward.sessions.mirror.summary_of", lambda found, *_: pytest.fail(f"{found.path} was read"))
    assert len(mirrored_listing(home).sessions) == 6


def test_a_home_that_cannot_be_written(home: Home, filled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    os.unlink(home.mirror)

    def refused(path: str, *more: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("doorward.sessions.mirror_file._make", refused)
    listing = mirrored_listing(home)
    assert len(listing.sessions) == 6
    assert listing.problems == (Problem(home.mirror, "cannot be made: Read-only file system"),)
    with pytest.raises(MirrorBusy):
        Mirror.open(home)


def test_bad_files_are_told_as_without_it(home: Home, filled: list[str], write: Callable[..., str]) -> None:
    """P-RS-04."""
    empty = write("019ad1d2-0000-7000-8000-000000000001", b"")
    garbage = write("019ad1d2-0000-7000-8000-000000000002", b"garbage\n")
    told = list_sessions(home).problems
    assert {problem.path for problem in told} == {empty, garbage}
    for _ in range(2):
        assert set(mirrored_listing(home).problems) == set(told)

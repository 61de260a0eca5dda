"""Archive, unarchive, rename: a move each, refused while somebody writes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.sessions.home import Home, StoreError
from doorward.sessions.lifecycle import archive, rename, unarchive
from doorward.sessions.listing import list_sessions
from doorward.sessions.lookup import SessionRef, find_session
from doorward.sessions.mirror import mirrored_listing
from doorward.sessions.refused import SessionLive, SessionRefused
from doorward.sessions.rollout import Rollout, RolloutError

New = Callable[..., str]


def found(home: Home, path: str) -> SessionRef:
    return find_session(home, path[-len("019ad1d2-0000-7000-8000-000000000001.jsonl") : -len(".jsonl")])


def test_archived_and_back(home: Home, new: New) -> None:
    """P-RS-10: found by id after each move; nothing of the file changes, its times neither."""
    path = new(3, name="x")
    before = (Path(path).read_bytes(), os.stat(path).st_mtime_ns)
    moved = archive(home, found(home, path))
    assert moved.path.startswith(home.archived)
    assert find_session(home, moved.id) == moved
    assert list_sessions(home).sessions == ()
    assert [each.archived for each in mirrored_listing(home, archived=None).sessions] == [True]
    with pytest.raises(RolloutError, match=f"doorward unarchive {moved.id}"):
        Rollout.open(home, moved.path)
    back = unarchive(home, moved)
    assert back.path == path
    assert (Path(path).read_bytes(), os.stat(path).st_mtime_ns) == before
    assert os.stat(path).st_mode & 0o777 == 0o600
    Rollout.open(home, path).close()


def test_twice_is_refused_with_what_to_do(home: Home, new: New) -> None:
    session = found(home, new())
    with pytest.raises(SessionRefused, match="not archived"):
        unarchive(home, session)
    moved = archive(home, session)
    with pytest.raises(SessionRefused, match=f"doorward unarchive {session.id}"):
        archive(home, moved)


def test_a_live_session_is_left_alone(home: Home) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        session = find_session(home, rollout.id)
        for change in (archive, lambda home, session: rename(home, session, "x")):
            with pytest.raises(SessionLive) as refused:
                change(home, session)
            assert refused.value.pid == os.getpid()
            assert str(os.getpid()) in str(refused.value)
        assert os.path.exists(rollout.path)
    archive(home, session)


def test_what_is_in_the_way_is_not_overwritten(home: Home, new: New) -> None:
    session = found(home, new(1))
    os.makedirs(home.archived)
    target = f"{home.archived}/{os.path.basename(session.path)}"
    Path(target).write_bytes(b"other")
    with pytest.raises(StoreError, match="exists already"):
        archive(home, session)
    assert Path(target).read_bytes() == b"other"
    assert os.path.exists(session.path)


def test_a_rename_that_is_reported_as_failed_though_it_took_place(
    home: Home, new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS: the answer is lost, and the second attempt finds nothing to move."""
    real = os.rename

    def lost_answer(source: str, target: str) -> None:
        real(source, target)
        real(source, target)

    session = found(home, new())
    monkeypatch.setattr(os, "rename", lost_answer)
    assert os.path.exists(archive(home, session).path)


def test_a_rename_that_failed(home: Home, new: New, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(source: str, target: str) -> None:
        raise PermissionError(13, "Permission denied")

    session = found(home, new())
    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(StoreError, match="Permission denied"):
        archive(home, session)
    assert find_session(home, session.id) == session


def test_a_compressed_one_comes_back_plain(home: Home, new: New) -> None:
    from doorward.sessions.zstd import compressor

    path = new(5)
    plain = Path(path).read_bytes()
    moved = archive(home, found(home, path))
    frame = compressor()
    Path(moved.path + ".zst").write_bytes(frame.compress(plain) + frame.flush())
    os.unlink(moved.path)
    os.utime(moved.path + ".zst", ns=(10**18, 10**18))
    held = find_session(home, moved.id)
    assert held.path.endswith(".zst")
    assert list_sessions(home, archived=True).sessions[0].cwd == "/work"
    back = unarchive(home, held)
    assert Path(back.path).read_bytes() == plain
    assert os.stat(back.path).st_mtime_ns == 10**18
    assert os.listdir(home.archived) == []


def test_renamed(home: Home, new: New) -> None:
    session = found(home, new(name="old"))
    assert rename(home, session, "new ñame").name == "new ñame"
    assert find_session(home, "new ñame").id == session.id
    for bad in ("", " ", "a\nb", "\x1b[31m", "x" * 201):
        with pytest.raises(SessionRefused):
            rename(home, session, bad)
    moved = archive(home, find_session(home, session.id))
    with pytest.raises(SessionRefused, match="archived"):
        rename(home, moved, "other")

"""Deleting: gone for good, but what others share of it they keep."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.sessions import items
from doorward.sessions.deletion import delete
from doorward.sessions.fork import fork
from doorward.sessions.heads import kept_heads
from doorward.sessions.history import session_bytes
from doorward.sessions.home import Home
from doorward.sessions.lifecycle import archive
from doorward.sessions.lookup import SessionNotFound, SessionRef, find_session
from doorward.sessions.mirror import mirrored_listing
from doorward.sessions.refused import SessionLive
from doorward.sessions.rollout import Rollout
from doorward.sessions.verify_session import verify_session

New = Callable[..., str]


@pytest.fixture
def source(home: Home) -> SessionRef:
    with Rollout.create(home, cwd="/work") as rollout:
        for turn in (1, 2, 3):
            for item in items.turn_start(
                rollout.id, turn, argv=["true"], cwd="/work", approval_policy="never", sandbox_policy={}
            ):
                rollout.append(*item)
            rollout.append("network", {"turn": turn, "text": f"secret of turn {turn}"})
            rollout.append(*items.turn_end(rollout.id, turn))
    return find_session(home, rollout.id)


def whole(home: Home, session: SessionRef) -> bytes:
    return b"".join(piece for piece in session_bytes(home, session.id, session.path) if isinstance(piece, bytes))


def everything(home: Home) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(Path(home.path).rglob("*.jsonl")))


def test_gone_for_good(home: Home, source: SessionRef) -> None:
    assert delete(home, source).forks == ()
    with pytest.raises(SessionNotFound):
        find_session(home, source.id)
    assert everything(home) == b""


def test_forks_keep_the_lines_they_share_and_no_others(home: Home, source: SessionRef) -> None:
    early, late = (find_session(home, fork(home, source, at=at).id) for at in (2, 3))
    before = [whole(home, each) for each in (early, late)]
    gone = delete(home, source)
    assert set(gone.forks) == {early.id, late.id}
    assert [whole(home, each) for each in (early, late)] == before
    assert b"secret of turn 2" in everything(home)
    assert b"secret of turn 3" not in everything(home)
    for each in (early, late):
        assert verify_session(home, each.id, each.path).finding is None
    assert os.stat(home.shared).st_mode & 0o777 == 0o700
    delete(home, late)
    assert whole(home, early) == before[0]
    delete(home, early)
    assert everything(home) == b""


def test_a_chain_of_forks_whose_middle_goes(home: Home, source: SessionRef) -> None:
    middle = find_session(home, fork(home, source, at=3).id)
    with Rollout.open(home, middle.path) as rollout:
        rollout.append("network", {"text": "the middle's own"})
    last = find_session(home, fork(home, middle).id)
    before = whole(home, last)
    delete(home, middle)
    delete(home, source)
    assert whole(home, last) == before
    assert verify_session(home, last.id, last.path).intact
    delete(home, last)
    assert everything(home) == b""


def test_an_archived_source_keeps_serving_its_forks(home: Home, source: SessionRef) -> None:
    child = find_session(home, fork(home, source).id)
    before = whole(home, child)
    moved = archive(home, source)
    assert whole(home, child) == before
    delete(home, moved)
    assert whole(home, child) == before


def test_another_session_under_its_id_is_not_measured_by_it(home: Home, source: SessionRef) -> None:
    """Deleted, and brought back shorter from a copy: what was seen of the deleted one is no proof against it."""
    mirrored_listing(home)
    lines = Path(source.path).read_bytes().splitlines(keepends=True)
    assert source.id in kept_heads(home)
    delete(home, source)
    assert source.id not in kept_heads(home)
    Path(source.path).write_bytes(b"".join(lines[:3]))
    (found,) = mirrored_listing(home).sessions
    assert found.notes == ()


def test_a_live_session_is_left_alone(home: Home, source: SessionRef) -> None:
    with Rollout.open(home, source.path):
        with pytest.raises(SessionLive) as refused:
            delete(home, source)
        assert refused.value.pid == os.getpid()
    assert os.path.exists(source.path)

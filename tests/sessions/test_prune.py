"""Pruning: only what no record names goes, and only when told to."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.sessions import items
from doorward.sessions.blobs import blob_bytes
from doorward.sessions.deletion import delete
from doorward.sessions.fork import fork
from doorward.sessions.home import Home, StoreError
from doorward.sessions.lifecycle import archive, unarchive
from doorward.sessions.lookup import SessionRef, find_session
from doorward.sessions.output import OutputRecorder
from doorward.sessions.prune import compress, prune
from doorward.sessions.rollout import Rollout
from doorward.sessions.verify_session import verify_session

New = Callable[..., str]


def with_output(home: Home, data: bytes) -> tuple[SessionRef, dict[str, object]]:
    """A session whose output is a blob."""
    recorder = OutputRecorder(home)
    recorder.feed("stdout", data)
    output = recorder.finish().to_json()
    with Rollout.create(home, cwd="/work") as rollout:
        rollout.append(*items.observation(1, exit_code=0, output=output))
    return find_session(home, rollout.id), output["blob"]


def files(home: Home) -> set[str]:
    return {str(path) for path in Path(home.path).rglob("*") if path.is_file()}


def test_a_dry_run_changes_nothing(home: Home) -> None:
    session, _ = with_output(home, b"a" * 100_000)
    other, _ = with_output(home, b"b" * 100_000)
    archive(home, other)
    delete(home, session)
    before = files(home)
    would = prune(home)
    assert (len(would.blobs), len(would.archived), would.applied) == (1, 1, False)
    assert files(home) == before


def test_only_blobs_that_nobody_names_go(home: Home) -> None:
    """The same output of two sessions is one blob, and stays as long as one of them does."""
    first, blob = with_output(home, b"a" * 100_000)
    second, same = with_output(home, b"a" * 100_000)
    assert blob == same
    delete(home, first)
    assert prune(home, apply=True).blobs == ()
    assert b"".join(blob_bytes(home, blob)) == b"a" * 100_000
    delete(home, second)
    pruned = prune(home, apply=True)
    assert len(pruned.blobs) == 1
    assert pruned.freed > 0
    with pytest.raises(StoreError, match="missing"):
        list(blob_bytes(home, blob))


def test_what_a_damaged_or_archived_or_shared_record_names_stays(home: Home) -> None:
    damaged, one = with_output(home, b"a" * 100_000)
    data = Path(damaged.path).read_bytes()
    Path(damaged.path).write_bytes(data.replace(b'{"turn":1,"success"', b'{"turn":1,}"success"'))
    archived, two = with_output(home, b"b" * 100_000)
    archive(home, archived)
    source, three = with_output(home, b"c" * 100_000)
    fork(home, source)
    delete(home, source)
    for _ in range(2):  # the second time the archived one is compressed
        assert prune(home, apply=True).blobs == ()
        for blob in (one, two, three):
            assert b"".join(blob_bytes(home, blob))


def test_a_live_sessions_output_stays_before_its_record_is_written(home: Home) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        recorder = OutputRecorder(home)
        recorder.feed("stdout", b"a" * 100_000)
        output = recorder.finish().to_json()
        assert prune(home, apply=True).blobs == ()
        rollout.append(*items.observation(1, exit_code=0, output=output))
    assert b"".join(blob_bytes(home, output["blob"])) == b"a" * 100_000


def test_no_blob_goes_while_a_rollout_cannot_be_read(home: Home, new: New) -> None:
    session, _ = with_output(home, b"a" * 100_000)
    delete(home, session)
    path = f"{home.archived}/{os.path.basename(new())}.zst"
    os.makedirs(home.archived)
    Path(path).write_bytes(b"not zstd")
    pruned = prune(home, apply=True)
    assert pruned.blobs == ()
    assert any(problem.path == path for problem in pruned.problems)


def test_an_archived_rollout_is_compressed_and_stays_readable(home: Home, new: New) -> None:
    path = new(500, name="big")
    os.utime(path, ns=(10**18, 10**18))
    plain = Path(path).read_bytes()
    session = find_session(home, "big")
    child = find_session(home, fork(home, session).id)
    archive(home, session)
    (freed,) = prune(home, apply=True).archived
    assert freed.after is not None and freed.after * 5 < freed.before == len(plain)
    held = find_session(home, "big")
    assert held.path.endswith(".jsonl.zst")
    assert os.stat(held.path).st_mtime_ns == 10**18
    assert os.stat(held.path).st_mode & 0o777 == 0o600
    assert os.listdir(home.archived) == [os.path.basename(held.path)]
    for each in (held, child):
        assert verify_session(home, each.id, each.path).intact
    assert prune(home, apply=True).archived == ()
    assert Path(unarchive(home, held).path).read_bytes() == plain


def test_a_crash_between_the_two_steps_is_finished_the_next_time(
    home: Home, new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    new(50, name="x")
    path = archive(home, find_session(home, "x")).path
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compress("x", path)
    assert os.path.exists(path) and os.path.exists(path + ".zst")
    compress("x", path)
    assert os.listdir(home.archived) == [os.path.basename(path) + ".zst"]


def test_another_file_in_its_place_is_not_taken_for_it(home: Home, new: New) -> None:
    other = new(9)
    compress("x", other)
    Path(other).write_bytes(b"something else\n")
    with pytest.raises(StoreError, match="does not hold"):
        compress("x", other)
    assert Path(other).read_bytes() == b"something else\n"

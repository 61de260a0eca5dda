"""Forking: what lies before is shared, the source is untouched, and only turn boundaries will do."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.sessions import items
from doorward.sessions.damage import Damage
from doorward.sessions.fork import fork
from doorward.sessions.history import session_bytes, session_lines
from doorward.sessions.home import Home
from doorward.sessions.line import Line
from doorward.sessions.lookup import SessionRef, find_session
from doorward.sessions.refused import SessionRefused
from doorward.sessions.rollout import Rollout
from doorward.sessions.verify_session import verify_session


def add_turn(rollout: Rollout, text: str, *, ended: bool = True) -> int:
    turn = rollout.turns + 1
    start = items.turn_start(
        rollout.id, turn, argv=["echo", text], cwd="/work", approval_policy="never", sandbox_policy={}
    )
    for item in start:
        rollout.append(*item)
    rollout.append("refusal", {"turn": turn, "text": text})
    if ended:
        rollout.append(*items.turn_end(rollout.id, turn))
    return turn


@pytest.fixture
def source(home: Home) -> SessionRef:
    with Rollout.create(home, cwd="/work", name="source", meta={"sandbox_profile": {"mode": "read-only"}}) as rollout:
        for number in range(1, 5):
            add_turn(rollout, f"turn {number}")
    return find_session(home, rollout.id)


def texts(home: Home, session: SessionRef) -> list[str]:
    lines = session_lines(home, session.id, session.path)
    return [line.payload["text"] for line in lines if isinstance(line, Line) and line.type == "refusal"]


def test_all_of_it(home: Home, source: SessionRef) -> None:
    made = fork(home, source, name="second")
    found = find_session(home, "second")
    assert (made.id, made.turns, found.id) == (found.id, 4, made.id)
    assert texts(home, found) == ["turn 1", "turn 2", "turn 3", "turn 4"]
    assert os.path.getsize(found.path) < 2000


def test_before_a_turn_and_on_from_there(home: Home, source: SessionRef) -> None:
    made = fork(home, source, at=3)
    with Rollout.open(home, made.path) as rollout:
        assert add_turn(rollout, "another turn 3") == 3
        assert rollout.totals.refused == 3
    found = find_session(home, made.id)
    assert texts(home, found) == ["turn 1", "turn 2", "another turn 3"]
    ordinals = [line.ordinal for line in session_lines(home, found.id, found.path) if isinstance(line, Line)]
    assert ordinals == list(range(len(ordinals)))
    assert verify_session(home, found.id, found.path).sentence.startswith("intact")


def test_the_source_keeps_its_bytes_and_times(home: Home, source: SessionRef) -> None:
    os.utime(source.path, ns=(10**18, 10**18))
    before = (Path(source.path).read_bytes(), os.stat(source.path).st_mtime_ns)
    fork(home, source)
    fork(home, source, at=2)
    assert (Path(source.path).read_bytes(), os.stat(source.path).st_mtime_ns) == before


def test_what_is_inherited(home: Home, source: SessionRef) -> None:
    """The sandbox stays pinned; a name is not inherited, also one given by a rename."""
    with Rollout.open(home, source.path) as rollout:
        rollout.append(*items.renamed(source.id, "renamed"))
    made = fork(home, source)
    assert find_session(home, made.id).name is None
    metas = [line.payload for line in session_lines(home, made.id, made.path) if line.type == "session_meta"]  # type: ignore[union-attr]
    assert metas[-1]["sandbox_profile"] == {"mode": "read-only"}
    assert metas[-1]["forked_from_id"] == source.id


@pytest.mark.parametrize("turn", [5, 99])
def test_only_at_a_turn_that_is_there(home: Home, source: SessionRef, turn: int) -> None:
    with pytest.raises(SessionRefused, match=f"no turn {turn}"):
        fork(home, source, at=turn)
    assert len(list(Path(home.sessions).rglob("*.jsonl"))) == 1


def test_not_inside_an_open_turn_but_before_it(home: Home, source: SessionRef) -> None:
    """P-RS-14: also of a session that is being written just now."""
    with Rollout.open(home, source.path) as rollout:
        add_turn(rollout, "open", ended=False)
        with pytest.raises(SessionRefused, match=r"turn 5 .* is open.*--at 5"):
            fork(home, source)
        made = fork(home, source, at=5)
        add_turn(rollout, "later")
    assert texts(home, find_session(home, made.id)) == ["turn 1", "turn 2", "turn 3", "turn 4"]


def test_a_fork_of_a_fork_reaches_back_to_the_first(home: Home, source: SessionRef) -> None:
    first = find_session(home, fork(home, source, at=4).id)
    with Rollout.open(home, first.path) as rollout:
        add_turn(rollout, "other 4")
        add_turn(rollout, "other 5")
    second = find_session(home, fork(home, first, at=5).id)
    assert texts(home, second) == ["turn 1", "turn 2", "turn 3", "other 4"]
    early = find_session(home, fork(home, second, at=2).id)
    assert texts(home, early) == ["turn 1"]
    assert verify_session(home, second.id, second.path).intact


def test_a_changed_shared_line_shows_in_the_fork(home: Home, source: SessionRef) -> None:
    made = fork(home, source)
    data = Path(source.path).read_bytes()
    Path(source.path).write_bytes(data.replace(b'"text":"turn 2"', b'"text":"turn X"'))
    finding = verify_session(home, made.id, made.path).finding
    assert finding is not None
    assert finding.what == "changed"
    assert source.id in finding.detail


def test_without_the_source_the_rest_is_still_read(home: Home, source: SessionRef) -> None:
    """An original that is gone is told, and loses only itself."""
    made = fork(home, source)
    with Rollout.open(home, made.path) as rollout:
        add_turn(rollout, "own")
    os.unlink(source.path)
    lines = list(session_lines(home, made.id, made.path))
    assert isinstance(lines[0], Damage)
    assert source.id in lines[0].sentence
    assert texts(home, find_session(home, made.id)) == ["own"]
    assert verify_session(home, made.id, made.path).notes[0].startswith("not provable")


def test_a_big_session_is_forked_without_reading_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are counted, not milliseconds."""
    with Rollout.create(home, cwd="/work") as rollout:
        for number in range(1, 201):
            add_turn(rollout, f"turn {number} " + "x" * 50_000)
    read = 0
    pread = os.pread

    def counted(descriptor: int, count: int, offset: int) -> bytes:
        nonlocal read
        data = pread(descriptor, count, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counted)
    made = fork(home, find_session(home, rollout.id), at=150)
    assert made.turns == 149
    assert read < os.path.getsize(rollout.path) / 5


def test_a_foreign_session_whose_turns_carry_no_number(home: Home, write: Callable[..., str]) -> None:
    identifier = "019ad1d2-0000-7000-8000-000000000001"
    records = [{"type": "session_meta", "payload": {"id": identifier, "cwd": "/else"}}]
    for number in range(3):
        records.append({"type": "event_msg", "payload": {"type": "task_started"}})
        records.append({"type": "refusal", "payload": {"text": f"turn {number + 1}"}})
        records.append({"type": "event_msg", "payload": {"type": "task_complete"}})
    write(identifier, records)
    made = fork(home, find_session(home, identifier), at=2)
    assert texts(home, find_session(home, made.id)) == ["turn 1"]
    with Rollout.open(home, made.path) as rollout:
        assert rollout.turns == 1
    whole = fork(home, find_session(home, identifier))
    assert b"".join(piece for piece in session_bytes(home, whole.id, whole.path) if isinstance(piece, bytes)).count(
        b"turn "
    ) == 3


def test_the_time_of_creation_is_the_forks_own(home: Home, source: SessionRef) -> None:
    started = time.time_ns() // 1_000_000
    made = fork(home, source)
    assert int(made.id[:8] + made.id[9:13], 16) >= started

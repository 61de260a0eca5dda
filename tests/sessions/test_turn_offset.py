"""Where a turn begins, by bisection, is where reading from the start finds it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.sessions import items
from doorward.sessions.home import Home
from doorward.sessions.one_turn import one_turn, turn_lines
from doorward.sessions.rollout import Rollout
from doorward.sessions.turn_offset import turn_offset


def made(home: Home, sizes: list[list[int]]) -> tuple[Rollout, dict[int, int]]:
    offsets = {}
    with Rollout.create(home, cwd="/work") as rollout:
        for number, lengths in enumerate(sizes, 1):
            start = items.turn_start(
                rollout.id, number, argv=["true"], cwd="/", approval_policy="never", sandbox_policy={}
            )
            offsets[number], *_ = [rollout.append(*item).offset for item in start]
            for length in lengths:
                rollout.append("network", {"turn": number, "text": "x" * length})
            rollout.append(*items.turn_end(rollout.id, number))
    return rollout, offsets


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.lists(st.sampled_from([0, 10, 5000, 70_000, 300_000]), max_size=4), max_size=8))
def test_as_reading_from_the_start(tmp_path_factory: pytest.TempPathFactory, sizes: list[list[int]]) -> None:
    home = Home(str(tmp_path_factory.mktemp("turns")))
    rollout, offsets = made(home, sizes)
    descriptor = os.open(rollout.path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        for turn in range(len(sizes) + 2):
            assert turn_offset(descriptor, size, turn) == offsets.get(turn)
    finally:
        os.close(descriptor)
    os.unlink(rollout.path)


def test_a_line_of_another_writer_does_not_mislead(home: Home) -> None:
    rollout, offsets = made(home, [[10], [10], [10]])
    data = Path(rollout.path).read_bytes()
    at = offsets[2]
    foreign = b'{"type":"event_msg","payload":{"type":"warning"}}\n' * 50
    Path(rollout.path).write_bytes(data[:at] + foreign + data[at:])
    with open(rollout.path, "rb") as file:
        size = len(data) + len(foreign)
        assert turn_offset(file.fileno(), size, 3) == offsets[3] + len(foreign)
        assert turn_offset(file.fileno(), size, 4) is None


def test_one_turn_of_a_big_file_reads_only_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are counted: the last turn of a session does not cost the rest."""
    rollout, _ = made(home, [[200_000] * 20, [200_000] * 20, [5]])
    read = 0
    pread: Callable[[int, int, int], bytes] = os.pread

    def counted(descriptor: int, count: int, offset: int) -> bytes:
        nonlocal read
        data = pread(descriptor, count, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counted)
    turn = one_turn(home, rollout.id, rollout.path, 3)
    assert turn is not None
    assert turn.message == "true"
    assert [line.turn for line in turn_lines(home, rollout.id, rollout.path, 2)][:2] == [2, 2]
    assert read < 8_000_000 + 6_000_000  # turn 2 itself, and what two searches took
    assert one_turn(home, rollout.id, rollout.path, 4) is None

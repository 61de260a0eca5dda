"""Where a rollout stands, told from its end."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.sessions import chain, tail
from doorward.sessions.line import Totals
from doorward.sessions.tail import Tail, read_tail, tail_within


def linked(ordinal: int, turn: int = 0, pad: int = 0) -> bytes:
    body = (
        f'{{"timestamp":"","ordinal":{ordinal},"type":"x","payload":{{"pad":"{"x" * pad}"}},'
        f'"metadata":{{"turn":{turn},"open":false,"refused":0,"chain":"'
    ).encode()
    return chain.sealed(body, f"{ordinal:064x}")


def foreign(kind: str = "other", **more: object) -> bytes:
    return json.dumps({"type": "event_msg", "payload": {"type": kind}, **more}).encode() + b"\n"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Tail]:
    def of(*parts: bytes) -> Tail:
        path = tmp_path / "file"
        path.write_bytes(b"".join(parts))
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return read_tail(descriptor, path.stat().st_size)
        finally:
            os.close(descriptor)

    return of


Read = Callable[..., Tail]


def test_the_last_linked_line(read: Read) -> None:
    first, last = linked(0), linked(1, turn=3)
    assert read(first, last) == Tail(1, f"{1:064x}", len(first + last), Totals(3), 0, 0)


def test_its_newline_may_be_missing(read: Read) -> None:
    first, last = linked(0), linked(1)
    assert read(first, last[:-1]) == read(first, last)


def test_nothing(read: Read) -> None:
    assert read() == Tail(None, chain.NOTHING_BEFORE, 0, Totals(), 0, 0)
    assert read(b"\n\n") == Tail(None, chain.NOTHING_BEFORE, 0, Totals(), 0, 0)


def test_what_follows_it_is_counted(read: Read) -> None:
    start = linked(0, turn=1)
    found = read(start, foreign("task_started"), b"garbage\n", b"\n", foreign(ordinal=7), foreign(), b"torn")
    assert found == Tail(7, f"{0:064x}", len(start), Totals(2, True), 1, 2)


@pytest.mark.parametrize("chunk", [1, 3, 64, 1000])
def test_lines_across_reads(read: Read, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(tail, "CHUNK", chunk)
    first, last = linked(0), linked(1, turn=3)
    assert read(first, last, b"x\n\ny") == Tail(1, f"{1:064x}", len(first + last), Totals(3), 0, 2)


def test_a_long_line_by_its_ends(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-RS-13."""
    monkeypatch.setattr(tail, "LOAD_LIMIT", 500)
    first, last = linked(0), linked(1, turn=3, pad=1000)
    assert read(first, last) == Tail(1, f"{1:064x}", len(first + last), Totals(3), 0, 0)
    assert read(first, last, b"y" * 600) == Tail(1, f"{1:064x}", len(first + last), Totals(3), 0, 1)


def test_a_long_line_of_others_keeps_its_number(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-RS-06: what is not loaded is not skipped when the next number is told."""
    monkeypatch.setattr(tail, "LOAD_LIMIT", 500)
    start = b'{"timestamp":"2025-11-29T23:41:00Z","ordinal":9,"type":"compacted","payload":{"m":"'
    assert read(linked(0), start + b"x" * 600 + b'"}}\n').ordinal == 9


def test_the_search_goes_so_far(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(linked(0, turn=1) + b"garbage\n" * 200)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = path.stat().st_size
        assert tail_within(descriptor, size, 100) is None
        assert tail_within(descriptor, size, 10_000) == read_tail(descriptor, size)
    finally:
        os.close(descriptor)


def test_both_ways_agree(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read backwards, or once from the start: the same."""
    cases = [
        (linked(0), linked(1, turn=2), foreign("task_started"), b"bad\n", foreign()),
        (foreign("task_started"), foreign("task_complete"), foreign(ordinal=3), foreign("turn_started")),
        (linked(0), b"torn"),
        (b"bad\n", foreign(), linked(4)),
    ]
    backwards = [read(*case) for case in cases]
    monkeypatch.setattr(tail, "SEARCH_LIMIT", -1)
    monkeypatch.setattr(tail, "tail_within", lambda *given: None)
    assert [read(*case) for case in cases] == backwards

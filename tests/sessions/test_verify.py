"""The chain check: every way to tamper with a line names that line; what cannot be told is not claimed."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doorward.sessions import chain
from doorward.sessions.head import Head
from doorward.sessions.home import Home, StoreError
from doorward.sessions.rollout import Rollout
from doorward.sessions.verify import verify

ID = "019ad1d2-0000-7000-8000-000000000001"


@pytest.fixture
def session(new: Callable[..., str]) -> tuple[Path, list[bytes]]:
    """A file of six records, and its lines."""
    path = Path(new(5))
    return path, path.read_bytes().splitlines(keepends=True)


def found(path: Path) -> tuple[int, str] | None:
    finding = verify(str(path)).finding
    return None if finding is None else (finding.line, finding.what)


def test_untouched(session: tuple[Path, list[bytes]]) -> None:
    path, lines = session
    result = verify(str(path))
    assert result.intact
    assert (result.linked, result.tail, result.notes) == (6, "not provable", ())
    assert result.head == Head(5, json.loads(lines[-1])["metadata"]["chain"])
    assert result.sentence == "intact: 6 lines; tail not provable"


@pytest.mark.parametrize("number", [1, 2, 5, 6])
def test_any_changed_byte_names_its_line(session: tuple[Path, list[bytes]], number: int) -> None:
    path, lines = session
    line = lines[number - 1]
    for at in range(0, len(line) - 1, 3):
        changed = bytes([line[at] ^ 1]) if line[at] ^ 1 != 10 else b"?"
        path.write_bytes(b"".join([*lines[: number - 1], line[:at] + changed + line[at + 1 :], *lines[number:]]))
        # what makes the last line's link unreadable looks like a torn tail, which nobody can tell from tampering
        if number == 6 and at >= line.index(b'"chain":"'):
            result = verify(str(path))
            assert result.finding is None or result.finding.line == 6
            assert result.finding or result.notes
        else:
            assert found(path) == (number, "changed"), (at, line[at : at + 20])


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_a_removed_line(session: tuple[Path, list[bytes]], number: int) -> None:
    path, lines = session
    path.write_bytes(b"".join([*lines[: number - 1], *lines[number:]]))
    assert found(path) == (number, "removed")


def test_several_removed_lines(session: tuple[Path, list[bytes]]) -> None:
    path, lines = session
    path.write_bytes(b"".join([*lines[:2], *lines[4:]]))
    finding = verify(str(path)).finding
    assert finding is not None
    assert finding.sentence == "line 3: removed (records 2 to 3 are missing here)"


@pytest.mark.parametrize(
    ("order", "line"),
    [([0, 2, 1, 3, 4, 5], 2), ([0, 1, 3, 4, 2, 5], 3), ([1, 0, 2, 3, 4, 5], 1), ([0, 1, 2, 3, 5, 4], 5)],
)
def test_reordered_lines(session: tuple[Path, list[bytes]], order: list[int], line: int) -> None:
    path, lines = session
    path.write_bytes(b"".join(lines[index] for index in order))
    assert found(path) == (line, "reordered")


def test_a_line_that_stands_there_twice(session: tuple[Path, list[bytes]]) -> None:
    path, lines = session
    path.write_bytes(b"".join([*lines[:3], lines[1], *lines[3:]]))
    assert found(path) == (4, "reordered")


@pytest.mark.parametrize("slipped_in", [b'{"type":"refusal","payload":{}}\n', b"garbage\n", b"\n", b"\r\n"])
def test_a_line_that_was_slipped_in(session: tuple[Path, list[bytes]], slipped_in: bytes) -> None:
    path, lines = session
    path.write_bytes(b"".join([*lines[:3], slipped_in, *lines[3:]]))
    assert found(path) == (4, "changed")


def test_a_line_with_a_link_computed_anew_moves_the_break_by_one(session: tuple[Path, list[bytes]]) -> None:
    path, lines = session
    previous = json.loads(lines[1])["metadata"]["chain"]
    body = lines[2].replace(b'"index":1', b'"index":9')[:-68]
    path.write_bytes(b"".join([*lines[:2], chain.sealed(body, chain.link(previous, body)), *lines[3:]]))
    assert found(path) == (4, "changed")


def test_line_ends_changed_all_over(session: tuple[Path, list[bytes]]) -> None:
    path, lines = session
    path.write_bytes(b"".join(lines).replace(b"\n", b"\r\n"))
    result = verify(str(path))
    assert not result.intact
    assert result.sentence == "not provable: no line of this file is linked"


def test_a_mark_at_the_start(session: tuple[Path, list[bytes]]) -> None:
    path, lines = session
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(lines))
    assert found(path) == (1, "changed")


def test_lines_of_another_session(session: tuple[Path, list[bytes]], new: Callable[..., str]) -> None:
    path, lines = session
    other = Path(new(5)).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *other[3:]]))
    assert found(path) == (4, "changed")


def test_a_cut_tail_is_only_seen_with_the_head(session: tuple[Path, list[bytes]]) -> None:
    path, lines = session
    head = verify(str(path)).head
    assert verify(str(path), head).tail == "proven"
    path.write_bytes(b"".join(lines[:4]))
    assert verify(str(path)).intact
    assert verify(str(path)).tail == "not provable"
    finding = verify(str(path), head).finding
    assert finding is not None
    assert (finding.line, finding.what) == (5, "removed")


def test_a_head_proves_what_grew_after_it(home: Home, session: tuple[Path, list[bytes]]) -> None:
    path, _ = session
    head = verify(str(path)).head
    with Rollout.open(home, str(path)) as rollout:
        rollout.append("network", {})
    result = verify(str(path), head)
    assert result.intact
    assert (result.tail, result.linked) == ("proven", 7)


def test_a_chain_computed_anew_is_only_seen_with_the_head(session: tuple[Path, list[bytes]]) -> None:
    path, lines = session
    head = verify(str(path)).head
    previous, written = chain.NOTHING_BEFORE, b""
    for line in lines:
        body = line.replace(b'"index":3', b'"index":9')[:-68]
        previous = chain.link(previous, body)
        written += chain.sealed(body, previous)
    path.write_bytes(written)
    assert verify(str(path)).intact
    finding = verify(str(path), head).finding
    assert finding is not None
    assert (finding.line, finding.what) == (6, "changed")


def torn(home: Home, path: Path) -> list[bytes]:
    with open(path, "ab") as file:
        file.write(b'{"torn')
    with Rollout.open(home, str(path)) as rollout:
        rollout.append("network", {})
    return path.read_bytes().splitlines(keepends=True)


def test_the_account_of_a_torn_line(home: Home, session: tuple[Path, list[bytes]]) -> None:
    """The bytes of a torn line are as sealed as any other."""
    path, _ = session
    lines = torn(home, path)
    assert verify(str(path)).intact
    path.write_bytes(b"".join([*lines[:6], b'{"born\n', *lines[7:]]))
    assert found(path) == (7, "changed")
    path.write_bytes(b"".join([*lines[:6], *lines[7:]]))
    assert found(path) == (7, "removed")
    path.write_bytes(b"".join([*lines[:6], lines[6], b"more\n", *lines[7:]]))
    assert found(path) == (7, "changed")


def test_what_follows_the_last_link_is_told(session: tuple[Path, list[bytes]]) -> None:
    path, lines = session
    path.write_bytes(b"".join(lines) + b"x\n{half")
    result = verify(str(path))
    assert result.intact
    assert result.notes == ("lines 7 to 8: not provable, no linked line follows (torn by a crash, or foreign)",)


def test_lines_too_long_to_load(home: Home, new: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """P-RS-13: their bytes are hashed in pieces."""
    monkeypatch.setattr("doorward.sessions.verify.LINE_LIMIT", 1000)
    path = Path(new())
    with open(path, "ab") as file:
        file.write(b"x" * 3000)
    with Rollout.open(home, str(path)) as rollout:
        for _ in range(3):
            rollout.append("network", {"text": "x" * 3_000_000})
    assert verify(str(path)).intact
    data = bytearray(path.read_bytes())
    data[-4_000_000] ^= 1
    path.write_bytes(data)
    assert found(path) == (4, "changed")


def test_a_file_of_another_program(write: Callable[..., Any]) -> None:
    path = write(ID, [{"type": "session_meta", "payload": {"id": ID}}])
    result = verify(path)
    assert not result.intact
    assert result.finding is None
    assert result.head is None


def test_a_file_that_is_not_there(home: Home) -> None:
    with pytest.raises(StoreError, match="is missing"):
        verify(f"{home.sessions}/none.jsonl")


def test_nothing_is_written(session: tuple[Path, list[bytes]]) -> None:
    path, _ = session
    before = os.stat(path).st_mtime_ns
    verify(str(path))
    assert os.stat(path).st_mtime_ns == before

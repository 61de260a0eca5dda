"""Reading whole files: good lines are always given, each bad one is reported by itself."""

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doorward.sessions import reading
from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.home import Home, StoreError
from doorward.sessions.line import Line
from doorward.sessions.reading import read_lines, stored_bytes
from doorward.sessions.rollout import Rollout

ID = "019ad1d2-0000-7000-8000-000000000001"
Lines = Callable[[str], list[Line]]
Damages = Callable[[str], list[Damage]]


def record(index: int) -> bytes:
    return b'{"timestamp":"t","ordinal":%d,"type":"x","payload":{"index":%d}}' % (index, index)


def test_bad_bytes_lose_only_their_line(write: Callable[..., str], lines: Lines, damages: Damages) -> None:
    """P-RS-02: the others load, the place is told, the original is untouched."""
    content = record(0) + b"\n" + b'{"type":"\xe6\x87"}\n' + record(1) + b"\n" + b"\xff"
    path = write(ID, content)
    assert [line.payload["index"] for line in lines(path)] == [0, 1]
    bad, torn = damages(path)
    start = len(record(0)) + 1
    assert (bad.number, bad.offset, bad.length, bad.detail) == (2, start, 13, f"byte {start + 9} is not UTF-8")
    assert (torn.kind, torn.number, torn.offset) == (DamageKind.TORN, 4, len(content) - 1)
    assert Path(path).read_bytes() == content


def test_only_lf_ends_a_line(write: Callable[..., str], lines: Lines, damages: Damages) -> None:
    """P-RS-03: raw U+2028, U+2029 and U+0085 in a record of another writer."""
    text = "a\u2028b\u2029c\u0085d"
    raw = json.dumps({"type": "x", "payload": {"text": text}}, ensure_ascii=False).encode()
    path = write(ID, raw + b"\n" + raw + b"\n")
    assert [line.payload["text"] for line in lines(path)] == [text, text]
    assert damages(path) == []


def test_mark_crlf_and_blank_lines(write: Callable[..., str], lines: Lines, damages: Damages) -> None:
    """P-RS-04."""
    path = write(ID, b"\xef\xbb\xbf" + record(0) + b"\r\n\r\n \t\n\n" + record(1) + b"\r\n")
    assert [(line.payload["index"], line.number, line.offset) for line in lines(path)] == [
        (0, 1, 3),
        (1, 5, 3 + len(record(0)) + 8),
    ]
    assert damages(path) == []


def test_a_mark_elsewhere_is_damage(write: Callable[..., str], lines: Lines, damages: Damages) -> None:
    path = write(ID, record(0) + b"\n\xef\xbb\xbf" + record(1) + b"\n")
    assert len(lines(path)) == len(damages(path)) == 1


def test_empty(write: Callable[..., str]) -> None:
    assert list(read_lines(write(ID, b""))) == []


def test_both_shapes_in_one_file(write: Callable[..., str], lines: Lines) -> None:
    """P-RS-16."""
    records: list[Any] = [{"ordinal": n, "type": "x", "payload": {}} for n in range(10)]
    path = write(ID, [*records, {"type": "x", "payload": {}}, {"type": "of_the_future", "new": 1, "payload": {}}])
    assert [line.ordinal for line in lines(path)] == [*range(10), None, None]


def test_a_giant_line_of_ours_is_summarised(home: Home, new: Callable[..., str], lines: Lines) -> None:
    """P-RS-13."""
    path = new(2)
    with Rollout.open(home, path) as rollout:
        long = rollout.append("observation", {"turn": 1, "text": "x" * 5000})
        rollout.append("network", {})
    found = [line for line in read_lines(path, limit=2000) if isinstance(line, Line)]
    assert len(found) == 5
    assert found[3] == long._replace(payload={"omitted_bytes": long.length}, number=4, whole=False)
    assert found[4].whole


@pytest.mark.parametrize(
    "start",
    [b'{"timestamp":"t","type":"compacted","payload":{"m":"', b'{"timestamp":"t","ordinal":7,"type":"x","payload":{"'],
)
def test_a_giant_line_of_others(write: Callable[..., str], start: bytes) -> None:
    """P-RS-13: by its first bytes when they are those of a record, reported when not."""
    giant = start.replace(b'"t"', b'"2025-11-29T23:41:00.000Z"') + b"x" * 5000 + b'"}}'
    path = write(ID, b"\n".join([record(0), giant, b"y" * 5000, giant[:-1] + b"x", record(1)]))
    found = list(read_lines(path, limit=2000))
    assert [type(entry) for entry in found] == [Line, Line, Damage, Damage, Line]
    assert isinstance(found[1], Line)
    assert (found[1].whole, found[1].payload) == (False, {"omitted_bytes": len(giant)})
    assert isinstance(found[2], Damage)
    assert (found[2].kind, found[2].number) == (DamageKind.TOO_LONG, 3)


def test_giant_files_in_little_memory(
    home: Home, new: Callable[..., str], in_child: Callable[..., tuple[object, int]]
) -> None:
    """P-RS-13: a 64 MB line among 1000 small ones, 200 MB in all, read, resumed and listed with 300 MB."""
    path = new(0)
    with Rollout.open(home, path) as rollout:
        for index in range(1000):
            rollout.append("network", {"turn": 1, "index": index})
            if index in (100, 500):
                rollout.append("observation", {"turn": 1, "text": "x" * (64 << 20)})
        rollout.append("observation", {"turn": 1, "text": "x" * (64 << 20)})

    def reads() -> object:
        resource.setrlimit(resource.RLIMIT_AS, (300 << 20, resource.RLIM_INFINITY))
        from doorward.sessions.listing import list_sessions

        with Rollout.open(home, path) as again:
            again.append("network", {})
        counts = [0, 0]
        for line in read_lines(path):
            assert isinstance(line, Line)
            counts[line.whole] += 1
        return [*counts, len(list_sessions(home).sessions)]

    assert os.path.getsize(path) > 192 << 20
    assert in_child(reads) == ([3, 1002, 1], 0)


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1000])
def test_lines_across_reads(
    write: Callable[..., str], monkeypatch: pytest.MonkeyPatch, lines: Lines, damages: Damages, chunk: int
) -> None:
    monkeypatch.setattr(reading, "_CHUNK", chunk)
    content = b"\n".join([record(0), b"bad", b"", record(1), b'{"long":"' + b"x" * 300, record(2)])
    path = write(ID, content)
    found = list(read_lines(path, limit=200))
    assert [entry.payload["index"] for entry in found if isinstance(entry, Line)] == [0, 1, 2]
    assert [entry.number for entry in found] == [1, 2, 4, 5, 6]
    for entry in found:
        assert isinstance(entry.number, int)
        assert content[entry.offset : entry.offset + entry.length] == content.split(b"\n")[entry.number - 1]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.just(None), st.binary(max_size=30).filter(lambda data: b"\n" not in data)), max_size=12))
def test_good_lines_are_always_given(write: Callable[..., str], parts: list[bytes | None]) -> None:
    """Whatever stands between them."""
    path = write(ID, b"\n".join(record(at) if part is None else part for at, part in enumerate(parts)))
    got = [line.payload.get("index") for line in read_lines(path) if isinstance(line, Line)]
    assert [index for index in got if index is not None] == [at for at, part in enumerate(parts) if part is None]


def test_as_stored(write: Callable[..., str]) -> None:
    """Good lines byte for byte, damage between them."""
    odd = b'{ "type":"x",  "payload":{"u":"\xc3\xa9\\u00e9"} }'
    path = write(ID, b"\xef\xbb\xbf" + odd + b"\nbad\n" + record(1))
    first, damage, last = stored_bytes(path)
    assert (first, last) == (odd + b"\n", record(1))
    assert isinstance(damage, Damage)


def test_as_stored_in_pieces(write: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_CHUNK", 10)
    path = write(ID, record(0) + b"\n" + record(1) + b"\n")
    assert b"".join(piece for piece in stored_bytes(path) if isinstance(piece, bytes)) == Path(path).read_bytes()


def test_what_cannot_be_read(home: Home, write: Callable[..., str]) -> None:
    path = write(ID, record(0))
    os.symlink(path, path + ".link")
    os.mkfifo(path + ".fifo")
    for bad, sentence in {".link": "links are not read", ".fifo": "not a regular file", ".none": "is missing"}.items():
        with pytest.raises(StoreError, match=sentence):
            list(read_lines(path + bad))
    with pytest.raises(StoreError, match="not a regular file"):
        list(read_lines(os.path.dirname(path)))


def test_a_file_that_grows_meanwhile(home: Home, new: Callable[..., str]) -> None:
    """It is read up to where it ended at the start."""
    path = new(3)
    reader = read_lines(path)
    next(reader)
    with Rollout.open(home, path) as rollout:
        rollout.append("network", {})
    assert len(list(reader)) == 3

"""What a session is, from the two ends of its file."""

import json
import os
from collections.abc import Callable

import pytest

from doorward.sessions.folders import Found
from doorward.sessions.home import Home, StoreError
from doorward.sessions.listing import list_sessions
from doorward.sessions.rollout import Rollout
from doorward.sessions.summary import summarise

IDS = [f"019ad1d2-0000-7000-8000-00000000000{digit}" for digit in range(10)]


def meta(index: int, **more: object) -> bytes:
    time = f"2025-11-29T10:00:0{index}.000Z"
    payload = {"id": IDS[index], "timestamp": time, "cwd": "/w", "name": f"n{index}", **more}
    return json.dumps({"timestamp": "t", "type": "session_meta", "payload": payload}).encode()


def test_ends_are_enough(home: Home, new: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """P-RS-13: listing reads the two ends of a file, whatever lies between and however long the last record is."""
    path = new()
    with Rollout.open(home, path) as rollout:
        rollout.append("network", {"text": "x" * 3_000_000})
        rollout.append("refusal", {"turn": 4, "text": "x" * 3_000_000})
    read = 0
    pread = os.pread

    def counted(fd: int, length: int, offset: int) -> bytes:
        nonlocal read
        data = pread(fd, length, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counted)
    (session,) = list_sessions(home).sessions
    assert session.refused == 1
    assert read < 50_000


def test_a_long_first_record(home: Home, write: Callable[..., str]) -> None:
    write(IDS[0], meta(0, base_instructions={"text": "x" * 200_000}) + b"\n" + b'{"type":"x","payload":{}}\n')
    (session,) = list_sessions(home).sessions
    assert session.name == "n0"


def test_what_a_large_foreign_file_does_not_tell(
    home: Home, write: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turns of another program's file are only counted when it is small; unknown is not zero."""
    monkeypatch.setattr("doorward.sessions.summary.SEARCH_LIMIT", 1000)
    write(IDS[0], meta(0) + b"\n" + b'{"type":"x","payload":{"pad":"xxxxxxxxxxxxxxxxxxxxxx"}}\n' * 100)
    (session,) = list_sessions(home).sessions
    assert (session.turns, session.refused) == (None, None)
    assert session.to_json()["turns"] is None


def test_a_torn_first_line_does_not_hide_the_session(home: Home, write: Callable[..., str]) -> None:
    write(IDS[0], b'{"torn\n' + meta(0) + b"\n")
    (session,) = list_sessions(home).sessions
    assert (session.name, session.notes) == ("n0", ())


def test_times_when_the_file_tells_none(home: Home, write: Callable[..., str]) -> None:
    """The name's for the beginning, the file system's for the last change."""
    path = write(IDS[0], b"garbage\n")
    os.utime(path, ns=(0, 1_764_459_660_500_000_000))
    summary = summarise(Found(IDS[0], path, False))
    assert (summary.created_at, summary.updated_at) == ("2025-11-29T10:00:00.000Z", "2025-11-29T23:41:00.500Z")
    odd = f"{os.path.dirname(path)}/rollout-odd-{IDS[0]}.jsonl"
    os.rename(path, odd)
    assert summarise(Found(IDS[0], odd, False)).created_at == summary.updated_at


@pytest.mark.parametrize("value", [3, None, ["x"], {}])
def test_fields_of_another_shape(write: Callable[..., str], value: object) -> None:
    """P-RS-16."""
    path = write(IDS[0], meta(0, name=value, cwd=value, timestamp=value) + b"\n")
    summary = summarise(Found(IDS[0], path, False))
    assert (summary.name, summary.cwd, summary.notes) == (None, None, ())


def test_a_torn_end_falls_back_on_the_line_before(home: Home, new: Callable[..., str]) -> None:
    path = new()
    with Rollout.open(home, path) as rollout:
        rollout.append("refusal", {})
    with open(path, "ab") as file:
        file.write(b"{torn")
    (session,) = list_sessions(home).sessions
    assert session.refused == 1


def test_what_cannot_be_read(write: Callable[..., str]) -> None:
    with pytest.raises(StoreError, match="is empty"):
        summarise(Found(IDS[0], write(IDS[0], b""), False))
    with pytest.raises(StoreError, match="is missing"):
        summarise(Found(IDS[0], "/nowhere", False))

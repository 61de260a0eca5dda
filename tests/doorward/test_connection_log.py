"""The log of the door alone: whole lines, kept when they cannot be written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from doorward.connection_log import _MOST_WAITING, ConnectionLog, LogFailed, timestamp
from doorward.errors import UsageError


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ConnectionLog]:
    made = ConnectionLog(str(tmp_path / "log"))
    yield made
    made.close()


def test_a_line_a_record_with_its_time(log: ConnectionLog) -> None:
    log.write({"host": "caf\udce9.test", "n": 1}, 1_700_000_000.25)
    log.write({"host": "b"}, 1_700_000_000.9996)
    lines = Path(log.path).read_bytes().splitlines()
    assert [json.loads(line)["timestamp"] for line in lines] == ["2023-11-14T22:13:20.250Z", "2023-11-14T22:13:20.999Z"]
    assert lines[0].isascii()
    assert Path(log.path).stat().st_mode & 0o777 == 0o600


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("earlier\n")
    log = ConnectionLog(str(tmp_path / "log"))
    log.write({}, 0)
    log.close()
    assert (tmp_path / "log").read_text().startswith("earlier\n{")


def test_what_cannot_be_written_is_written_later_whole_and_in_order(
    log: ConnectionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the disk filled up in the middle of a line."""
    real, room = os.write, [15]

    def little(fd: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        sent = real(fd, data[: room[0]])
        room[0] -= sent
        return sent

    monkeypatch.setattr(os, "write", little)
    for name in "ab":
        with pytest.raises(LogFailed, match="No space left on device"):
            log.write({"host": name}, 0)
    with pytest.raises(LogFailed):
        log.flush()
    room[0] = 10_000
    log.write({"host": "c"}, 0)
    assert [json.loads(line)["host"] for line in Path(log.path).read_text().splitlines()] == ["a", "b", "c"]


def test_what_waits_is_bounded_and_the_rest_counted(log: ConnectionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for _ in range(_MOST_WAITING + 7):
        with pytest.raises(LogFailed):
            log.write({}, 0)
    assert log.lost == 7
    monkeypatch.undo()
    log.flush()
    assert len(Path(log.path).read_bytes().splitlines()) == _MOST_WAITING


def test_reopening_goes_on_in_a_new_file(log: ConnectionLog, tmp_path: Path) -> None:
    log.write({"host": "old"}, 0)
    os.rename(log.path, tmp_path / "old")
    log.write({"host": "still old"}, 0)
    log.reopen()
    log.write({"host": "new"}, 0)
    assert len((tmp_path / "old").read_text().splitlines()) == 2
    assert len(Path(log.path).read_text().splitlines()) == 1


def test_reopening_what_cannot_be_opened_stays_with_the_old(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = ConnectionLog(str(folder / "log"))
    folder.rename(tmp_path / "moved")
    with pytest.raises(LogFailed, match="No such file"):
        log.reopen()
    log.write({"host": "kept"}, 0)
    log.close()
    assert "kept" in (tmp_path / "moved" / "log").read_text()


def test_a_log_that_cannot_be_is_said_before_anything_starts(tmp_path: Path) -> None:
    for path in (str(tmp_path), str(tmp_path / "no" / "log")):
        with pytest.raises(UsageError, match="--log-json"):
            ConnectionLog(path)


def test_the_time_is_as_in_a_rollout() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"

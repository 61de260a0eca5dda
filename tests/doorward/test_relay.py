"""Streams on their way out: unchanged, recorded, never blocking, back-pressure kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doorward.relay import Inlet, Outlet


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    return reader, writer


def test_bytes_arrive_unchanged_and_are_recorded() -> None:
    seen: list[tuple[str, bytes]] = []
    command_reads, command_writes = _pipe()
    caller_reads, caller_writes = _pipe()
    inlet = Inlet("stdout", command_reads, Outlet(caller_writes), lambda name, data: seen.append((name, data)))
    os.write(command_writes, b"\x00\xff\r\nx")
    inlet.pump()
    assert os.read(caller_reads, 100) == b"\x00\xff\r\nx"
    assert seen == [("stdout", b"\x00\xff\r\nx")]
    os.close(command_writes)
    inlet.pump()
    assert not inlet.open
    os.close(caller_reads)
    os.close(caller_writes)


def test_a_reader_that_is_slow_makes_the_outlet_wait_and_loses_nothing() -> None:
    caller_reads, caller_writes = _pipe()
    outlet = Outlet(caller_writes)
    data = bytes(range(256)) * 2048
    outlet.write(data)
    assert outlet.waits == caller_writes
    received = b""
    while len(received) < len(data):
        received += os.read(caller_reads, 1 << 16)
        outlet.flush()
    assert received == data
    assert outlet.waits is None
    os.close(caller_reads)
    os.close(caller_writes)


def test_a_reader_that_left_closes_the_commands_stream() -> None:
    """`doorward run -- yes | head -1`: the command must get SIGPIPE, as without doorward."""
    command_reads, command_writes = _pipe()
    caller_reads, caller_writes = _pipe()
    os.close(caller_reads)
    inlet = Inlet("stdout", command_reads, Outlet(caller_writes), lambda name, data: None)
    os.write(command_writes, b"y\n")
    inlet.pump()
    assert not inlet.open
    os.close(command_writes)
    os.close(caller_writes)


def test_drain_takes_what_is_still_there(tmp_path: Path) -> None:
    seen = bytearray()
    command_reads, command_writes = _pipe()
    with (tmp_path / "out").open("wb") as out:
        inlet = Inlet("stderr", command_reads, Outlet(out.fileno()), lambda name, data: seen.extend(data))
        os.write(command_writes, b"a" * 5000)
        os.close(command_writes)
        inlet.drain()
    assert bytes(seen) == (tmp_path / "out").read_bytes() == b"a" * 5000
    assert not inlet.open


def test_a_file_outlet_writes_at_once(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        outlet = Outlet(out.fileno())
        outlet.write(b"x" * 200_000)
        assert outlet.waits is None
    assert (tmp_path / "out").stat().st_size == 200_000


@pytest.mark.parametrize(("started", "kept"), [(False, b""), (True, b"bwrap: no\n")])
def test_what_bubblewrap_says_instead_of_the_command_is_not_the_commands(started: bool, kept: bytes) -> None:
    seen = bytearray()
    command_reads, command_writes = _pipe()
    inlet = Inlet("stderr", command_reads, Outlet(None), lambda name, data: seen.extend(data))
    os.write(command_writes, b"bwrap: no\n")
    inlet.pump()
    assert not seen
    os.close(command_writes)
    inlet.drain(started=started)
    assert bytes(seen) == kept


def test_a_command_that_goes_on_loses_nothing_of_what_looked_like_bubblewraps() -> None:
    seen = bytearray()
    command_reads, command_writes = _pipe()
    inlet = Inlet("stderr", command_reads, Outlet(None), lambda name, data: seen.extend(data))
    for piece in (b"bwrap: one\n", b"two\n"):
        os.write(command_writes, piece)
        inlet.pump()
    assert bytes(seen) == b""
    os.write(command_writes, b"x" * 9000)
    inlet.pump()
    assert bytes(seen) == b"bwrap: one\ntwo\n" + b"x" * 9000
    os.close(command_writes)
    inlet.drain()

"""Recording output: whole while small, head, tail and a blob when large, memory bounded."""

import hashlib
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.sessions.blobs import blob_bytes
from doorward.sessions.home import Home, StoreError
from doorward.sessions.output import KEPT_EACH, WHOLE_LIMIT, Blob, OutputRecord, OutputRecorder, blob_path


def recorded(home: Home, *pieces: bytes) -> OutputRecord:
    recorder = OutputRecorder(home)
    for piece in pieces:
        recorder.feed("stdout", piece)
    return recorder.finish()


def test_small_output_stands_in_the_record(home: Home) -> None:
    recorder = OutputRecorder(home)
    recorder.feed("stdout", b"one\n")
    recorder.feed("stderr", b"two\n")
    recorder.feed("stdout", b"three\n")
    record = recorder.finish()
    assert record == OutputRecord("one\ntwo\nthree\n", "", 0, 10, 4, None)
    assert record.text == "one\ntwo\nthree\n"
    assert record.to_json() == {
        "head": "one\ntwo\nthree\n",
        "tail": "",
        "omitted": 0,
        "stdout": 10,
        "stderr": 4,
        "blob": None,
    }
    assert not os.path.exists(home.path)


def test_no_output(home: Home) -> None:
    assert OutputRecorder(home).finish() == OutputRecord("", "", 0, 0, 0, None)


def test_the_limit_is_exact(home: Home) -> None:
    assert recorded(home, b"x" * WHOLE_LIMIT).blob is None
    record = recorded(home, b"x" * WHOLE_LIMIT, b"y")
    assert record.blob is not None
    assert (record.omitted, record.tail[-2:], len(record.head), len(record.tail)) == (1, "xy", KEPT_EACH, KEPT_EACH)


def test_large_output_is_head_tail_and_a_blob(home: Home) -> None:
    lines = [b"line %d\n" % number for number in range(100_000)]
    whole = b"".join(lines)
    record = recorded(home, *(whole[at : at + 4096] for at in range(0, len(whole), 4096)))
    digest = hashlib.sha256(whole).hexdigest()
    assert record.blob == Blob(digest, len(whole), "zstd")
    assert whole.startswith(record.head.encode())
    assert whole.endswith(record.tail.encode())
    assert len(record.head) + record.omitted + len(record.tail) == len(whole)
    assert Path(blob_path(home, digest)).stat().st_size < len(whole) / 4
    assert b"".join(blob_bytes(home, record.to_json()["blob"])) == whole
    assert f"[… {record.omitted} bytes left out …]" in record.text


def test_equal_outputs_are_stored_once(home: Home) -> None:
    one, two = recorded(home, b"x" * 200_000), recorded(home, b"x" * 150_000, b"x" * 50_000)
    assert one.blob == two.blob
    files = [name for _, _, names in os.walk(home.blobs) for name in names]
    assert len(files) == 1


@settings(max_examples=30, deadline=None)
@given(
    st.one_of(st.binary(min_size=1, max_size=40), st.text(min_size=1, max_size=10).map(lambda text: text.encode())),
    st.integers(KEPT_EACH - 4, KEPT_EACH + 4),
    st.integers(1, 400),
    st.sampled_from([1 << 20, 60_000, 4096]),
)
def test_no_byte_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, middle: bytes, around: int, repeat: int, step: int
) -> None:
    """Whatever the bytes at the two cuts are: text and count of bytes agree with what was written."""
    home = Home(str(tmp_path_factory.mktemp("home") / "h"))
    whole = middle * (around // len(middle)) + b"x" * repeat * 300 + middle * (around // len(middle) + 1)
    record = recorded(home, *(whole[at : at + step] for at in range(0, len(whole), step)))
    head = record.head.encode("utf-8", "surrogateescape")
    tail = record.tail.encode("utf-8", "surrogateescape")
    assert len(head) + record.omitted + len(tail) == len(whole)
    assert record.omitted >= 0
    assert whole.startswith(head)
    assert whole.endswith(tail)


@pytest.mark.parametrize("lead", [b"", b"a", b"ab", b"abc", b"abcd", b"abcde"])
def test_a_character_is_not_cut_in_two(home: Home, lead: bytes) -> None:
    whole = lead + "é😀".encode() * 30_000
    record = recorded(home, whole)
    assert whole.startswith(record.head.encode())
    assert whole.endswith(record.tail.encode())
    assert record.omitted > 0


def test_bytes_that_are_not_utf8(home: Home) -> None:
    """P-TT-11: a bad byte is `\\udcXX`, and comes back."""
    record = recorded(home, b"a\xffb\xc3")
    assert record.head == "a\udcffb\udcc3"
    assert record.head.encode("utf-8", "surrogateescape") == b"a\xffb\xc3"
    assert json.loads(json.dumps(record.to_json()))["head"] == record.head


def test_memory_is_bounded(home: Home, in_child: Callable[..., tuple[object, int]]) -> None:
    """256 MB of output under a limit that could never hold them."""

    def feeds() -> object:
        recorder = OutputRecorder(home)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), resource.RLIM_INFINITY))
        piece = b"x" * 65536
        for _ in range(4096):
            recorder.feed("stdout", piece)
        return recorder.finish().omitted

    result, status = in_child(feeds)
    assert status == 0
    assert result == (256 << 20) - WHOLE_LIMIT


def test_a_full_disk_is_told_at_once_and_leaves_nothing(
    home: Home, in_child: Callable[..., tuple[object, int]]
) -> None:
    """P-RS-12: for blobs."""

    def full() -> object:
        recorder = OutputRecorder(home)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        try:
            for _ in range(4):
                recorder.feed("stdout", os.urandom(400_000))
        except StoreError as error:
            recorder.discard()
            return str(error)
        return None

    result, status = in_child(full)
    assert status == 0
    assert "bytes were taken" in str(result) or "File too large" in str(result)
    assert [name for _, _, names in os.walk(home.blobs) for name in names] == []


def test_a_kill_leaves_nothing(home: Home, in_child: Callable[..., tuple[object, int]]) -> None:
    def dies() -> object:
        recorder = OutputRecorder(home)
        recorder.feed("stdout", b"x" * 100_000)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    in_child(dies)
    assert [name for _, _, names in os.walk(home.path) for name in names] == []

"""With `replay.redact = "write"` a credential reaches neither record nor blob, however its bytes arrive."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.sessions.blobs import blob_bytes
from doorward.sessions.home import Home
from doorward.sessions.output import OutputRecorder
from doorward.sessions.redacting import HELD_LIMIT, Redacting

TOKEN = b"ghp_" + b"a1B2" * 9
BEGIN, END = b"-----BEGIN " + b"PRIVATE KEY-----", b"-----END " + b"PRIVATE KEY-----"
KEY = BEGIN + b"\n" + b"MIIEvQIBADANBgkq\n" * 20 + END + b"\n"


@settings(deadline=None)
@given(st.lists(st.integers(0, 600), max_size=12))
def test_however_it_is_cut(cuts: list[int]) -> None:
    text = b"a line\nthe token is " + TOKEN + b" here\n" + KEY + b"the end, no line"
    redacting = Redacting()
    kept, before = b"", 0
    for cut in (*sorted(cuts), len(text)):
        kept += redacting.feed("stdout", text[before:cut])
        before = max(before, cut)
    kept += b"".join(data for _, data in redacting.rest())
    assert TOKEN not in kept
    assert b"MIIEvQIBADANBgkq" not in kept
    assert kept.startswith(b"a line\nthe token is [redacted: GitHub token] here\n[redacted: private key]\n")
    assert kept.endswith(b"the end, no line")


def test_streams_do_not_mix_within_a_line() -> None:
    redacting = Redacting()
    assert redacting.feed("stdout", b"x " + TOKEN[:10]) == b""
    assert redacting.feed("stderr", b"warning\n") == b"warning\n"
    assert redacting.feed("stdout", TOKEN[10:] + b"\n") == b"x [redacted: GitHub token]\n"


def test_what_is_held_back_is_bounded() -> None:
    redacting = Redacting()
    assert len(redacting.feed("stdout", b"x" * (HELD_LIMIT + 1))) == HELD_LIMIT + 1
    assert redacting.feed("stdout", b"\xff\xfe\n") == b"\xff\xfe\n"


@pytest.mark.parametrize("size", [100, 400_000])
def test_nothing_of_it_is_on_the_disk(home: Home, size: int) -> None:
    recorder = OutputRecorder(home, redact=True)
    for _ in range(size // 50):
        recorder.feed("stdout", b"plain text\n")
    for byte in b"it is " + TOKEN + b"\n":
        recorder.feed("stdout", bytes((byte,)))
    record = recorder.finish()
    assert TOKEN.decode() not in record.text
    assert record.text.endswith("[redacted: GitHub token]\n")
    if record.blob is not None:
        whole = b"".join(blob_bytes(home, record.blob._asdict()))
        assert TOKEN not in whole
        assert len(whole) == record.stdout == record.blob.bytes
    for folder, _, names in os.walk(home.path):
        for name in names:
            assert TOKEN not in Path(folder, name).read_bytes()

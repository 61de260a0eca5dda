"""Reading the blobs of large outputs."""

import os
from pathlib import Path
from typing import Any

import pytest

from doorward.sessions.blobs import blob_bytes
from doorward.sessions.home import Home, StoreError
from doorward.sessions.output import OutputRecorder, blob_path
from doorward.sessions.zstd import compressor


def stored(home: Home, data: bytes) -> dict[str, Any]:
    recorder = OutputRecorder(home)
    recorder.feed("stdout", data)
    blob = recorder.finish().to_json()["blob"]
    assert isinstance(blob, dict)
    return blob


def test_what_was_stored_comes_back(home: Home) -> None:
    data = os.urandom(3_000_000)
    assert b"".join(blob_bytes(home, stored(home, data))) == data


def test_a_blob_of_an_old_record_is_plain(home: Home) -> None:
    data = b"x" * 100_000
    blob = {**stored(home, data), "encoding": "identity"}
    Path(blob_path(home, blob["sha256"], "identity")).write_bytes(data)
    assert b"".join(blob_bytes(home, blob)) == data


def test_a_changed_blob_is_not_passed_off(home: Home) -> None:
    blob = stored(home, b"x" * 100_000)
    path = blob_path(home, blob["sha256"])
    frame = compressor()
    whole = frame.compress(b"y" * 100_000) + frame.flush()
    for bytes_there, sentence in (
        (whole, "was changed"),
        (whole[:-5], "ends inside its zstd frame"),
        (b"y" * 100_000, "not readable as zstd"),
    ):
        Path(path).write_bytes(bytes_there)
        with pytest.raises(StoreError, match=sentence):
            list(blob_bytes(home, blob))
    os.unlink(path)
    with pytest.raises(StoreError, match="is missing"):
        list(blob_bytes(home, blob))


@pytest.mark.parametrize(
    ("blob", "sentence"),
    [
        ({"sha256": "../../etc/passwd", "encoding": "identity"}, "names no blob"),
        ({"encoding": "identity"}, "names no blob"),
        ({"sha256": "a" * 64, "encoding": "br"}, "encoded as br"),
    ],
)
def test_a_record_cannot_name_another_file(home: Home, blob: dict[str, str], sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence):
        list(blob_bytes(home, blob))

"""Sealed environments: only the holder of the private key reads them."""

import os
import stat
from pathlib import Path

import pytest

from doorward.sessions.sealing import SealError, check_public, new_key, opened, sealed

ENV = {"TOKEN": "s3cret", "BYTES": "\udcff", "EMPTY": ""}


def test_there_and_back(tmp_path: Path) -> None:
    path = str(tmp_path / "key")
    public = new_key(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    check_public(public)
    record = sealed(ENV, public)
    assert "s3cret" not in str(record)
    assert sealed(ENV, public) != record
    assert opened(record, Path(path).read_text()) == ENV


def test_another_key_does_not_open_it(tmp_path: Path) -> None:
    public = new_key(str(tmp_path / "one"))
    new_key(str(tmp_path / "two"))
    record = sealed(ENV, public)
    with pytest.raises(SealError, match="is sealed to the key"):
        opened(record, (tmp_path / "two").read_text())


def test_a_changed_box_does_not_open(tmp_path: Path) -> None:
    record = sealed(ENV, new_key(str(tmp_path / "key")))
    for box in (record["box"][:-8] + "AAAAAAA=", "not base64!", ""):
        with pytest.raises(SealError, match="was changed"):
            opened({**record, "box": box}, (tmp_path / "key").read_text())


@pytest.mark.parametrize("text", ["", "doorward-seal:", "doorward-seal:AAAA", "doorward-seal:*", "age1xyz"])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(SealError, match="seal-key"):
        check_public(text)


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("mine")
    with pytest.raises(SealError, match="cannot make"):
        new_key(str(tmp_path / "key"))
    assert (tmp_path / "key").read_text() == "mine"

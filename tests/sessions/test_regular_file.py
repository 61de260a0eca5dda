"""Only regular files are opened."""

import os
import socket
from pathlib import Path

import pytest

from doorward.sessions.home import StoreError
from doorward.sessions.regular_file import open_regular


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    descriptor = open_regular(str(tmp_path / "file"))
    assert os.read(descriptor, 9) == b"x"
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def test_everything_else(tmp_path: Path) -> None:
    """A FIFO does not hold the caller up."""
    (tmp_path / "target").write_text("x")
    os.symlink("target", tmp_path / "link")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
    for name, sentence in {
        "link": "is a link, and links are not read",
        "fifo": "is not a regular file",
        ".": "is not a regular file",
        "none": "is missing",
        "socket": "cannot open",
        "target/x": "Not a directory",
    }.items():
        with pytest.raises(StoreError, match=sentence):
            open_regular(str(tmp_path / name))
    with pytest.raises(StoreError, match="is not a regular file"):
        open_regular("/dev/null")

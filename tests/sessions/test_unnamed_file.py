"""A file without a name until it is whole."""

import errno
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.sessions import unnamed_file
from doorward.sessions.home import StoreError
from doorward.sessions.unnamed_file import UnnamedFile


@pytest.fixture(params=["O_TMPFILE", "refused", "missing"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With O_TMPFILE, on a file system that refuses it, and on a system that has none."""
    if request.param == "missing":
        monkeypatch.setattr(unnamed_file, "_O_TMPFILE", None)
    elif request.param == "refused":
        real = os.open

        def refusing(path: str, flags: int, mode: int = 0o777) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "Operation not supported")
            return real(path, flags, mode)

        monkeypatch.setattr(os, "open", refusing)
    return str(request.param)


def test_it_appears_whole(tmp_path: Path, way: str) -> None:
    file = UnnamedFile(str(tmp_path))
    file.write(b"one")
    file.write(bytearray(b"two"))
    assert not (tmp_path / "name").exists()
    assert file.publish(str(tmp_path / "name"))
    assert (tmp_path / "name").read_bytes() == b"onetwo"
    assert stat.S_IMODE((tmp_path / "name").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["name"]


def test_what_has_the_name_keeps_it(tmp_path: Path, way: str) -> None:
    (tmp_path / "name").write_text("first")
    file = UnnamedFile(str(tmp_path))
    file.write(b"second")
    assert not file.publish(str(tmp_path / "name"))
    assert (tmp_path / "name").read_text() == "first"
    assert os.listdir(tmp_path) == ["name"]


def test_discarded_is_gone(tmp_path: Path, way: str) -> None:
    file = UnnamedFile(str(tmp_path))
    file.write(b"x")
    file.discard()
    file.discard()
    assert os.listdir(tmp_path) == []


def test_nothing_is_left_by_a_kill(tmp_path: Path, in_child: Callable[..., tuple[object, int]]) -> None:
    def dies() -> object:
        UnnamedFile(str(tmp_path)).write(b"x")
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    _, status = in_child(dies)
    assert os.WIFSIGNALED(status)
    assert os.listdir(tmp_path) == []


def test_a_short_write_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = UnnamedFile(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: 1)
        with pytest.raises(StoreError, match="only 1 of 3"):
            file.write(b"xyz")
    file.discard()


def test_the_folder_is_made(tmp_path: Path) -> None:
    UnnamedFile(str(tmp_path / "new")).discard()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_name_that_cannot_be_given(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot name"):
        UnnamedFile(str(tmp_path)).publish(str(tmp_path / "no" / "name"))

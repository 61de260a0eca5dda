"""Who holds a rollout's lock, read from /proc/locks."""

import fcntl
import os
from pathlib import Path

import pytest

from doorward.sessions import lock


def status(device: int, inode: int) -> os.stat_result:
    return os.stat_result((0o100600, inode, device, 1, 0, 0, 0, 0, 0, 0))


TABLE = """\
1: POSIX  ADVISORY  WRITE 11 fe:00:5678 0 EOF
2: FLOCK  ADVISORY  READ  12 fe:00:5678 0 EOF
3: FLOCK  ADVISORY  WRITE 13 fe:00:56789 0 EOF
3: -> FLOCK  ADVISORY  WRITE 14 fe:00:5678 0 EOF
4: FLOCK  ADVISORY  WRITE 15 00:1f:5678 0 EOF
5: FLOCK  ADVISORY  WRITE 16 fe:00:5678 0 EOF
6: OFDLCK ADVISORY  WRITE -1 fe:00:5678 0 EOF
"""


def test_the_holder_is_the_one_on_the_same_device() -> None:
    assert lock.holder_in(TABLE.splitlines(), status(os.makedev(0xFE, 0), 5678)) == 16


def test_a_device_that_stat_shows_otherwise() -> None:
    """btrfs and overlayfs: the number alone has to do."""
    rows = ["4: FLOCK  ADVISORY  WRITE 15 00:1f:5678 0 EOF"]
    assert lock.holder_in(rows, status(os.makedev(9, 9), 5678)) == 15


def test_nobody() -> None:
    assert lock.holder_in(TABLE.splitlines(), status(os.makedev(0xFE, 0), 1)) is None
    rows = ["4: FLOCK  ADVISORY  WRITE 0 fe:00:5678 0 EOF", "nonsense", ""]
    assert lock.holder_in(rows, status(os.makedev(0xFE, 0), 5678)) is None


def test_a_lock_of_ours(tmp_path: Path) -> None:
    with open(tmp_path / "file", "w") as one, open(tmp_path / "file") as two:
        assert lock.holder(os.fstat(one.fileno())) is None
        assert lock.take(one.fileno())
        assert not lock.take(two.fileno())
        assert lock.holder(os.fstat(two.fileno())) == os.getpid()
        lock.release(one.fileno())
        assert lock.take(two.fileno())


def test_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = open

    def missing(path: str, *rest: object, **options: object) -> object:
        if path == "/proc/locks":
            raise FileNotFoundError(path)
        return real(path, *rest, **options)  # type: ignore[call-overload]

    with open(tmp_path / "file", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        monkeypatch.setattr("builtins.open", missing)
        assert lock.holder(os.fstat(file.fileno())) is None

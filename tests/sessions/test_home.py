"""The home folder: where it is, and that it is private."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from doorward.sessions.environment import fingerprint_key
from doorward.sessions.home import Home, StoreError, default_home
from doorward.sessions.output import OutputRecorder
from doorward.sessions.rollout import Rollout


@pytest.fixture(params=[0o000, 0o022, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    try:
        yield request.param
    finally:
        os.umask(before)


def modes(root: str) -> set[tuple[str, int]]:
    found = {("folder", stat.S_IMODE(os.stat(root).st_mode))}
    for folder, folders, files in os.walk(root):
        found |= {("folder", stat.S_IMODE(os.stat(f"{folder}/{name}").st_mode)) for name in folders}
        found |= {("file", stat.S_IMODE(os.stat(f"{folder}/{name}").st_mode)) for name in files}
    return found


def test_everything_is_private_whatever_the_umask(home: Home, umask: int) -> None:
    with Rollout.create(home, cwd="/work"):
        pass
    fingerprint_key(home)
    recorder = OutputRecorder(home)
    recorder.feed("stdout", b"x" * 100_000)
    recorder.finish()
    assert modes(home.path) == {("folder", 0o700), ("file", 0o600)}


def test_what_others_could_read_is_narrowed(home: Home, new: Callable[..., str]) -> None:
    path = new()
    os.chmod(home.path, 0o755)
    os.chmod(home.sessions, 0o750)
    os.chmod(path, 0o644)
    Rollout.open(home, path).close()
    home.ensure()
    assert stat.S_IMODE(os.stat(home.path).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(home.sessions).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_file_in_the_way_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match="is not a directory"):
        Home(str(tmp_path / "home")).ensure()


def test_missing_parents_are_made(tmp_path: Path) -> None:
    Home(str(tmp_path / "a" / "b" / "home")).ensure()
    assert (tmp_path / "a" / "b" / "home" / "sessions").is_dir()


def test_where_the_home_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_home({"DOORWARD_HOME": "/x/y"}) == "/x/y"
    assert default_home({"DOORWARD_HOME": "rel"}) == str(tmp_path / "rel")
    assert default_home({"HOME": "/home/me", "DOORWARD_HOME": ""}) == "/home/me/.doorward"
    assert default_home({}).endswith("/.doorward")
    assert os.path.isabs(default_home({"HOME": "not/absolute"}))

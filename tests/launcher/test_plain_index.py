"""Remembering that a large index names no submodule."""

import os
import time

import pytest

from doorward.launcher import git_directories, plain_index
from doorward.launcher.git_directories import index_stamp, may_name_submodules


@pytest.fixture
def git(tmp_path, monkeypatch):
    """A git directory whose index counts as large and as one that changed long ago."""
    path = tmp_path / ".git"
    path.mkdir()
    (path / "index").write_bytes(b"DIRC" + b"\0\0\x81\xa4" * 100)
    monkeypatch.setattr(git_directories, "_LARGE", 10)
    monkeypatch.setattr(plain_index, "_SETTLED_NS", -(10**15))
    return path


@pytest.fixture
def reads(monkeypatch):
    read, real = [], git_directories._read_bytes
    monkeypatch.setattr(git_directories, "_read_bytes", lambda *given: read.append(given[0]) or real(*given))
    return read


def ask(git):
    return may_name_submodules(str(git), index_stamp(str(git)), str(git.parent / "cache"))


def test_it_is_read_once(git, reads):
    assert [ask(git), ask(git), ask(git)] == [False] * 3
    assert reads == [f"{git}/index"]


def test_a_changed_index_is_read_again(git, reads):
    assert not ask(git)
    before = os.stat(git / "index").st_ctime_ns
    deadline = time.monotonic() + 30
    while os.stat(git / "index").st_ctime_ns == before:
        assert time.monotonic() < deadline
        (git / "index").write_bytes(b"DIRC" + b"\0\0\xe0\0" * 100)
    assert ask(git)
    assert ask(git)
    assert len(reads) == 3


def test_one_that_changed_just_now_is_read_each_time(git, reads, monkeypatch):
    monkeypatch.setattr(plain_index, "_SETTLED_NS", 10**15)
    assert [ask(git), ask(git)] == [False, False]
    assert len(reads) == 2


def test_a_split_index_is_never_taken_for_plain(git):
    (git / "sharedindex.1").write_bytes(b"")
    assert index_stamp(str(git)) == ""
    assert ask(git)


def test_a_memory_that_cannot_be_kept_changes_nothing(git, reads):
    (git.parent / "cache").write_text("")
    assert [ask(git), ask(git)] == [False, False]
    assert len(reads) == 2


def test_without_an_index_there_is_none(git):
    (git / "index").unlink()
    assert not ask(git)

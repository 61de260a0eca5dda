"""Putting names back, on real directories, without a sandbox."""

import errno
import os
from pathlib import Path

import pytest

from doorward.launcher.interface import Undone
from doorward.launcher.removal import remove
from doorward.launcher.undo import Keeper
from doorward.launcher.watch import Watch


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "w"
    path.mkdir()
    return path


@pytest.fixture
def keep(root):
    keepers = []

    def make(*watches):
        keepers.append(Keeper(watches))
        return keepers[-1]

    yield make
    for keeper in keepers:
        keeper.close()


def test_nothing_to_do_is_nothing_done(root, keep):
    keeper = keep(Watch("absent", str(root), ".codex"), Watch("repository", str(root), ".git"))
    keeper.put_back(final=True)
    assert keeper.report == ()


@pytest.mark.parametrize("make", ["file", "directory", "link", "dangling", "fifo"])
def test_what_was_absent_is_removed_whatever_it_is(root, keep, make):
    keeper = keep(Watch("absent", str(root), ".codex"))
    path = root / ".codex"
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("")
    {
        "file": lambda: path.write_text("x"),
        "directory": lambda: (path / "a/b").mkdir(parents=True),
        "link": lambda: path.symlink_to("elsewhere"),
        "dangling": lambda: path.symlink_to("nowhere"),
        "fifo": lambda: os.mkfifo(path),
    }[make]()
    keeper.put_back(final=False)
    assert not os.path.lexists(path)
    assert (elsewhere / "kept").exists()
    assert keeper.report == (Undone(str(path), "removed"),)


def test_a_link_deep_in_a_tree_is_removed_and_not_followed(root, keep, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").write_text("")
    keeper = keep(Watch("absent", str(root), ".codex"))
    (root / ".codex/a").mkdir(parents=True)
    (root / ".codex/a/link").symlink_to(tmp_path / "outside")
    keeper.put_back(final=True)
    assert (tmp_path / "outside/kept").exists()
    assert os.listdir(root) == []


def test_an_absent_path_below_directories_made_later(root, keep):
    """P-FS-04."""
    keeper = keep(Watch("absent", str(root), "a/b/c"))
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/c").write_text("x")
    (root / "a/b/d").write_text("x")
    keeper.put_back(final=True)
    assert os.listdir(root / "a/b") == ["d"]


def test_a_parent_that_became_a_link_leads_nowhere(root, keep, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/c").write_text("kept")
    keeper = keep(Watch("absent", str(root), "a/c"))
    (root / "a").symlink_to(tmp_path / "outside")
    keeper.put_back(final=True)
    assert (tmp_path / "outside/c").exists()


def test_the_directory_is_the_one_opened_at_the_start(root, keep, tmp_path):
    keeper = keep(Watch("absent", str(root), ".codex"))
    root.rename(tmp_path / "moved")
    root.mkdir()
    (root / ".codex").write_text("another directory's")
    (tmp_path / "moved/.codex").write_text("x")
    keeper.put_back(final=True)
    assert (root / ".codex").exists()
    assert not (tmp_path / "moved/.codex").exists()


@pytest.mark.parametrize("change", ["removed", "file", "other"])
def test_a_link_is_made_again(root, keep, change):
    path = root / ".bashrc"
    path.symlink_to("kept")
    keeper = keep(Watch("link", str(root), ".bashrc", "kept"))
    keeper.put_back(final=False)
    assert keeper.report == ()
    path.unlink()
    if change == "file":
        path.write_text("theirs")
    elif change == "other":
        path.symlink_to("theirs")
    keeper.put_back(final=False)
    assert os.readlink(path) == "kept"
    assert keeper.report == (Undone(str(path), "link restored"),)


def new_repository(root):
    git = root / ".git"
    (git / "hooks").mkdir(parents=True)
    (git / "config").write_text("[core]\n\tbare = false\n\tfsmonitor = evil\n")
    (git / "hooks/pre-commit").write_text("evil")
    (git / "hooks/pre-commit.sample").write_text("")
    (git / "commondir").write_text("../evil")
    return git


def test_a_new_repository_is_sifted_at_the_end_and_not_before(root, keep):
    """P-FS-13."""
    keeper = keep(Watch("repository", str(root), ".git"))
    git = new_repository(root)
    keeper.put_back(final=False)
    assert keeper.report == ()
    keeper.put_back(final=True)
    assert (git / "config").read_text() == "[core]\n\tbare = false\n"
    assert os.listdir(git / "hooks") == ["pre-commit.sample"]
    assert not (git / "commondir").exists()
    assert {(undone.path, undone.what) for undone in keeper.report} == {
        (f"{git}/config", "settings removed"),
        (f"{git}/hooks/pre-commit", "removed"),
        (f"{git}/commondir", "removed"),
    }


def test_settings_are_written_anew_and_not_into_a_second_name(root, keep):
    """A hard link made inside must not carry the change to another file."""
    keeper = keep(Watch("repository", str(root), ".git"))
    git = new_repository(root)
    other = root / "other"
    os.link(git / "config", other)
    keeper.put_back(final=True)
    assert "fsmonitor" in other.read_text()


@pytest.mark.parametrize("form", ["link", "directory", "huge"])
def test_settings_that_are_no_small_file_are_removed(root, keep, form):
    keeper = keep(Watch("repository", str(root), ".git"))
    git = new_repository(root)
    (git / "config").unlink()
    if form == "link":
        (git / "config").symlink_to("/etc/passwd")
    elif form == "directory":
        (git / "config").mkdir()
    else:
        (git / "config").write_text("#" * (2 << 20))
    keeper.put_back(final=True)
    assert not os.path.lexists(git / "config")


@pytest.mark.parametrize("form", ["file", "link"])
def test_a_new_git_that_points_elsewhere_is_removed(root, keep, form):
    keeper = keep(Watch("repository", str(root), ".git"))
    if form == "file":
        (root / ".git").write_text("gitdir: /evil")
    else:
        (root / ".git").symlink_to("/evil")
    keeper.put_back(final=True)
    assert not os.path.lexists(root / ".git")


def test_hooks_that_are_a_link_are_removed(root, keep):
    keeper = keep(Watch("repository", str(root), ".git"))
    git = root / ".git"
    git.mkdir()
    (git / "hooks").symlink_to("../elsewhere")
    keeper.put_back(final=True)
    assert os.listdir(git) == []


def test_a_locked_tree_is_opened(root):
    path = root / "x"
    (path / "a").mkdir(parents=True)
    (path / "a/f").write_text("")
    (path / "a").chmod(0)
    path.chmod(0o500)
    handle = os.open(root, os.O_RDONLY)
    try:
        remove(handle, "x")
    finally:
        os.close(handle)
    assert os.listdir(root) == []


def test_a_tree_deeper_than_descriptors_go(root):
    handle = os.open(root, os.O_RDONLY)
    try:
        at = os.dup(handle)
        for _ in range(700):
            os.mkdir("d", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
        remove(handle, "d")
    finally:
        os.close(handle)
    assert os.listdir(root) == []


def test_a_large_tree_waits_for_the_end(root, keep):
    keeper = keep(Watch("absent", str(root), ".codex"))
    path = root / ".codex"
    path.mkdir()
    for number in range(2500):
        (path / str(number)).touch()
    keeper.put_back(final=False)
    assert path.exists()
    keeper.put_back(final=True)
    assert not path.exists()
    assert keeper.report == (Undone(str(path), "removed"),)


def test_what_cannot_be_undone_is_said(root, keep, monkeypatch):
    keeper = keep(Watch("absent", str(root), ".codex"))
    (root / ".codex").write_text("x")

    def refuse(*_args, **_named):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "unlink", refuse)
    keeper.put_back(final=True)
    assert keeper.report == (Undone(str(root / ".codex"), "could not be undone", "Read-only file system"),)


def test_a_root_that_is_gone_is_passed_over(tmp_path, keep):
    keeper = keep(Watch("absent", str(tmp_path / "gone"), "x"))
    keeper.put_back(final=True)
    assert keeper.report == ()
    assert keeper.directories == []


def test_paths_below_the_root_directory_are_spelled_once(keep):
    keeper = keep(Watch("absent", "/", Path(__file__).parts[1] + "/no-such-name"))
    keeper.put_back(final=False)
    assert keeper.report == ()

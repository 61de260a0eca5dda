"""The empty file and the empty directory that hide others."""

import os
import stat

import pytest

from doorward.launcher import masks
from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.masks import keep_masks


def check(kept):
    found = os.lstat(kept.file)
    assert stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0 and found.st_size == 0
    assert stat.S_IMODE(os.lstat(kept.directory).st_mode) == 0o555
    assert os.listdir(kept.directory) == []


def test_they_are_made_and_kept(tmp_path):
    first = keep_masks(str(tmp_path / "cache"))
    check(first)
    inode = os.stat(first.file).st_ino
    assert keep_masks(str(tmp_path / "cache")) == first
    assert os.stat(first.file).st_ino == inode


def test_one_that_was_made_meanwhile_stays(tmp_path, monkeypatch):
    """Another start may have mounted it already, and what is renamed over it would take that mount away."""
    first = keep_masks(str(tmp_path))
    inode = os.stat(first.file).st_ino
    seen = [False]  # as it was before the other one made it
    look = masks._is_mask_file
    monkeypatch.setattr(masks, "_is_mask_file", lambda path: seen.pop() if seen else look(path))
    assert keep_masks(str(tmp_path)) == first
    assert os.stat(first.file).st_ino == inode
    assert sorted(os.listdir(tmp_path)) == ["hidden-directory", "hidden-file"]


def test_a_file_system_without_links_will_do(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "Operation not permitted")))
    check(keep_masks(str(tmp_path)))
    assert sorted(os.listdir(tmp_path)) == ["hidden-directory", "hidden-file"]


@pytest.mark.parametrize("damage", ["content", "mode", "link", "directory mode"])
def test_what_is_not_as_it_should_be_is_made_again(tmp_path, damage):
    kept = keep_masks(str(tmp_path))
    if damage == "content":
        os.chmod(kept.file, 0o600)
        with open(kept.file, "w") as file:
            file.write("x")
        os.chmod(kept.file, 0)
    elif damage == "mode":
        os.chmod(kept.file, 0o644)
    elif damage == "link":
        os.unlink(kept.file)
        os.symlink("/etc/passwd", kept.file)
    else:
        os.chmod(kept.directory, 0o755)
    check(keep_masks(str(tmp_path)))


def test_a_directory_with_something_in_it_cannot_hide(tmp_path):
    kept = keep_masks(str(tmp_path))
    os.chmod(kept.directory, 0o755)
    (tmp_path / "hidden-directory/x").write_text("")
    with pytest.raises(SandboxUnavailable, match="something is in it"):
        keep_masks(str(tmp_path))


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SandboxUnavailable, match="cannot be made"):
        keep_masks(str(tmp_path / "file"))

"""The empty file and the empty directory that hide others."""

import os
import stat

import pytest

from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.masks import keep_masks


def check(masks):
    found = os.lstat(masks.file)
    assert stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0 and found.st_size == 0
    assert stat.S_IMODE(os.lstat(masks.directory).st_mode) == 0o555
    assert os.listdir(masks.directory) == []


def test_they_are_made_and_kept(tmp_path):
    first = keep_masks(str(tmp_path / "cache"))
    check(first)
    inode = os.stat(first.file).st_ino
    assert keep_masks(str(tmp_path / "cache")) == first
    assert os.stat(first.file).st_ino == inode


@pytest.mark.parametrize("damage", ["content", "mode", "link", "directory mode"])
def test_what_is_not_as_it_should_be_is_made_again(tmp_path, damage):
    masks = keep_masks(str(tmp_path))
    if damage == "content":
        os.chmod(masks.file, 0o600)
        with open(masks.file, "w") as file:
            file.write("x")
        os.chmod(masks.file, 0)
    elif damage == "mode":
        os.chmod(masks.file, 0o644)
    elif damage == "link":
        os.unlink(masks.file)
        os.symlink("/etc/passwd", masks.file)
    else:
        os.chmod(masks.directory, 0o755)
    check(keep_masks(str(tmp_path)))


def test_a_directory_with_something_in_it_cannot_hide(tmp_path):
    masks = keep_masks(str(tmp_path))
    os.chmod(masks.directory, 0o755)
    (tmp_path / "hidden-directory/x").write_text("")
    with pytest.raises(SandboxUnavailable, match="something is in it"):
        keep_masks(str(tmp_path))


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SandboxUnavailable, match="cannot be made"):
        keep_masks(str(tmp_path / "file"))

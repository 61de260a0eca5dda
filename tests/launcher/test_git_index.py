"""Finding submodules in a git index, in each of its versions."""

import os
import shutil
import subprocess

import pytest

from doorward.launcher.git_index import gitlinks, read_gitlinks

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git to write an index")
NAMES = ["a", "deep/er/sub", "sub one", "sub two", "zz" * 2000]


def git(folder, *arguments, input=""):
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True, timeout=30, input=input
    )
    return done.stdout.strip()


@pytest.fixture(params=["sha1", "sha256"])
def repository(request, tmp_path):
    """A repository with plain files around its submodules."""
    git(tmp_path, "init", "-q", f"--object-format={request.param}")
    digits = 40 if request.param == "sha1" else 64
    (tmp_path / "file").write_text("x")
    blob = git(tmp_path, "hash-object", "-w", "file")
    lines = [f"100644 {blob}\tf{number}/{'n' * (number % 9)}x" for number in range(50)]
    lines += [f"160000 {'1' * digits}\t{name}" for name in NAMES]
    git(tmp_path, "update-index", "--index-info", input="\n".join(lines))
    return tmp_path


def read(folder):
    directory = os.open(folder / ".git", os.O_RDONLY)
    try:
        return sorted(gitlinks(directory))
    finally:
        os.close(directory)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version_is_read(repository, version):
    folder = repository
    git(folder, "update-index", f"--index-version={version}")
    if version == 3:
        # the version with more flags, which this sets
        git(folder, "update-index", "--skip-worktree", "f1/nx", "sub one")
    assert read(folder) == sorted(NAMES)


def test_a_split_index_hides_nothing(repository):
    folder = repository
    git(folder, "update-index", "--split-index")
    assert read(folder) == sorted(NAMES)


def test_most_repositories_have_none(tmp_path):
    git(tmp_path, "init", "-q")
    assert read(tmp_path) == []
    (tmp_path / "f").write_text("x")
    git(tmp_path, "add", "f")
    assert read(tmp_path) == []


@pytest.mark.parametrize("data", [b"", b"DIRC", b"DIRC" + b"\0\0\0\x02" + b"\xff" * 4 + b"\0\0\xe0\0" * 9, b"junk"])
def test_what_is_no_index_has_none(data):
    assert read_gitlinks(data) in ([], [""])


def test_a_link_is_followed_and_what_blocks_is_not_read(repository):
    folder = repository
    os.rename(folder / ".git/index", folder / "elsewhere")
    (folder / ".git/index").symlink_to(folder / "elsewhere")
    assert read(folder) == sorted(NAMES)
    os.unlink(folder / ".git/index")
    os.mkfifo(folder / ".git/index")
    assert read(folder) == []

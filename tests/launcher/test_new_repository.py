"""Making repositories harmless that were made in a run, with the submodules they name."""

import os

import pytest

from doorward.launcher.git_directories import index_stamp
from doorward.launcher.new_repository import is_repository
from doorward.launcher.undo import Keeper
from doorward.launcher.watch import Watch

EVIL = "[core]\n\tbare = false\n\tfsmonitor = evil\n"


def repository(path, config=EVIL):
    for name in ("objects", "refs", "hooks"):
        (path / name).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    (path / "config").write_text(config)
    (path / "hooks/post-checkout").write_text("evil")
    return path


def index(git, *names):
    """An index that names submodules, gitformat-index(5)."""
    data = b"DIRC" + (2).to_bytes(4, "big") + len(names).to_bytes(4, "big")
    for name in names:
        entry = bytes(24) + (0xE000).to_bytes(4, "big") + bytes(12 + 20) + len(name).to_bytes(2, "big") + name.encode()
        data += entry + bytes(8 - len(entry) % 8)
    (git / "index").write_bytes(data)


def end(*watches):
    keeper = Keeper(watches)
    keeper.put_back(final=True)
    keeper.close()
    return {(undone.path, undone.what) for undone in keeper.report}


def harmless(git):
    return "evil" not in (git / "config").read_text() and os.listdir(git / "hooks") == []


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "w"
    path.mkdir()
    return path


@pytest.fixture
def held(root):
    """A repository from before the run with one submodule from before it, and its watch."""
    git = repository(root / ".git")
    (root / "known").mkdir()
    repository(root / "known/.git")
    index(git, "known", "sub")
    return Watch("submodules", str(root), ".git", f"{git}\0\0known")


def test_a_new_submodule_is_sifted_and_a_known_one_is_not(root, held):
    (root / "sub").mkdir()
    inner = repository(root / "sub/.git")
    assert end(held) == {(f"{inner}/config", "settings removed"), (f"{inner}/hooks/post-checkout", "removed")}
    assert harmless(inner)
    assert (root / "known/.git/config").read_text() == EVIL
    assert (root / ".git/config").read_text() == EVIL


def test_submodules_of_new_submodules_are_sifted(root, held):
    (root / "sub/in/ner").mkdir(parents=True)
    index(repository(root / "sub/.git"), "in/ner")
    assert end(held)
    inner = repository(root / "sub/in/ner/.git")
    assert end(held)
    assert harmless(inner)


def test_a_submodule_among_the_modules_keeps_its_work_tree_and_nothing_else(root, held):
    """What `git submodule add` makes."""
    (root / "sub").mkdir()
    (root / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    inner = repository(root / ".git/modules/sub", EVIL + "\tworktree = ../../../sub\n")
    end(held)
    assert harmless(inner)
    assert "worktree = ../../../sub" in (inner / "config").read_text()
    (inner / "config").write_text("[core]\n\tworktree = ../../../../home\n")
    end(held)
    assert "worktree" not in (inner / "config").read_text()


@pytest.mark.parametrize(
    "text", ["gitdir: ../elsewhere\n", "gitdir: ../.git\n", "gitdir: ../.git/modules/../../elsewhere", "x", "", "link"]
)
def test_a_submodule_that_is_somewhere_else_is_none(root, held, text):
    (root / "sub").mkdir()
    elsewhere = repository(root / "elsewhere")
    if text == "link":
        (root / "sub/.git").symlink_to("../elsewhere")
    else:
        (root / "sub/.git").write_text(text)
    assert end(held) == {(f"{root}/sub/.git", "removed")}
    assert (elsewhere / "config").read_text() == EVIL


def test_modules_behind_a_link_are_none(root, held):
    (root / "sub").mkdir()
    victim = repository(root / "victim")
    (root / ".git/modules").mkdir()
    (root / ".git/modules/sub").symlink_to(victim)
    (root / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    end(held)
    assert not os.path.lexists(root / "sub/.git")
    assert (victim / "config").read_text() == EVIL


def test_a_submodule_behind_a_link_is_left_alone_as_git_leaves_it(root, held):
    victim = repository(root / "victim/.git")
    (root / "sub").symlink_to("victim")
    assert end(held) == set()
    assert (victim / "config").read_text() == EVIL


def test_a_new_repository_is_sifted_with_its_submodules(root):
    git = repository(root / ".git")
    (root / "sub").mkdir()
    inner = repository(root / "sub/.git")
    index(git, "sub", "../outside", "sub/../sub")
    end(Watch("repository", str(root), ".git"))
    assert harmless(git)
    assert harmless(inner)


def test_a_folder_that_became_a_repository_itself_is_sifted(root):
    """git finds it when somebody works in that folder."""
    repository(root)
    end(Watch("repository", str(root), ".git"))
    assert harmless(root)


def test_a_folder_with_a_configuration_of_its_own_does_not_become_a_repository(root):
    """P-FS-14."""
    repository(root)
    assert end(Watch("repository", str(root), ".git", "config")) == {(f"{root}/HEAD", "removed")}
    assert (root / "config").read_text() == EVIL


@pytest.mark.parametrize("missing", ["HEAD", "refs", "objects"])
def test_a_project_that_only_looks_a_little_like_a_repository_is_left_alone(root, missing):
    """P-FS-14."""
    repository(root)
    os.rename(root / missing, root / "gone")
    assert end(Watch("repository", str(root), ".git", "config")) == set()


@pytest.mark.parametrize(
    ("head", "expected"), [("ref: refs/heads/x", True), ("a" * 40, True), ("text", False), ("link", True)]
)
def test_what_git_takes_for_a_repository(root, head, expected):
    repository(root)
    if head == "link":
        (root / "HEAD").unlink()
        (root / "HEAD").symlink_to("refs/heads/x")
    else:
        (root / "HEAD").write_text(head)
    (root / "objects").rmdir()
    handle = os.open(root, os.O_RDONLY)
    try:
        assert not is_repository(handle)
        (root / "commondir").write_text("x")
        assert is_repository(handle) is expected
    finally:
        os.close(handle)


@pytest.mark.parametrize("granted", ["sub/.git", "sub/.git/config", "sub/.git/hooks/post-checkout"])
def test_what_is_granted_by_name_stays(root, held, granted):
    (root / "sub").mkdir()
    inner = repository(root / "sub/.git")
    done = end(held._replace(granted=(str(root / granted),)))
    if granted in ("sub/.git", "sub/.git/config"):
        assert "evil" in (inner / "config").read_text()
    if granted == "sub/.git":
        assert done == set()
    if granted.endswith("post-checkout"):
        assert done == {(f"{inner}/config", "settings removed")}


def test_an_index_that_did_not_change_is_not_looked_at(root, held):
    (root / "sub").mkdir()
    inner = repository(root / "sub/.git")
    git = str(root / ".git")
    assert end(held._replace(target="\0".join((git, index_stamp(git), "known")))) == set()
    index(root / ".git", "known", "sub", "more")
    assert end(held._replace(target="\0".join((git, "1 2 3 4", "known"))))
    assert harmless(inner)

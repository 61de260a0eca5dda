"""Where git's hooks and configuration are, for every form a `.git` can have. Built by hand, without git."""

import pytest

from doorward.launcher.git_directories import GitPaths, git_paths, index_stamp


def repository(path, config="[core]\n\tbare = false\n"):
    for name in ("objects", "refs", "hooks"):
        (path / name).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    (path / "config").write_text(config)
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "w"
    path.mkdir()
    return path


def protected(folder):
    return set(git_paths(str(folder)).protect)


def test_no_repository(folder):
    assert git_paths(str(folder)) is None


def test_a_directory(folder):
    git = repository(folder / ".git")
    found = git_paths(str(folder))
    assert {f"{git}/config", f"{git}/hooks", f"{git}/commondir", f"{git}/config.worktree"} == set(found.protect)
    assert found.pin == (str(git),)
    assert found.write == ()


@pytest.mark.parametrize("spelling", ["hooksPath = .husky", 'HOOKSPATH="./.husky"', "hookspath=.husky \r"])
def test_a_hooks_folder_named_in_the_configuration(folder, spelling):
    repository(folder / ".git", f"[core]\n\t{spelling}\n")
    assert f"{folder}/.husky" in protected(folder)


def test_top_level_names_of_a_project_are_not_gits(folder):
    """P-FS-14."""
    repository(folder / ".git")
    for name in ("config", "objects", "refs", "hooks"):
        (folder / name).mkdir()
    (folder / "HEAD").write_text("x")
    assert not {f"{folder}/config", f"{folder}/hooks"} & protected(folder)


@pytest.mark.parametrize("head", ["ref: refs/heads/main\n", "0" * 40])
def test_a_bare_repository(folder, head):
    repository(folder)
    (folder / "HEAD").write_text(head)
    assert protected(folder) == {f"{folder}/config", f"{folder}/hooks", f"{folder}/commondir"}


def worktree(tmp_path, folder, name="wt", back=None):
    main = repository(tmp_path / "main/.git")
    own = main / "worktrees" / name
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (own / "gitdir").write_text(f"{back or folder}/.git\n")
    (folder / ".git").write_text(f"gitdir: {own}\n")
    return main, own


def test_a_linked_worktree_that_points_back(tmp_path, folder):
    """P-FS-12."""
    main, own = worktree(tmp_path, folder)
    found = git_paths(str(folder))
    assert set(found.write) == {str(main), str(own)}
    assert {f"{folder}/.git", f"{main}/config", f"{main}/hooks", f"{main}/worktrees", f"{own}/commondir"} <= set(
        found.protect
    )


def test_a_linked_worktree_that_points_elsewhere_grants_nothing(tmp_path, folder):
    worktree(tmp_path, folder, back=tmp_path / "other")
    assert git_paths(str(folder)) == GitPaths(protect=(f"{folder}/.git",))


def test_a_worktrees_common_directory_must_be_the_one_that_lists_it(tmp_path, folder):
    _, own = worktree(tmp_path, folder)
    victim = repository(tmp_path / "victim")
    (own / "commondir").write_text(str(victim))
    assert git_paths(str(folder)).write == ()


@pytest.mark.parametrize("text", ["gitdir: /etc\n", "gitdir: ../..\n", "nonsense", "", "gitdir: " + "x" * 9000])
def test_a_git_file_that_leads_nowhere_grants_nothing(folder, text):
    (folder / ".git").write_text(text)
    assert git_paths(str(folder)) == GitPaths(protect=(f"{folder}/.git",))


def test_a_submodule_that_points_back(tmp_path):
    folder = tmp_path / "upper/sub"
    folder.mkdir(parents=True)
    own = repository(tmp_path / "upper/.git/modules/sub", "[core]\n\tworktree = ../../../sub\n")
    (folder / ".git").write_text("gitdir: ../.git/modules/sub\n")
    found = git_paths(str(folder))
    assert found.write == (str(own),)
    assert {f"{own}/config", f"{own}/hooks", f"{folder}/.git"} <= set(found.protect)
    (own / "config").write_text("[core]\n\tworktree = ../../../other\n")
    assert git_paths(str(folder)).write == ()


def test_modules_below_a_repository(folder):
    git = repository(folder / ".git")
    repository(git / "modules/a/b")
    repository(git / "modules/a/b/modules/c")
    found = git_paths(str(folder))
    assert {f"{git}/modules/a/b/config", f"{git}/modules/a/b/modules/c/hooks"} <= set(found.protect)
    assert {f"{git}/modules", f"{git}/modules/a", f"{git}/modules/a/b"} <= set(found.pin)


def test_many_modules_or_worktrees_are_held_as_a_whole(folder):
    """P-PF-04."""
    git = repository(folder / ".git")
    for number in range(100):
        (git / f"worktrees/w{number}").mkdir(parents=True)
        repository(git / f"modules/m{number}")
    found = git_paths(str(folder))
    assert {f"{git}/worktrees", f"{git}/modules"} <= set(found.protect)
    assert len(found.protect) < 10


def test_a_few_worktrees_are_held_one_by_one(folder):
    git = repository(folder / ".git")
    (git / "worktrees/a").mkdir(parents=True)
    found = git_paths(str(folder))
    assert {f"{git}/worktrees/a/{name}" for name in ("commondir", "gitdir", "config.worktree")} <= set(found.protect)
    assert f"{git}/worktrees" not in found.protect


def test_a_link_to_a_repository(tmp_path, folder):
    """P-FS-07."""
    meta = repository(tmp_path / "meta/p.git")
    (folder / ".git").symlink_to("../meta/p.git")
    found = git_paths(str(folder))
    assert f"{meta}/config" in found.protect
    assert found.write == ()


def test_a_link_that_leads_nowhere(folder):
    (folder / ".git").symlink_to("gone")
    assert git_paths(str(folder)) == GitPaths()


def test_a_configuration_that_is_no_file_is_passed_over(folder):
    git = repository(folder / ".git")
    (git / "config").unlink()
    (git / "config").mkdir()
    assert f"{git}/config" in protected(folder)


def index(git, *names):
    """An index that names submodules, gitformat-index(5)."""
    data = b"DIRC" + (2).to_bytes(4, "big") + len(names).to_bytes(4, "big")
    for name in names:
        entry = bytes(24) + (0xE000).to_bytes(4, "big") + bytes(12 + 20) + len(name).to_bytes(2, "big") + name.encode()
        data += entry + bytes(8 - len(entry) % 8)
    (git / "index").write_bytes(data)


def test_submodules_that_the_index_names_are_held(folder):
    """`git status` enters each and believes its configuration."""
    git = repository(folder / ".git")
    index(git, "a/old", "new", "plain", "missing", "linked")
    old = repository(folder / "a/old/.git")
    (folder / "plain").mkdir()
    (folder / "linked").symlink_to("a/old")
    real = repository(git / "modules/new", "[core]\n\tworktree = ../../../new\n")
    (folder / "new").mkdir()
    (folder / "new/.git").write_text("gitdir: ../.git/modules/new\n")
    found = git_paths(str(folder))
    assert {f"{old}/config", f"{old}/hooks", f"{folder}/new/.git", f"{real}/config"} <= set(found.protect)
    assert {f"{folder}/a", f"{folder}/a/old", str(old), f"{folder}/new"} <= set(found.pin)
    assert found.write == ()
    assert {(each.folder, each.directory, each.known) for each in found.submodules} == {
        (str(folder), str(git), ("a/old", "new")),
        (f"{folder}/a/old", str(old), ()),
        (f"{folder}/new", str(real), ()),
    }


def test_an_index_is_known_again_only_if_all_its_submodules_are_held(folder):
    git = repository(folder / ".git")
    index(git, "old")
    repository(folder / "old/.git")
    (found,) = [each for each in git_paths(str(folder)).submodules if each.folder == str(folder)]
    assert found.stamp == index_stamp(str(git)) != ""
    index(git, "old", "empty")
    (found,) = [each for each in git_paths(str(folder)).submodules if each.folder == str(folder)]
    assert (found.stamp, found.known) == ("", ("old",))


def test_submodules_of_submodules_are_held(folder):
    index(repository(folder / ".git"), "a")
    index(repository(folder / "a/.git"), "b")
    inner = repository(folder / "a/b/.git")
    assert f"{inner}/config" in protected(folder)

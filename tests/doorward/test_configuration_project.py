"""One project, whatever its path is spelled like; and only that project."""

from pathlib import Path

import pytest

from doorward.configuration_project import trust_of


@pytest.fixture
def real(tmp_path: Path) -> Path:
    folder = tmp_path / "real" / "p"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "real" / "p2").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return folder


def test_every_spelling_is_one_project(real: Path, tmp_path: Path) -> None:
    """P-AP-23"""
    levels = {str(real): "trusted"}
    for spelling in (f"{real}", f"{real}/", f"{real}/.", f"{real}/sub/..", f"{tmp_path}/link/p", f"{real}/sub"):
        assert trust_of(spelling, levels) == ("trusted", str(real))
    assert trust_of(str(real.parent / "p2"), levels) is None
    assert trust_of(str(real.parent), levels) is None


def test_the_nearest_folder_that_is_named_counts(real: Path) -> None:
    levels = {str(real): "trusted", str(real / "sub"): "untrusted", "/": "trusted"}
    assert trust_of(str(real / "sub"), levels) == ("untrusted", str(real / "sub"))
    assert trust_of(str(real), levels) == ("trusted", str(real))
    assert trust_of(str(real.parent), levels) == ("trusted", "/")


def worktree(real: Path, folder: Path, *, points_back: bool = True) -> None:
    """What `git worktree add` leaves (gitrepository-layout(5))."""
    administration = real / ".git" / "worktrees" / "w"
    administration.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {administration}\n")
    (administration / "gitdir").write_text(f"{folder if points_back else real}/.git\n")
    (administration / "commondir").write_text("../..\n")


def test_a_linked_worktree_counts_as_its_repository(real: Path, tmp_path: Path) -> None:
    """P-AP-23"""
    worktree(real, tmp_path / "w")
    (tmp_path / "w" / "deep").mkdir()
    for cwd in (tmp_path / "w", tmp_path / "w" / "deep"):
        assert trust_of(str(cwd), {str(real): "trusted"}) == ("trusted", str(real))
    own = {str(real): "trusted", str(tmp_path / "w"): "untrusted"}
    assert trust_of(str(tmp_path / "w"), own) == ("untrusted", str(tmp_path / "w"))


def test_a_git_file_that_only_claims_to_be_a_worktree_gains_nothing(real: Path, tmp_path: Path) -> None:
    levels = {str(real): "trusted"}
    worktree(real, tmp_path / "w", points_back=False)
    assert trust_of(str(tmp_path / "w"), levels) is None
    for text in (f"gitdir: {real}/.git\n", f"gitdir: {real}\n", "garbage", "gitdir: gone/worktrees/x\n", ""):
        (tmp_path / "w" / ".git").write_text(text)
        assert trust_of(str(tmp_path / "w"), levels) is None


def test_a_repository_of_its_own_inside_another_folder_inherits_like_any_folder(real: Path, tmp_path: Path) -> None:
    (real / "sub" / ".git").mkdir()
    assert trust_of(str(real / "sub"), {str(real): "trusted"}) == ("trusted", str(real))
    assert trust_of(str(real / "sub"), {str(tmp_path / "other"): "trusted"}) is None

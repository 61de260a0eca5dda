"""Files that git's settings include."""

import pytest

from doorward.launcher.git_directories import git_paths
from doorward.launcher.git_includes import included

FORMS = {
    "[include]\n\tpath = ../shared\n": True,
    "[include]\n\tpath=../shared # why\n": True,
    '[include]\n\tPATH = "../shared"\n': True,
    "[Include] path = ../shared\n": True,
    '[includeIf "gitdir:~/code/"]\n\tpath = ../shared\n': True,
    "[include]\n\tpath = ../sha\\\nred\n": True,
    "[core]\n\tpath = ../shared\n": False,
    "[include]\n[core]\n\tpath = ../shared\n": False,
    "# [include]\n\tpath = ../shared\n": False,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A repository, and a home without settings of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "home").mkdir()
    path = tmp_path.resolve() / "w"
    for name in ("objects", "refs", "hooks"):
        (path / ".git" / name).mkdir(parents=True)
    (path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (path / ".git/config").write_text("")
    return path


@pytest.mark.parametrize("text", FORMS)
def test_every_way_to_say_it(folder, text):
    (folder / ".git/config").write_text(text)
    assert included(str(folder / ".git/config")) == ([f"{folder}/shared"] if FORMS[text] else [])


def test_what_is_included_is_followed_and_a_circle_ends(folder):
    (folder / ".git/config").write_text("[include]\n\tpath = ../a/one\n")
    (folder / "a").mkdir()
    (folder / "a/one").write_text("[include]\n\tpath = two\n[include]\n\tpath = ../.git/config\n")
    (folder / "a/two").write_text("[include]\n\tpath = one\n")
    found = included(str(folder / ".git/config"))
    assert {f"{folder}/a/one", f"{folder}/a/two"} <= set(found)


def test_a_repository_holds_what_its_settings_include(folder):
    (folder / ".git/config").write_text("[include]\n\tpath = ../shared\n")
    assert f"{folder}/shared" in git_paths(str(folder)).protect


@pytest.mark.parametrize("name", [".gitconfig", ".config/git/config"])
def test_the_users_own_settings_count_too(folder, tmp_path, name):
    own = tmp_path / "home" / name
    own.parent.mkdir(exist_ok=True, parents=True)
    own.write_text(f"[core]\n\thooksPath = .githooks\n[include]\n\tpath = {folder}/team\n")
    assert {f"{folder}/.githooks", f"{folder}/team"} <= set(git_paths(str(folder)).protect)

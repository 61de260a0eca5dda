"""Which names are held, pinned and watched under a writable root."""

import pytest

from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.protected import PROTECTED_NAMES, absent, protect
from doorward.launcher.watch import Watch


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "w"
    path.mkdir()
    return path


def held(root, *granted, guarded=()):
    return protect([str(root)], frozenset(granted), lambda: frozenset(guarded))


def test_an_empty_root_is_all_watched(root):
    found = held(root)
    assert found.read_only == found.pinned == found.writable == ()
    assert {f"{w.root}/{w.name}" for w in found.watched if w.kind == "absent"} == {
        f"{root}/{name}" for name in PROTECTED_NAMES
    }
    assert Watch("repository", str(root), ".git") in found.watched


def test_what_exists_is_held_and_not_watched(root):
    (root / ".vscode").mkdir()
    (root / ".bashrc").write_text("")
    found = held(root)
    assert set(found.read_only) == {f"{root}/.vscode", f"{root}/.bashrc"}
    assert not {".vscode", ".bashrc"} & {watch.name for watch in found.watched}


def test_directories_above_a_held_path_are_pinned(root):
    (root / ".config/git").mkdir(parents=True)
    found = held(root)
    assert found.read_only == (f"{root}/.config/git",)
    assert found.pinned == (f"{root}/.config",)
    assert Watch("absent", f"{root}/.config", "fish") in found.watched


def test_a_grant_by_name_lifts_it_existing_or_not(root):
    (root / ".claude").mkdir()
    found = held(root, f"{root}/.claude", f"{root}/.codex", f"{root}/.git")
    assert found.read_only == ()
    assert not {".claude", ".codex", ".git"} & {watch.name for watch in found.watched}


@pytest.mark.parametrize("target", ["real", "/etc/passwd", "gone", "middle"])
def test_a_link_is_watched_and_what_it_leads_to_is_held(root, target):
    """P-FS-05."""
    (root / "real").write_text("")
    (root / "middle").symlink_to("real")
    (root / ".bashrc").symlink_to(target)
    found = held(root)
    assert Watch("link", str(root), ".bashrc", target) in found.watched
    if target == "gone":
        assert Watch("absent", str(root), "gone") in found.watched
    elif target == "middle":
        assert Watch("link", str(root), "middle", "real") in found.watched
        assert found.read_only == (f"{root}/real",)
    else:
        assert found.read_only == (f"{root}/real" if target == "real" else target,)


def test_a_loop_of_links_holds_nothing_and_ends(root):
    (root / ".bashrc").symlink_to(".zshrc")
    (root / ".zshrc").symlink_to(".bashrc")
    found = held(root)
    assert found.read_only == ()
    assert Watch("link", str(root), ".bashrc", ".zshrc") in found.watched


def test_a_link_above_a_name_is_watched(root):
    (root / "real").mkdir()
    (root / ".config").symlink_to("real")
    assert Watch("link", str(root), ".config", "real") in held(root).watched


def test_what_another_run_is_about_to_remove_counts_as_absent(root):
    (root / ".codex").mkdir()
    (root / ".git").mkdir()
    found = held(root, guarded=[f"{root}/.codex", f"{root}/.git"])
    assert found.read_only == ()
    assert {Watch("absent", str(root), ".codex"), Watch("repository", str(root), ".git")} <= set(found.watched)


def test_a_link_another_run_made_is_not_put_back(root):
    (root / ".bashrc").symlink_to("evil")
    found = held(root, guarded=[f"{root}/.bashrc"])
    assert Watch("absent", str(root), ".bashrc") in found.watched
    assert not [watch for watch in found.watched if watch.kind == "link"]


def test_a_name_that_goes_while_the_others_are_asked_is_absent(root):
    """Made by another run after our question's answer was fixed, removed before we looked again."""
    (root / ".codex").mkdir()

    def asked():
        if (root / ".codex").exists():
            (root / ".codex").rmdir()
        return frozenset()

    found = protect([str(root)], frozenset(), asked)
    assert found.read_only == ()
    assert Watch("absent", str(root), ".codex") in found.watched


def test_names_that_never_keep_still_are_refused(root):
    """Taken away and made again between two looks: the number may be the same, the time is not."""
    (root / ".codex").mkdir()

    def asked():
        (root / ".codex").rmdir()
        (root / ".codex").mkdir()
        return frozenset()

    with pytest.raises(SandboxUnavailable, match="keep changing"):
        protect([str(root)], frozenset(), asked)


def test_a_busy_repository_keeps_still(root):
    (root / ".git").mkdir()

    def asked():
        (root / ".git/index.lock").write_text("")
        (root / ".git/index.lock").unlink()
        return frozenset()

    assert f"{root}/.git" in protect([str(root)], frozenset(), asked).pinned


def test_the_others_are_not_asked_where_nothing_stands(root):
    protect([str(root)], frozenset(), lambda: pytest.fail("asked"))


def test_git_is_held_where_it_is(root):
    (root / ".git/hooks").mkdir(parents=True)
    (root / ".git/config").write_text("")
    found = held(root)
    assert {f"{root}/.git/hooks", f"{root}/.git/config"} == set(found.read_only)
    assert f"{root}/.git" in found.pinned
    assert Watch("absent", f"{root}/.git", "commondir") in found.watched


def test_the_place_where_an_absent_path_would_be_made(root):
    assert absent(f"{root}/a/b/c") == Watch("absent", str(root), "a/b/c")
    (root / "file").write_text("")
    assert absent(f"{root}/file/x") is None
    assert absent("/no-such-top") == Watch("absent", "/", "no-such-top")

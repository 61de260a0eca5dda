"""Path rules: resolved once, refused by name where they would grant too much."""

import os

import pytest

from doorward.launcher.interface import Mode, SandboxPolicy, UnenforceableRule
from doorward.launcher.mounts import Kind
from doorward.launcher.rules import is_below, read_rules


@pytest.fixture
def workspace(tmp_path):
    path = tmp_path / "w"
    path.mkdir()
    return path


def policy(workspace, **more):
    home = workspace.parent / "home"
    values = {
        "mode": Mode.WORKSPACE_WRITE,
        "workspace": str(workspace),
        "home": str(home),
        "cache_dir": str(home / "c"),
    }
    return SandboxPolicy(**(values | more))


def test_paths_are_relative_to_the_workspace_and_resolved(workspace, tmp_path):
    (tmp_path / "real").mkdir()
    (workspace / "a").mkdir()
    (tmp_path / "link").symlink_to("real")
    rules = read_rules(policy(workspace, write=(str(tmp_path / "link"), "a//", "./a/.")))
    assert [rule.path for rule in rules.rules] == [str(tmp_path / "real"), str(workspace / "a"), str(workspace / "a")]
    assert {rule.kind for rule in rules.rules} == {Kind.WRITE}


def test_the_home_directory_is_meant_by_a_tilde(workspace, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_rules(policy(workspace, deny_read=("~/.aws",))).rules[0].path == str(tmp_path / ".aws")


@pytest.mark.parametrize(
    "entry", ["/", "/etc", "/usr/../etc", "//var/", "/proc", "/proc/sys", "/sys/kernel", "/dev/shm"]
)
def test_system_folders_are_refused_and_the_entry_is_named(workspace, entry):
    """P-FS-15."""
    with pytest.raises(UnenforceableRule) as caught:
        read_rules(policy(workspace, write=(entry,)))
    assert caught.value.entry == entry


def test_a_system_folder_as_workspace_is_refused():
    with pytest.raises(UnenforceableRule):
        read_rules(SandboxPolicy(Mode.WORKSPACE_WRITE, "/usr", "/nowhere/home", "/nowhere/cache"))


def test_doorwards_folder_is_refused_and_its_parent_is_not(workspace, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    for entry in (str(home), str(home / "sessions")):
        with pytest.raises(UnenforceableRule, match="doorward's own folder"):
            read_rules(policy(workspace, write=(entry,)))
    assert read_rules(policy(workspace, write=(str(tmp_path),))).rules[0].path == str(tmp_path)


def test_a_link_in_the_workspace_cannot_widen_what_is_granted(workspace, tmp_path):
    """P-FS-15."""
    (tmp_path / "outside/deep").mkdir(parents=True)
    (workspace / "link").symlink_to("../outside")
    (tmp_path / "back").symlink_to("w/link")
    for entry in ("link", "link/deep", "link/../outside", "../back", "./link/"):
        for name in ("write", "read_only"):
            with pytest.raises(UnenforceableRule, match="through a link inside the workspace"):
                read_rules(policy(workspace, **{name: (entry,)}))
    # hiding where it leads takes nothing from anyone
    assert read_rules(policy(workspace, deny_read=("link",))).rules[0].path == str(tmp_path / "outside")


def test_a_link_that_stays_inside_is_fine(workspace):
    (workspace / "real").mkdir()
    (workspace / "link").symlink_to("real")
    assert read_rules(policy(workspace, write=("link",))).rules[0].path == str(workspace / "real")


def test_a_loop_of_links_ends(workspace):
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")
    assert read_rules(policy(workspace, deny_read=("a",))).rules


def test_what_is_not_there_can_be_granted_below_a_writable_directory_only(workspace, tmp_path):
    assert read_rules(policy(workspace, write=(".codex",))).rules[0].path == str(workspace / ".codex")
    with pytest.raises(UnenforceableRule, match="does not exist"):
        read_rules(policy(workspace, write=(str(tmp_path / "gone"),)))
    with pytest.raises(UnenforceableRule, match="does not exist"):
        read_rules(policy(workspace, mode=Mode.READ_ONLY, write=(".codex",)))


def test_an_existing_name_with_pattern_characters_is_a_name(workspace):
    (workspace / "[id].tsx").write_text("")
    rule = read_rules(policy(workspace, deny_read=("[id].tsx",))).rules[0]
    assert (rule.path, rule.pattern) == (str(workspace / "[id].tsx"), None)


def test_patterns_keep_their_base(workspace):
    rule = read_rules(policy(workspace, deny_read=("src/**/*.key",))).rules[0]
    assert rule.path == str(workspace / "src")
    assert rule.pattern.fullmatch("a/b.key")
    assert read_rules(policy(workspace, deny_read=("data/**",))).rules[0].pattern is None


@pytest.mark.parametrize("entry", ["[z-a]x", "a\0b", ""])
def test_what_cannot_be_read_is_named(workspace, entry):
    with pytest.raises(UnenforceableRule):
        read_rules(policy(workspace, deny_read=(entry,)))


def test_the_whole_root_cannot_be_hidden(workspace):
    with pytest.raises(UnenforceableRule):
        read_rules(policy(workspace, deny_read=("/",)))


def test_no_file_rule_holds_without_a_file_boundary(workspace):
    with pytest.raises(UnenforceableRule) as caught:
        read_rules(policy(workspace, mode=Mode.DANGER_FULL_ACCESS, read_only=("x",)))
    assert caught.value.entry == "x"
    assert "workspace-write" in caught.value.remedy


def test_a_socket_must_be_there(workspace, tmp_path):
    with pytest.raises(UnenforceableRule, match="no socket"):
        read_rules(policy(workspace, allow_unix=(str(tmp_path / "s"),)))
    (tmp_path / "s").write_text("")
    assert read_rules(policy(workspace, allow_unix=(str(tmp_path / "s"),))).sockets == (str(tmp_path / "s"),)


def test_a_missing_workspace_is_named(tmp_path):
    with pytest.raises(UnenforceableRule, match="not a directory"):
        read_rules(policy(tmp_path / "gone"))


def test_names_that_are_no_text_are_kept(workspace):
    name = os.fsdecode(b"a\xff")
    (workspace / name).mkdir()
    assert read_rules(policy(workspace, write=(name,))).rules[0].path == f"{workspace}/{name}"


def test_below():
    assert is_below("/a/b", "/a") and is_below("/a", "/")
    assert not is_below("/ab", "/a") and not is_below("/a", "/a") and not is_below("/", "/")

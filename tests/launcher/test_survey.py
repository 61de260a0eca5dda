"""From a policy and the files that exist to the mount plan of one start."""

import os
import socket

import pytest

from doorward.launcher.interface import Mode, SandboxPolicy
from doorward.launcher.mounts import Kind
from doorward.launcher.rules import read_rules
from doorward.launcher.survey import survey
from doorward.launcher.watch import Watch


@pytest.fixture
def place(tmp_path):
    for name in ("w", "home"):
        (tmp_path / name).mkdir()
    return tmp_path


def look(place, *, table=b"", uid=1000, fresh_proc=True, **more):
    values = {
        "mode": Mode.WORKSPACE_WRITE,
        "workspace": str(place / "w"),
        "home": str(place / "home"),
        "cache_dir": str(place / "home/cache"),
    }
    policy = SandboxPolicy(**(values | more))
    return survey(policy, read_rules(policy), uid=uid, fresh_proc=fresh_proc, unix_table=table)


def steps(found):
    return {mount.path: mount.step for mount in found.plan.mounts}


def test_the_layout_every_run_has(place):
    found = steps(look(place))
    assert found["/"] == "ro-bind"
    assert found["/dev"] == "dev"
    assert found["/proc"] == "proc"
    assert found["/tmp"] == found["/dev/shm"] == "tmpfs"
    assert found[str(place / "w")] == "bind"
    order = [mount.path for mount in look(place).plan.mounts]
    assert order.index("/") < order.index("/tmp") < order.index(str(place / "w"))


def test_modes(place):
    assert look(place, mode=Mode.READ_ONLY).plan.kind(str(place / "w")) is Kind.READ
    assert look(place, mode=Mode.READ_ONLY).watched == ()
    danger = look(place, mode=Mode.DANGER_FULL_ACCESS)
    assert [mount.step for mount in danger.plan.mounts] == ["dev-bind", "proc"]
    assert danger.watched == ()


def test_root_has_more_of_proc_covered(place):
    assert steps(look(place, uid=0))["/proc/sys"] == "ro-bind"
    assert "/proc/sys" not in steps(look(place))
    without = steps(look(place, uid=0, fresh_proc=False))
    assert not [path for path in without if path.startswith("/proc")]


def test_doorwards_folder_is_held_where_it_would_be_writable(place):
    home = place / "w/home"
    home.mkdir()
    found = look(place, home=str(home), cache_dir=str(home / "cache"))
    assert found.plan.kind(str(home)) is Kind.READ
    assert not look(place, home=str(place / "home")).plan.writable(str(place / "home"))
    found = look(place, home=str(place / "w/later"))
    assert Watch("absent", str(place / "w"), "later") in found.watched


def test_patterns_are_looked_up_at_each_start(place):
    (place / "w/a.key").write_text("")
    (place / "w/deep/secret").mkdir(parents=True)
    entries = {"deny_read": ("**/*.key", "**/secret")}
    found = look(place, **entries)
    assert found.plan.kind(str(place / "w/a.key")) is Kind.HIDDEN
    assert steps(found)[str(place / "w/deep/secret")] == "hide-directory"
    (place / "w/deep/b.key").write_text("")
    assert look(place, **entries).plan.kind(str(place / "w/deep/b.key")) is Kind.HIDDEN


def test_a_matched_link_hides_what_it_leads_to_and_grants_nothing(place):
    (place / "w/real").write_text("")
    (place / "w/x.key").symlink_to("real")
    assert look(place, deny_read=("*.key",)).plan.kind(str(place / "w/real")) is Kind.HIDDEN
    (place / "outside").mkdir()
    (place / "w/sub").mkdir()
    (place / "w/sub/x").symlink_to(place / "outside")
    found = look(place, mode=Mode.READ_ONLY, write=("sub/*",))
    assert not found.plan.writable(str(place / "outside"))


def test_what_is_to_be_hidden_and_is_not_there_is_watched(place):
    """P-FS-04."""
    found = look(place, deny_read=("gone", "a/b/c", str(place / "elsewhere")))
    assert {Watch("absent", str(place / "w"), "gone"), Watch("absent", str(place / "w"), "a/b/c")} <= set(found.watched)
    # nothing can be made where nothing is writable
    assert not [watch for watch in found.watched if watch.name == "elsewhere"]


def test_sockets_that_would_be_visible_are_hidden(place):
    """P-SC-02."""
    (place / "w/plain").write_text("")
    bound = []
    for name in ("w/s.sock", "outside.sock"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(place / name))
        bound.append(listener)
    rows = [place / "w/s.sock", place / "outside.sock", place / "w/plain", place / "w/gone.sock"]
    table = b"head\n" + b"".join(b"0: 2 0 10000 1 1 7 " + os.fsencode(path) + b"\n" for path in rows)
    try:
        shown = {"read_only": (str(place),)}
        found = look(place, uid=os.geteuid(), table=table, **shown)
        assert {path for path, step in steps(found).items() if step == "hide-file"} == {
            str(place / "w/s.sock"),
            str(place / "outside.sock"),
        }
        found = look(place, uid=os.geteuid(), table=table, allow_unix=(str(place / "w/s.sock"),), **shown)
        assert found.plan.visible(str(place / "w/s.sock"))
        assert not found.plan.visible(str(place / "outside.sock"))
    finally:
        for listener in bound:
            listener.close()


def test_a_granted_socket_is_shown_where_all_else_is_private(place):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "s.sock"))
    try:
        found = look(place, allow_unix=(str(place / "s.sock"),))
        assert found.plan.visible(str(place / "s.sock"))
        # where the tests' folder is below /tmp nothing else of it is there
        if not found.plan.visible(str(place)):
            assert steps(found)[str(place / "s.sock")] == "ro-bind"
    finally:
        listener.close()


def test_read_only_paths_pin_what_is_above_them_where_it_is_writable(place):
    (place / "w/a/b").mkdir(parents=True)
    (place / "w/a/b/f").write_text("")
    found = steps(look(place, read_only=("a/b/f",)))
    assert found[str(place / "w/a/b/f")] == "ro-bind"
    assert found[str(place / "w/a")] == found[str(place / "w/a/b")] == "bind"
    assert str(place) not in found


def test_the_table_is_read_from_proc_unless_given(place):
    assert look(place, table=None).plan.writable(str(place / "w"))

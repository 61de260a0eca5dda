"""Reading /proc/net/unix, and finding where the sockets it lists stand now."""

import os
import socket

import pytest

from doorward.launcher.unix_sockets import BoundPaths, beyond_reach, bound_paths, socket_directories, sockets_in

TABLE = b"""Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 20001 /run/dbus/system_bus_socket
0000000000000000: 00000003 00000000 00000000 0001 03 20002
0000000000000000: 00000002 00000000 00010000 0001 01 20003 @/tmp/abstract
0000000000000000: 00000002 00000000 00000000 0002 01 20004 /home/u/with blank/s ock
0000000000000000: 00000002 00000000 00010000 0001 01 20005 relative.sock
0000000000000000: 00000002 00000000 00010000 0005 01 20006 /run/dbus/system_bus_socket
0000000000000000: 00000002 00000000 00010000 0001 01 20007 /srv/a\xff
"""


@pytest.fixture
def bound(tmp_path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s.sock"))
    yield tmp_path
    listener.close()


def test_only_sockets_with_a_path_are_listed_each_once():
    """P-SC-02."""
    assert bound_paths(TABLE) == BoundPaths(
        ("/run/dbus/system_bus_socket", "/home/u/with blank/s ock", "/srv/a\udcff"), ("relative.sock",)
    )


def test_an_empty_table():
    assert bound_paths(b"") == BoundPaths()
    assert bound_paths(TABLE.split(b"\n")[0] + b"\n") == BoundPaths()


def test_a_directory_is_looked_into_whatever_name_its_socket_was_bound_by(bound):
    """P-SC-02: OpenSSH binds a ControlMaster under a name it then takes away."""
    (found,) = socket_directories(BoundPaths((str(bound / "gone.sock"),)), ())
    assert sockets_in(found) == [str(bound.resolve() / "s.sock")]


def test_links_to_the_directory_are_resolved(bound):
    (bound / "link").symlink_to(bound)
    assert socket_directories(BoundPaths((str(bound / "link/s.sock"),)), ()) == (str(bound.resolve()),)


def test_a_relative_path_is_looked_for_below_folders_and_working_directories(bound, monkeypatch):
    relative = BoundPaths(relative=("s.sock", "../elsewhere"))
    assert socket_directories(relative, (str(bound),)) == (str(bound.resolve()),)
    assert socket_directories(relative, ()) == ()
    monkeypatch.chdir(bound)
    assert socket_directories(relative, ()) == ((str(bound.resolve()),) if os.path.exists("/proc/self/cwd") else ())


def test_only_sockets_are_found(bound):
    (bound / "file").write_text("")
    (bound / "directory").mkdir()
    (bound / "link").symlink_to("s.sock")
    assert sockets_in(str(bound)) == [str(bound / "s.sock")]
    assert sockets_in(str(bound / "missing")) == []


def test_what_another_user_keeps_to_itself_is_beyond_reach(tmp_path):
    """Root's own look goes further than its command's, which has no capability."""
    for each in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        each.mkdir(exist_ok=True)
        each.chmod(0o755)
    inner, own, other = str(tmp_path / "a" / "b"), os.geteuid(), os.geteuid() + 1
    known = beyond_reach(str(tmp_path), other)  # what is above may be closed itself
    assert beyond_reach(inner, other) == known
    (tmp_path / "a").chmod(0o700)
    assert beyond_reach(inner, other) and not beyond_reach(inner, own)
    (tmp_path / "a").chmod(0o710)
    assert beyond_reach(inner, other) == known  # whoever that is may be in the group
    assert not beyond_reach(str(tmp_path / "gone"), other)

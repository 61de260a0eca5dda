"""Reading /proc/net/unix."""

from doorward.launcher.unix_sockets import bound_paths

TABLE = b"""Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 20001 /run/dbus/system_bus_socket
0000000000000000: 00000003 00000000 00000000 0001 03 20002
0000000000000000: 00000002 00000000 00010000 0001 01 20003 @/tmp/abstract
0000000000000000: 00000002 00000000 00000000 0002 01 20004 /home/u/with blank/s ock
0000000000000000: 00000002 00000000 00010000 0001 01 20005 relative.sock
0000000000000000: 00000002 00000000 00010000 0005 01 20006 /run/dbus/system_bus_socket
0000000000000000: 00000002 00000000 00010000 0001 01 20007 /srv/a\xff
"""


def test_only_sockets_with_a_path_are_listed_each_once():
    """P-SC-02."""
    assert bound_paths(TABLE) == [b"/run/dbus/system_bus_socket", b"/home/u/with blank/s ock", b"/srv/a\xff"]


def test_an_empty_table():
    assert bound_paths(b"") == []
    assert bound_paths(TABLE.split(b"\n")[0] + b"\n") == []

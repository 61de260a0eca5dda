"""A device node is a door to the kernel or a disk, wherever its file lies."""

import os
import stat

import pytest

CODE = """
for path in sys.argv[1:]: attempt(os.path.basename(path), lambda: open(path, 'rb').read(1).hex())
for name, mode in (('character', stat.S_IFCHR), ('block', stat.S_IFBLK)):
    for folder in os.environ['FOLDERS'].split():
        attempt(f'make {name} in {folder}', os.mknod, f'{folder}/node-{name}', mode | 0o666, os.makedev(1, 5))
said['devices'] = sorted(os.listdir('/dev'))
"""
FEW = {"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty"}


def test_none_can_be_made(way):
    inside = way(CODE).inside(env={"FOLDERS": ". /tmp /dev/shm /dev"})
    devices = set(inside.pop("devices"))
    assert len(inside) == 8
    assert set(inside.values()) == {"EPERM"}, inside
    assert devices <= FEW | {"urandom", "zero"}


def test_one_that_is_there_cannot_be_opened(way, sandbox):
    """/dev/zero under another name, in the workspace and beside it."""
    if os.geteuid() != 0:
        pytest.skip("root only: an ordinary user can make no device node to try it with")
    nodes = [sandbox.path("inside"), sandbox.base / "beside"]
    for node in nodes:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 5))
        node.chmod(0o666)
    if os.statvfs(sandbox.base).f_flag & os.ST_NODEV:
        pytest.skip("the file system of the test opens no devices")
    probe = way(CODE)
    seen = probe.inside(*nodes, env={"FOLDERS": "."})
    assert (seen["inside"], seen["beside"]) == ("EACCES", "EACCES")
    shown = probe.inside(*nodes, env={"FOLDERS": "."}, policy={"write": [str(sandbox.base)]})
    assert (shown["inside"], shown["beside"]) == ("EACCES", "EACCES")
    outside = probe.outside(*nodes, env={"FOLDERS": "."})
    assert (outside["inside"], outside["beside"]) == ("00", "00")
    if sandbox.uid is None:
        assert outside["make character in ."] is None

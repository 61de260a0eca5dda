"""POSIX shared memory is a file in /dev/shm; a POSIX message queue has a name of its own."""

import ctypes
import os

import pytest

CODE = """
name = sys.argv[1]
attempt('memory', append, '/dev/shm/' + name)
for path in ('/dev/../dev/shm/', '/proc/self/root/dev/shm/', '/proc/1/root/dev/shm/'):
    attempt(path, append, path + name) if os.path.exists(path + name) else None
attempt('queue', call, 'mq_open', b'/' + name.encode(), os.O_RDWR)
"""


@pytest.fixture
def name():
    """A file in the host's /dev/shm and a queue that everybody may use."""
    libc = ctypes.CDLL(None, use_errno=True)
    name = f"doorward-{os.getpid()}"
    old = os.umask(0)
    queue = libc.mq_open(f"/{name}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    with open(f"/dev/shm/{name}", "w") as file:
        file.write("mine")
    os.umask(old)
    yield name, queue >= 0
    os.unlink(f"/dev/shm/{name}")
    if queue >= 0:
        os.close(queue)
        libc.mq_unlink(f"/{name}".encode())


def test_the_hosts_are_not_there(way, name):
    name, has_queues = name
    probe = way(CODE)
    inside = probe.inside(name)
    # the memory is made anew, in a /dev/shm that is the run's own
    assert inside["memory"] == "written"
    assert inside["queue"] in ("ENOENT", "ENOSYS")
    with open(f"/dev/shm/{name}") as file:
        assert file.read() == "mine"
    if not os.path.exists("/proc/sys/fs/protected_regular") or probe.sandbox.uid is None:
        outside = probe.outside(name)
        assert outside["memory"] == "written"
        assert isinstance(outside["queue"], int) is has_queues
        with open(f"/dev/shm/{name}") as file:
            assert file.read().startswith("minetheirs")

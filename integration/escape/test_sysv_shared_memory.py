"""System V shared memory, semaphores and message queues have names that every process of a machine shares."""

import ctypes
import os

import pytest

CODE = """
key = int(sys.argv[1])
def attach():
    segment = call('shmget', key, 0, 0)
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(segment, None, 0)
    ctypes.memmove(address, b'theirs', 6)
    return 'attached'
attempt('memory', attach)
attempt('semaphore', call, 'semget', key, 1, 0)
attempt('queue', call, 'msgget', key, 0)
"""


@pytest.fixture
def key():
    """A segment, a semaphore and a queue of the host that everybody may use."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    key = 0x64000000 | os.getpid() & 0xFFFFFF
    create = 0o1000 | 0o666  # IPC_CREAT, <linux/ipc.h>
    segment, semaphore, queue = libc.shmget(key, 4096, create), libc.semget(key, 1, create), libc.msgget(key, create)
    assert min(segment, semaphore, queue) >= 0
    address = libc.shmat(segment, None, 0)
    yield key, lambda: ctypes.string_at(address, 6)
    libc.shmdt(ctypes.c_void_p(address))
    libc.shmctl(segment, 0, None)  # IPC_RMID
    libc.semctl(semaphore, 0, 0)
    libc.msgctl(queue, 0, None)


def test_the_hosts_are_not_there(way, key):
    number, content = key
    probe = way(CODE)
    assert probe.inside(number) == {"memory": "ENOENT", "semaphore": "ENOENT", "queue": "ENOENT"}
    assert content() == bytes(6)
    outside = probe.outside(number)
    assert outside["memory"] == "attached"
    assert isinstance(outside["semaphore"], int)
    assert isinstance(outside["queue"], int)
    assert content() == b"theirs"

"""Who holds a socket: found for certain, or unknown. Linux only, on loopback, among this process's own children."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from doorward.proxy.attribution import UNKNOWN, Attribution
from doorward.proxy.socket_owner import Sockets, owner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sock_diag(7) and /proc are Linux's")


@pytest.fixture
def pair():
    """A listener, and a connection to it: the client's end and the accepted one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        with client, accepted:
            yield client, accepted


@pytest.fixture
def who():
    made = Attribution(socket.socket(16, socket.SOCK_RAW, 4), os.getppid())
    yield made
    made.close()


def test_the_process_at_the_other_end_is_named(pair, who):
    said = who.of_connection(pair[1])
    assert said["pid"] == os.getpid()
    assert said["executable"] == os.path.realpath("/proc/self/exe")
    assert said["argv"][0] == Path("/proc/self/cmdline").read_text().split("\0")[0]


def test_over_ipv6_and_for_datagrams_too(who):
    from ipaddress import ip_address

    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        accepted, _ = listener.accept()
        with client, accepted:
            assert who.of_connection(accepted)["pid"] == os.getpid()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        there = ip_address("127.0.0.1")
        assert who.of_datagram((there, sock.getsockname()[1]), (there, 9))["pid"] == os.getpid()


def test_the_child_that_connected_is_named_not_its_parent(who):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        code = f"import socket; c = socket.create_connection(('127.0.0.1', {port})); c.recv(1)"
        with subprocess.Popen([sys.executable, "-c", code, "--token", "hunter2"]) as child:
            accepted, _ = listener.accept()
            with accepted:
                said = who.of_connection(accepted)
            assert said["pid"] == child.pid
            assert said["argv"][-2:] == ["--token", "<withheld>"]


def test_a_process_that_is_gone_is_unknown(who):
    """Never a guess."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            client.close()
            assert who.of_connection(accepted) == UNKNOWN


def test_a_process_of_another_run_is_unknown(pair):
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            other = Attribution(socket.socket(16, socket.SOCK_RAW, 4), stranger.pid)
            assert other.of_connection(pair[1]) == UNKNOWN
            other.close()
        finally:
            stranger.kill()


def test_who_asked_before_is_still_looked_at_for_certain(pair, who):
    """A pid that was remembered and now is somebody else's does not count."""
    first = who.of_connection(pair[1])
    who._asked = {1: None, 2**22 + 1: None}
    assert who.of_connection(pair[1]) == first


def test_the_search_is_bounded(pair, monkeypatch):
    from ipaddress import ip_address

    monkeypatch.setattr("doorward.proxy.socket_owner.MOST_DESCRIPTORS", 0)
    sockets = Sockets(socket.socket(16, socket.SOCK_RAW, 4))
    client = pair[0]
    ends = [(ip_address(name[0]), name[1]) for name in (client.getsockname(), client.getpeername())]
    inode = sockets.inode(socket.IPPROTO_TCP, *ends)
    assert inode and owner(inode, os.getppid()) is None
    sockets.close()

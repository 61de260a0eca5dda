"""Who holds a socket: found for certain, or unknown. Linux only, on loopback, among this process's own children."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from doorward.proxy.attribution import UNKNOWN, Attribution
from doorward.proxy.process_table import leader_of, parent_of
from doorward.proxy.socket_diagnosis import Sockets
from doorward.proxy.socket_owner import Owners

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
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        accepted, _ = listener.accept()
        with client, accepted:
            assert who.of_connection(accepted)["pid"] == os.getpid()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        assert who.of_datagram(sock.getsockname(), (bytes([127, 0, 0, 1]), 9))["pid"] == os.getpid()


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


def test_the_program_is_that_of_the_moment(pair, who):
    """The process stays, and its socket; what it runs does not. What is said twice is the same."""
    held = pair[0].detach()
    words = ["sh", "-c", "read go; exec sleep 6000", "--token", "hunter2"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[held]) as child:
        try:
            os.close(held)
            said = who.of_connection(pair[1])
            assert said["pid"] == child.pid
            assert said["argv"] == [*words[:3], "--token", "<withheld>"]
            assert who.of_connection(pair[1]) == said
            child.stdin.write(b"\n")
            child.stdin.flush()
            deadline = time.monotonic() + 30
            after, seen = said, []
            while after["argv"] in (said["argv"], []):  # in the midst of execve(2) a process has no arguments
                assert time.monotonic() < deadline
                after = who.of_connection(pair[1])
                seen.append((after["executable"], after["argv"]))
            told = ((said["executable"], said["argv"]), (after["executable"], after["argv"]))
            assert all(each in told for each in seen if each[1]), seen  # never one program's name, another's arguments
            assert (after["pid"], after["argv"]) == (child.pid, ["sleep", "6000"])
            assert after["executable"] != said["executable"]
        finally:
            child.kill()
    assert who.of_connection(pair[1]) == UNKNOWN


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
    who._owners._asked = {1: [3], 2**22 + 1: [4]}
    assert who.of_connection(pair[1]) == first


def inode(sock):
    return os.fstat(sock.fileno()).st_ino


def test_the_search_is_bounded(pair, monkeypatch):
    monkeypatch.setattr("doorward.proxy.socket_owner.MOST_DESCRIPTORS", 0)
    assert Owners(os.getppid()).find(inode(pair[0])) is None


def test_the_inode_is_the_sockets(pair):
    sockets = Sockets(socket.socket(16, socket.SOCK_RAW, 4))
    ends = [(socket.inet_aton(name[0]), name[1]) for name in (pair[0].getsockname(), pair[0].getpeername())]
    assert sockets.inode(socket.IPPROTO_TCP, *ends) == inode(pair[0])
    assert sockets.inode(socket.IPPROTO_TCP, ends[0], (ends[1][0], 1)) is None
    sockets.close()


@pytest.fixture
def owners():
    made = Owners(os.getppid())
    yield made
    made.close()


def found(owners, inode):
    line = owners.find(inode)
    return None if line is None else line.processes[0]


@pytest.fixture
def sleepers():
    """A few other processes of the run."""
    made = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
    yield made
    for each in made:
        each.kill()
        each.wait()


class Helper:
    """A child that opens and closes sockets as it is told, each line one answer."""

    def __init__(self):
        code = (
            "import os, socket, sys\n"
            "held = [socket.socket()]\n"
            "for line in sys.stdin:\n"
            "    held.pop().close() if line == 'swap\\n' else None\n"
            "    held.append(socket.socket())\n"
            "    print(os.fstat(held[-1].fileno()).st_ino, flush=True)\n"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def told(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.process:
            self.process.kill()


def test_each_is_found_again_whoever_asked_before(owners, sleepers):
    """Those that asked, those that were started since, one that exchanged a socket for another."""
    with Helper() as first, Helper() as second, socket.socket() as mine:
        for _ in range(2):
            for helper in (first, second):
                assert found(owners, helper.told("more")) == helper.process.pid
                assert found(owners, helper.told("swap")) == helper.process.pid
            assert found(owners, inode(mine)) == os.getpid()
            with Helper() as new:
                assert found(owners, new.told("more")) == new.process.pid
    assert found(owners, 1) is None  # all of them are known and looked at in vain: no guess


def test_a_socket_that_asks_again_is_found_where_it_was(owners):
    """A resolver's, between connections of the same process and of others; it costs no search."""
    with Helper() as first, Helper() as second:
        asks_again = first.told("more")
        assert found(owners, asks_again) == first.process.pid
        for _ in range(2):
            assert found(owners, first.told("more")) == first.process.pid
            assert found(owners, second.told("more")) == second.process.pid
            owners._left = 0
            assert found(owners, asks_again) == first.process.pid
            assert owners._left == 0  # no other place was looked at


def test_a_socket_that_was_closed_is_nobodys_though_its_place_is_taken(owners):
    """The place of another socket, and a number that another process has by now."""
    with Helper() as helper:
        closed = helper.told("more")
        assert found(owners, closed) == helper.process.pid
        in_its_place = helper.told("swap")
        assert found(owners, closed) is None
        assert found(owners, in_its_place) == helper.process.pid
        owners._places[in_its_place] = os.getpid(), 0  # as if the number had been given away
        assert found(owners, in_its_place) == helper.process.pid
        owners._places[in_its_place] = 2**22 + 1, 3
        assert found(owners, in_its_place) == helper.process.pid
    assert found(owners, in_its_place) is None


def test_whoever_still_has_a_socket_is_named_when_the_first_has_let_go(owners, pair):
    held = pair[0].detach()
    number = os.fstat(held).st_ino
    with subprocess.Popen(["sleep", "60"], pass_fds=[held]) as child:
        try:
            owners._places[number] = os.getpid(), held
            owners.find(number)
            os.close(held)
            assert found(owners, number) == child.pid
        finally:
            child.kill()
    assert found(owners, number) is None


def test_the_places_that_are_remembered_are_bounded(owners):
    with Helper() as helper:
        for _ in range(70):
            assert found(owners, helper.told("swap")) == helper.process.pid
    assert len(owners._places) == 64


def test_nothing_is_missed_where_the_kernel_tells_less(owners, sleepers, monkeypatch):
    """No number of the last task (a container's own loadavg), no numbers of descriptors (before Linux 6.2)."""
    monkeypatch.setattr("doorward.proxy.socket_owner.last_started", lambda: None)
    monkeypatch.setattr("doorward.proxy.socket_owner._descriptors", lambda process: 0)
    with Helper() as first, Helper() as second:
        for _ in range(2):
            assert found(owners, first.told("swap")) == first.process.pid
            assert found(owners, second.told("more")) == second.process.pid


def test_processes_that_are_gone_are_forgotten(owners, monkeypatch):
    monkeypatch.setattr("doorward.proxy.socket_owner._MARGIN", 4)
    owners._room = 4
    for _ in range(20):
        with Helper() as helper:
            assert found(owners, helper.told("more")) == helper.process.pid
    with socket.socket() as mine:
        assert found(owners, inode(mine)) == os.getpid()
    assert len(owners._known) < 20


def test_of_several_that_have_it_the_last_one_is_named(owners, pair):
    """As the documentation says: by their numbers, which begin anew some time."""
    with subprocess.Popen(["sleep", "60"], pass_fds=[pair[0].fileno()]) as child:
        try:
            assert found(owners, inode(pair[0])) == max(child.pid, os.getpid())
        finally:
            child.kill()


def test_a_thread_is_its_process(owners):
    """Also one with a name like a line of the file that tells."""
    leaders = []

    def work():
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("x\nTgid:\t1\n")
        leaders.append(leader_of(threading.get_native_id()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert leaders == [os.getpid()]
    assert leader_of(2**22 + 1) is None


def test_one_among_many_descriptors(owners):
    pipes = [os.pipe() for _ in range(100)]
    try:
        with socket.socket() as mine:
            os.close(pipes[3][0])
            with socket.socket() as in_a_gap:
                assert found(owners, inode(mine)) == os.getpid()
                assert found(owners, inode(in_a_gap)) == os.getpid()
            pipes[3] = os.pipe()
    finally:
        for each in pipes:
            os.close(each[0])
            os.close(each[1])



def test_parents_are_those_of_the_moment():
    """The process is held by its folder in /proc; whether its parents still live is seen each time."""
    code = (
        "import os, socket, sys\n"
        "held = socket.socket()\n"
        "print(os.fstat(held.fileno()).st_ino, flush=True)\n"
        "middle = os.fork()\n"
        "held = None if middle else held\n"
        "if middle: sys.stdin.readline(); os.kill(middle, 9); os.waitpid(middle, 0); print('ended', flush=True)\n"
        "elif os.fork(): held.close()\n"
        "sys.stdin.readline() if middle else os.read(os.pipe()[0], 1)\n"
    )
    twice = ["sh", "-c", 'sh -c \'"$@"; :\' x "$@"; :', "x"]  # in the place of bubblewrap
    with subprocess.Popen(
        [*twice, sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as top:  # fmt: skip
        owners = Owners(os.getpid())
        try:
            number = int(top.stdout.readline())
            deadline = time.monotonic() + 30
            # until the one in the middle has let go of it
            while (line := owners.find(number)) is None or len(line.processes) < 3:
                assert time.monotonic() < deadline
            assert [parent_of(each) for each in line.processes[:2]] == line.processes[1:]
            top.stdin.write("\n")
            top.stdin.flush()
            assert top.stdout.readline() == "ended\n"
            assert owners.find(number) is None  # its new parent is not the run's any more
        finally:
            owners.close()
            os.killpg(top.pid, 9)

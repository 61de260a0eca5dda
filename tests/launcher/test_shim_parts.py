"""The shim's smaller parts, each in a forked child of its own: signals, directories, descriptors, processes."""

import json
import os
import select
import signal

import pytest

from doorward.launcher import shim_signals
from doorward.launcher.directory_watch import DirectoryWatch
from doorward.launcher.process_tree import children, first_child
from doorward.launcher.starter import close_all_but


@pytest.fixture
def in_child():
    """Runs a function in a forked child and gives what it returns, through JSON."""

    def run(function):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writer, json.dumps(function(writer)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            data = file.read()
        os.waitpid(child, 0)
        assert data, "the child failed"
        return json.loads(data)

    return run


def test_handlers_go_and_ignored_signals_are_remembered(in_child):
    def work(_):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        inherited = shim_signals.take()
        during = [int(signal.getsignal(n)) for n in (signal.SIGTERM, signal.SIGCHLD, signal.SIGWINCH)]
        blocked = list(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        shim_signals.give(inherited)
        after = [int(signal.getsignal(n)) for n in (signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)]
        return [list(inherited), during, blocked, after]

    inherited, during, blocked, after = in_child(work)
    ignore, default = int(signal.SIG_IGN), int(signal.SIG_DFL)
    assert set(inherited) == {signal.SIGHUP, signal.SIGCHLD}
    assert during == [ignore, default, default]
    assert blocked == []
    # the shell's nohup reaches the command, Python's own SIGPIPE does not
    assert after == [ignore, default, default, default]


@pytest.mark.parametrize("change", ["make", "rename", "remove"])
def test_a_change_in_a_directory_is_told(in_child, tmp_path, change):
    (tmp_path / "old").write_text("")
    directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)

    def work(_):
        watch = DirectoryWatch([directory])
        first = watch.changed
        watch.changed = False
        if change == "make":
            (tmp_path / "new").write_text("")
        elif change == "rename":
            (tmp_path / "old").rename(tmp_path / "new")
        else:
            (tmp_path / "old").unlink()
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        told = bool(poll.poll(10_000))
        watch.drain()
        return [first, told, watch.changed, bool(poll.poll(0))]

    assert in_child(work) == [True, True, True, False]
    os.close(directory)


def test_what_cannot_be_watched_is_passed_over(in_child, tmp_path):
    (tmp_path / "file").write_text("")
    handle = os.open(tmp_path / "file", os.O_RDONLY)
    assert in_child(lambda _: DirectoryWatch([handle]).changed) is True
    os.close(handle)


def test_every_descriptor_but_the_named_is_closed(in_child):
    def work(writer):
        kept = os.open("/dev/null", os.O_RDONLY)
        os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
        os.dup2(kept, 200)
        close_all_but({kept, writer})
        return [sorted({kept, writer}), sorted(map(int, os.listdir("/proc/self/fd")))]

    kept, left = in_child(work)
    # one more: the directory being listed, at the lowest free number
    assert set(kept) <= set(left)
    assert len(left) == len(kept) + 1
    assert 200 not in left


def test_children_oldest_first():
    ready, started = os.pipe()
    hold, release = os.pipe()
    pids = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            os.close(release)
            os.write(started, b"x")
            os.read(hold, 1)
            os._exit(0)
        pids.append(child)
    for _ in pids:
        os.read(ready, 1)
    try:
        assert children(os.getpid()) == pids
        assert first_child(os.getpid()) == pids[0]
        assert first_child(pids[0]) == 0
    finally:
        os.close(release)
        for pid in pids:
            os.waitpid(pid, 0)
        for descriptor in (ready, started, hold):
            os.close(descriptor)


def test_a_process_that_is_gone_has_no_children():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert children(child) == []


def test_children_where_the_kernel_does_not_list_them(monkeypatch):
    """Without CONFIG_PROC_CHILDREN the parents of all processes are looked at."""
    import builtins

    hold, release = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(release)
        os.read(hold, 1)
        os._exit(0)
    true_open = builtins.open

    def without(path, *arguments, **named):
        if str(path).endswith("/children"):
            raise FileNotFoundError(path)
        return true_open(path, *arguments, **named)

    monkeypatch.setattr(builtins, "open", without)
    try:
        assert children(os.getpid()) == [child]
    finally:
        monkeypatch.undo()
        os.close(release)
        os.waitpid(child, 0)
        os.close(hold)

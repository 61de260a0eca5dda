"""The supervisor's side of a run, against a child that plays the shim."""

import json
import os
import select
import socket

import pytest

from doorward.launcher.interface import Door, LaunchFailure, Limits, Outcome, Stdio
from doorward.launcher.launch import Launch, Plan, launch_from
from doorward.launcher.process import NeverStarted, ShimProcess
from doorward.launcher.seed import Seed

DEADLINE_S = 20


def launch(plan=Plan(), stdio=Stdio(-1, -1, -1)):  # noqa: B008
    limits = None, Limits(), (), "", "", (), Door()
    return Launch(plan, "/bwrap", False, True, ("true",), "/", (), "", "", "", 1.0, "/c", False, *limits, stdio)


@pytest.fixture
def start():
    """Forks a shim that plays a function on its channel; gives the process and what it was told to conclude."""
    processes = []

    def fork(play, **more):
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                ours.close()
                play(theirs)
            finally:
                os._exit(0)
        theirs.close()
        seen = []
        seed = Seed(child, ours.detach(), 0)
        processes.append(ShimProcess(seed, launch(**more), lambda told: seen.append(told) or Outcome(5)))
        return processes[-1], seen

    yield fork
    for process in processes:
        process.close()


def lines(channel, count):
    text = b""
    while text.count(b"\n") < count:
        piece = channel.recv(65536)
        if not piece:
            break
        text += piece
    return text.split(b"\n")[:count]


def tell(channel, **report):
    channel.sendall(json.dumps(report).encode() + b"\n")


def ready(process):
    poll = select.poll()
    poll.register(process.fileno(), select.POLLIN)
    return bool(poll.poll(DEADLINE_S * 1000))


def test_orders_arrive_in_order_and_the_report_comes_back(start):
    def play(channel):
        first, *rest = lines(channel, 4)
        tell(channel, plan=launch_from(first, ()).plan.arguments, rest=[json.loads(line) for line in rest])

    process, seen = start(play, plan=Plan(arguments=("--a",)))
    process.release()
    process.signal(15)
    process.kill()
    assert ready(process)
    assert process.wait() == Outcome(5)
    assert process.wait() == Outcome(5)
    assert seen == [{"plan": ["--a"], "rest": [{"release": True}, {"signal": 15}, {"kill": True}]}]


def test_a_plan_larger_than_a_sockets_buffer_goes_through(start):
    def play(channel):
        (first,) = lines(channel, 1)
        tell(channel, length=len(launch_from(first, ()).plan.arguments))

    process, seen = start(play, plan=Plan(arguments=("x" * 1000,) * 2000))
    process.wait()
    assert seen == [{"length": 2000}]


def test_the_commands_descriptors_arrive(start):
    reader, writer = os.pipe()

    def play(channel):
        line, numbers, _, _ = socket.recv_fds(channel, 65536, 5)
        os.write(launch_from(line, numbers).stdio.stdout, b"through")
        tell(channel)

    process, _ = start(play, stdio=Stdio(-1, writer, -1))
    os.close(writer)
    process.wait()
    assert os.read(reader, 100) == b"through"
    os.close(reader)


def test_a_shim_that_dies_is_told_as_none(start):
    process, seen = start(lambda channel: None)
    assert ready(process)
    process.wait()
    assert seen == [None]


def test_half_a_report_is_none(start):
    process, seen = start(lambda channel: channel.sendall(b'{"status": '))
    process.wait()
    assert seen == [None]


def test_orders_to_a_dead_shim_are_no_error(start):
    process, _ = start(lambda channel: None)
    assert ready(process)
    process.release()
    process.signal(2)
    process.kill()
    process.close()
    process.close()
    process.kill()


def test_closing_kills_waits_and_leaves_no_child(start):
    def play(channel):
        _, told = lines(channel, 2)
        tell(channel, told=json.loads(told))

    process, _ = start(play)
    process.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert process.collect() == {"told": {"kill": True}}


def test_the_end_counts_before_the_shim_is_gone(start):
    """Its memory is given back while the supervisor already works on."""

    def play(channel):
        tell(channel, status=0)
        lines(channel, 2)

    process, _ = start(play)
    assert ready(process)
    assert process.wait() == Outcome(5)
    process.kill()


def test_a_command_that_never_started_is_over_at_once():
    outcome = Outcome(127, failure=LaunchFailure("not-found", "x"))
    process = NeverStarted(outcome)
    assert ready(process)
    process.release()
    process.signal(15)
    process.kill()
    assert process.wait() == outcome
    process.close()
    process.close()

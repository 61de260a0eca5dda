"""The supervisor's side of a run, against a child that plays the shim."""

import json
import os
import select

import pytest

from doorward.launcher.interface import LaunchFailure, Outcome
from doorward.launcher.plan import Plan, read_plan
from doorward.launcher.process import NeverStarted, ShimProcess

DEADLINE_S = 20


@pytest.fixture
def start():
    """Forks a shim that runs a function on (orders, report); gives the process and what it was told to conclude."""
    processes = []

    def fork(play):
        orders, orders_writer = os.pipe()
        report, report_writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(orders_writer)
                os.close(report)
                play(orders, report_writer)
            finally:
                os._exit(0)
        os.close(orders)
        os.close(report_writer)
        seen = []
        processes.append(ShimProcess(child, orders_writer, report, lambda told: seen.append(told) or Outcome(5)))
        return processes[-1], seen

    yield fork
    for process in processes:
        process.close()


def lines(descriptor, count):
    text = b""
    while text.count(b"\n") < count:
        piece = os.read(descriptor, 65536)
        if not piece:
            break
        text += piece
    return text.split(b"\n")[:count]


def ready(process):
    poll = select.poll()
    poll.register(process.fileno(), select.POLLIN)
    return bool(poll.poll(DEADLINE_S * 1000))


def test_orders_arrive_in_order_and_the_report_comes_back(start):
    def play(orders, report):
        plan, *rest = lines(orders, 4)
        told = {"plan": list(read_plan(plan).arguments), "rest": [json.loads(line) for line in rest]}
        os.write(report, json.dumps(told).encode() + b"\n")

    process, seen = start(play)
    process.send_plan(Plan(arguments=("--a",)))
    process.release()
    process.signal(15)
    process.kill()
    assert ready(process)
    assert process.wait() == Outcome(5)
    assert process.wait() == Outcome(5)
    assert seen == [{"plan": ["--a"], "rest": [{"release": True}, {"signal": 15}, {"kill": True}]}]


def test_a_plan_larger_than_a_pipe_goes_through(start):
    def play(orders, report):
        (plan,) = lines(orders, 1)
        os.write(report, json.dumps({"length": len(read_plan(plan).arguments)}).encode() + b"\n")

    process, seen = start(play)
    process.send_plan(Plan(arguments=("x" * 1000,) * 500))
    process.wait()
    assert seen == [{"length": 500}]


def test_a_shim_that_dies_is_told_as_none(start):
    process, seen = start(lambda orders, report: None)
    assert ready(process)
    process.wait()
    assert seen == [None]


def test_half_a_report_is_none(start):
    process, seen = start(lambda orders, report: os.write(report, b'{"status": '))
    process.wait()
    assert seen == [None]


def test_orders_to_a_dead_shim_are_no_error(start):
    process, _ = start(lambda orders, report: None)
    assert ready(process)
    process.release()
    process.signal(2)
    process.kill()
    process.close()
    process.close()
    process.kill()


def test_closing_kills_waits_and_leaves_no_child(start):
    def play(orders, report):
        told = lines(orders, 1)
        os.write(report, json.dumps({"told": json.loads(told[0])}).encode() + b"\n")

    process, _ = start(play)
    process.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert process.collect() == {"told": {"kill": True}}


def test_the_end_counts_before_the_shim_is_gone(start):
    """Its memory is given back while the supervisor already works on."""

    def play(orders, report):
        os.write(report, b'{"status": 0}\n')
        lines(orders, 1)

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

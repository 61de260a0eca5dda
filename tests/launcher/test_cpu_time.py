"""A run's processor time, and when it has to be looked at."""

import os

import pytest

from doorward.launcher import cpu_time
from doorward.launcher.cpu_time import GRACE_S, Budget, used_s


def test_a_process_that_burnt_some_and_its_ended_children_count():
    before = used_s(os.getpid())
    child = os.fork()
    if child == 0:
        while sum(os.times()[:2]) < 0.15:
            pass
        os._exit(0)
    os.waitpid(child, 0)
    assert used_s(os.getpid()) - before >= 0.1


def test_one_that_is_gone_used_nothing():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert used_s(child) == 0


@pytest.fixture
def clock(monkeypatch):
    """Sets the processor time used so far; the other clock stands still at 100, on two processors."""
    now = {"used": 1.0}
    monkeypatch.setattr(cpu_time, "used_s", lambda process: now["used"])
    monkeypatch.setattr(cpu_time, "_PROCESSORS", 2)
    monkeypatch.setattr(cpu_time.time, "monotonic", lambda: 100.0)
    return now


def test_it_is_looked_at_when_it_could_be_used_up_and_no_earlier(clock):
    budget = Budget(10)
    assert budget.due is None
    budget.start(1)
    assert budget.due == 105
    clock["used"] = 7
    assert not budget.used_up(1)
    assert budget.due == 102
    clock["used"] = 10.99
    assert not budget.used_up(1)
    assert budget.due == pytest.approx(100.05)
    clock["used"] = 11
    assert budget.used_up(1)


def test_once_told_to_end_the_rest_is_killed_soon(clock):
    budget = Budget(10)
    budget.start(1)
    budget.end(107)
    assert (budget.ended_at, budget.due) == (107, 107 + GRACE_S)

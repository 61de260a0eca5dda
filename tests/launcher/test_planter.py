"""Shims that another process forks: they end as those do that the supervisor forks, and so does that process."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

import pytest

from doorward.launcher.planter import Planter

DEADLINE_MS = 10_000


@pytest.fixture
def planter() -> Iterator[Planter]:
    made = Planter()
    yield made
    made.close()


def ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(DEADLINE_MS))


def test_a_discarded_shim_ends(planter: Planter) -> None:
    seed = planter.plant(0, None, captured=False, terminal=False)
    watch = os.dup(seed.watch)
    seed.discard()
    assert ended(watch)
    os.close(watch)


def test_shims_outlive_it(planter: Planter) -> None:
    """What runs must not end because the session closes what forks."""
    other = Planter()
    seed = other.plant(0, None, captured=False, terminal=False)
    other.close()
    poll = select.poll()
    poll.register(seed.watch, select.POLLIN)
    assert not poll.poll(0)
    seed.discard()


def test_it_ends_with_the_supervisor_and_so_do_its_shims() -> None:
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        seed = Planter().plant(0, None, captured=False, terminal=False)
        with open(f"/proc/{seed.shim}/status", encoding="ascii") as file:
            parent = next(line for line in file if line.startswith("PPid")).split()[1]
        os.write(tell, f"{seed.shim} {parent}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    for pid in map(int, os.read(told, 100).split()):
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        assert ended(handle), pid
        os.close(handle)
    os.close(told)
    os.close(tell)


def test_one_that_is_gone_is_an_error() -> None:
    planter = Planter()
    os.kill(planter._pid, 9)
    with pytest.raises(OSError):
        for _ in range(2):  # it may have read the first request
            planter.plant(0, None, captured=False, terminal=False)
    planter.close()


def test_its_ended_shims_are_collected(planter: Planter) -> None:
    first = planter.plant(0, None, captured=False, terminal=False)
    first.discard()
    second = planter.plant(0, None, captured=False, terminal=False)
    third = planter.plant(0, None, captured=False, terminal=False)
    with pytest.raises(ProcessLookupError):
        os.kill(first.shim, 0)
    second.discard()
    third.discard()

"""Several processes behind one port."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

Start = Callable[..., Any]


def test_they_share_the_connections(start: Start, control: Any, there: str) -> None:
    proxy = start("--workers", "3", "--control", control.where, "--allow", there)
    assert len(proxy.workers) == 3
    assert control.json("/healthz")["ready"] == 3
    tunnels = [proxy.ask(there)[1] for _ in range(60)]
    connected = [
        sum(1 for each in os.scandir(f"/proc/{pid}/fd") if os.readlink(each.path).startswith("socket:"))
        for pid in proxy.workers
    ]
    assert sum(connected) >= 120
    assert min(connected) > 2, f"one of them got nothing: {connected}"
    assert control.metric("open_tunnels") == 60
    for tunnel in tunnels:
        tunnel.close()


def test_there_is_one_for_each_processor_it_may_use(start: Start) -> None:
    assert len(start(workers=False).workers) == min(4, len(os.sched_getaffinity(0)))
    processor = min(os.sched_getaffinity(0))
    on_one = f"import os, sys; os.sched_setaffinity(0, [{processor}]); os.execv(sys.argv[1], sys.argv[1:])"
    assert len(start(workers=False, wrap=[sys.executable, "-c", on_one]).workers) == 1


def test_a_dead_one_is_replaced(start: Start, control: Any, there: str) -> None:
    proxy = start("--workers", "2", "--control", control.where, "--allow", there)
    _, tunnel = proxy.ask(there)
    victim, survivor = proxy.workers
    os.kill(victim, signal.SIGKILL)
    proxy.says(f"worker {victim} ended by signal 9, its connections with it; another is started")
    for _ in range(8):
        assert proxy.status(there) == 200, "what waits in its queue is served by the next one"
    assert control.metric("worker_restarts_total") == 1
    assert len(proxy.workers) == 2
    assert survivor in proxy.workers
    tunnel.close()


def test_one_that_is_started_later_has_the_newest_rules(start: Start, control: Any, configure: Any, there: str) -> None:
    proxy = start("--control", control.where)
    configure(f'[network]\nallow = ["{there}"]\n')
    assert control("/reload", "POST")[0] == 200
    os.kill(proxy.workers[0], signal.SIGKILL)
    assert proxy.status(there) == 200


def test_open_tunnels_of_a_dead_one_are_not_counted(start: Start, control: Any, there: str) -> None:
    proxy = start("--control", control.where, "--allow", there)
    _, tunnel = proxy.ask(there)
    assert control.metric("open_tunnels") == 1
    os.kill(proxy.workers[0], signal.SIGKILL)
    proxy.says("another is started")
    assert tunnel.recv(1) == b""
    tunnel.close()
    assert control.metric("open_tunnels") == 0

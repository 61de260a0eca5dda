"""`doorward proxy` with the queue: a client waits while somebody is asked."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import pytest


class Door:
    """A running `doorward proxy`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.port = 0
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(rb"accepting on .*:(\d+)", line):
                self.port = int(found[1])
                break

    def fetch(self, url: str) -> subprocess.Popen[str]:
        """A client; its output is the status it was answered with."""
        return subprocess.Popen(
            ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-x", f"http://127.0.0.1:{self.port}", url],
            stdout=subprocess.PIPE,
            text=True,
        )


Start = Callable[..., Door]


@pytest.fixture
def start(doorward: Any) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def run(*args: str, more: str = "") -> Door:
            doorward.configure(f'network.hosts = {{"b.test" = "127.0.0.1"}}\n{more}')
            process = stack.enter_context(doorward.start("proxy", "--listen", "127.0.0.1:0", *args))
            stack.callback(process.kill)
            return Door(process)

        yield run


def test_a_client_waits_for_the_answer(doorward: Any, origin: Any, start: Start) -> None:
    door = start("--workers", "2")
    assert door.port
    for answer, status in ((("allow",), "200"), (("deny",), "403"), (("allow", "--session"), "200")):
        client = door.fetch(origin.url())
        asked = doorward.question()
        (row,) = doorward.waiting()
        assert (row["id"], row["kind"], row["argv"]) == (asked["id"], "network", ["doorward", "proxy"])
        doorward.answer(*answer, asked["id"])
        assert client.communicate(timeout=60)[0] == status
    clients = [door.fetch(origin.url()) for _ in range(4)]
    assert [client.communicate(timeout=60)[0] for client in clients] == ["200"] * 4, "whichever worker has it"
    assert doorward.quiet() and doorward.waiting() == []


def test_a_client_that_leaves_takes_its_question_back(doorward: Any, origin: Any, start: Start) -> None:
    door = start()
    client = door.fetch(origin.url())
    asked = doorward.question()
    client.kill()
    client.communicate()
    while doorward.waiting():
        assert door.process.poll() is None
    assert doorward("approvals", "allow", asked["id"]).status == 2


def test_always_is_a_rule_that_the_door_itself_then_reads(doorward: Any, origin: Any, start: Start) -> None:
    door = start()
    client = door.fetch(origin.url())
    doorward.answer("allow", "--always", doorward.question()["id"])
    assert client.communicate(timeout=60)[0] == "200"
    assert tomllib.loads((doorward.home / "config.toml").read_text())["network"]["allow"] == [f"b.test:{origin.port}"]


def test_nobody_in_time_is_a_refusal_and_the_end_leaves_nothing(doorward: Any, origin: Any, start: Start) -> None:
    door = start(more="approvals.timeout = 0.3\n")
    client = door.fetch(origin.url())
    doorward.question()
    assert client.communicate(timeout=60)[0] == "403"
    waiting = door.fetch("http://other.test/")
    doorward.question()
    door.process.send_signal(signal.SIGTERM)
    door.process.communicate(timeout=60)
    waiting.communicate(timeout=60)
    assert doorward.waiting() == []

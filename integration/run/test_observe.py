"""`run --observe`: record once, then allow exactly that."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

CURL = ("curl", "-sS", "--max-time", "20")


def pin(origin: Any, *names: str) -> tuple[str, ...]:
    table = ", ".join(f'"{name}" = "127.0.0.1"' for name in names)
    return ("-c", f"network.hosts={{{table}}}")


def test_watch_learn_and_run_under_what_was_learned(doorward: Any, origin: Any) -> None:
    pins = pin(origin, "a.test", "b.test", "bad.test")
    watched = doorward(
        "run", "--observe", "--name", "watched", *pins, "--deny", "bad.test", "--",
        *CURL, "-o", "/dev/null", "-w", "%{http_code} ", origin.url("a.test"), origin.url("bad.test"),
    )  # fmt: skip
    assert watched.out.split()[:1] == [b"200"] and len(origin.requests) == 1
    assert "observing: what no rule allows passes" in watched.err
    assert f"a.test:{origin.port}" in watched.err and "doorward allowlist learn" in watched.err
    assert "bad.test" in watched.err.split("refused 1 time")[1]

    learned = doorward("allowlist", "learn", "watched")
    rules = tomllib.loads(learned.out.decode())["network"]["allow"]
    assert rules == [f"a.test:{origin.port}"]

    again = doorward("run", *pins, "--allow", rules[0], "--fail-on-deny", "--", *CURL, origin.url("a.test"))
    assert (again.status, again.out) == (0, b"hello\n") and "refused" not in again.err
    added = doorward("run", *pins, "--allow", rules[0], "--", *CURL, origin.url("b.test"))
    assert b"not_allowed" in added.out and len(origin.requests) == 2


def test_local_addresses_stay_shut(doorward: Any, origin: Any) -> None:
    seen = doorward("run", "--json", "--observe", "--", *CURL, "--noproxy", "", f"http://127.0.0.1:{origin.port}/")
    assert seen.document["refusals"][0]["reason"] == "not_allowed_local" and origin.requests == []


@pytest.mark.parametrize("mode", ["off", "full"])
def test_there_is_nothing_to_watch_without_the_proxy(doorward: Any, mode: str) -> None:
    seen = doorward("run", "--observe", "--network", mode, "--", "true")
    assert seen.status == 2 and "there is nothing to watch" in seen.err and not doorward.rollouts()

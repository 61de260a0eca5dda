"""`--memory`, `--pids`, `--cpu-time`, `--files`: what is told of a limit that was reached."""

from __future__ import annotations

import os
from typing import Any

import pytest

BURN = "while :; do :; done"


def test_a_limit_that_was_reached_is_in_the_observation_the_rollout_and_the_summary(doorward: Any) -> None:
    seen = doorward("run", "--json", "--cpu-time", "300ms", "--files", "64", "--", "sh", "-c", BURN)
    assert seen.status == 128 + 24
    observation = seen.document
    assert observation["success"] is True
    (hit,) = observation["limits_hit"]
    assert (hit["limit"], hit["value"], hit["by"]) == ("cpu_time", 0.3, "doorward")
    assert "--cpu-time" in seen.err
    lines = doorward.lines(observation["session"])
    (recorded,) = [line["payload"] for line in lines if line["type"] == "observation"]
    assert recorded["limits_hit"] == [hit]
    (started,) = [line["payload"] for line in lines if line["type"] == "exec"]
    assert started["limits"] == {"cpu_time": "doorward", "files": "rlimit"}
    (context,) = [line["payload"] for line in lines if line["type"] == "turn_context"]
    assert context["doorward"]["sandbox"]["limits"] == {"cpu_time": 0.3, "files": 64}
    assert "processor time" in doorward("show", observation["session"]).out.decode()


def test_limits_that_leave_no_trace_are_named_when_the_command_failed(doorward: Any) -> None:
    seen = doorward("run", "--files", "20", "--", "false")
    assert seen.status == 1
    assert "20 open files for each process" in seen.err
    assert doorward("run", "--files", "20", "--", "true").err == ""


def test_limits_come_from_the_configuration_too(doorward: Any) -> None:
    doorward.home.mkdir(mode=0o700)
    (doorward.home / "config.toml").write_text('[limits]\nfiles = 33\ncpu_time = "1h"\n')
    assert doorward("run", "--", "sh", "-c", "ulimit -n").out == b"33\n"
    assert doorward("run", "--files", "44", "--", "sh", "-c", "ulimit -n").out == b"44\n"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--memory", "much"), ("--memory", "0"), ("--memory", "-1G"), ("--pids", "0"), ("--pids", "1.5"), ("--files", "3"),
     ("--cpu-time", "soon"), ("--cpu-time", "5 parsecs"), ("--files", "")],
)  # fmt: skip
def test_what_is_no_limit_is_a_usage_error(doorward: Any, option: str, value: str) -> None:
    seen = doorward("run", option, value, "--", "sh", "-c", "echo x > ran")
    assert seen.status == 2
    assert option in seen.err
    assert not (doorward.workspace / "ran").exists()


def test_a_session_that_is_gone_on_with_keeps_its_limits(doorward: Any) -> None:
    session = doorward("run", "--json", "--files", "50", "--", "true").document["session"]
    assert doorward("run", "--session", session, "--", "sh", "-c", "ulimit -n").out == b"50\n"
    assert doorward("run", "--session", session, "--files", "40", "--", "sh", "-c", "ulimit -n").out == b"40\n"
    looser = doorward("run", "--session", session, "--files", "60", "--", "true")
    assert looser.status == 2
    assert "began with 50" in looser.err


def test_the_bypass_flag_keeps_the_limits(doorward: Any) -> None:
    seen = doorward("run", "--dangerously-bypass-approvals-and-sandbox", "--files", "21", "--", "sh", "-c", "ulimit -n")
    assert seen.out == b"21\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="the kernel does not limit the number of root's processes")
def test_a_fork_bomb_stays_small(doorward: Any) -> None:
    bomb = "f() { f | f & }; f; sleep 1; echo alive"
    seen = doorward("run", "--pids", "20", "--timeout", "20", "--", "sh", "-c", bomb)
    assert seen.status in (0, 2)

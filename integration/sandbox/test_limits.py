"""Limits for real: what reaching each does to the command, and what is said of it."""

import os
from pathlib import Path

import pytest

from doorward.launcher.cgroups import delegation

PYTHON = "/usr/bin/python3"
BURN = "while :; do :; done"


def limited(sandbox, argv, **limits):
    return sandbox.run(argv, policy={"limits": limits, **limits.pop("policy", {})})


def hit(answer):
    return [(name, by) for name, _, by, _ in answer["limits_hit"]]


def test_processor_time_of_the_whole_run(sandbox):
    """Neither of the two processes uses it up alone."""
    answer = limited(sandbox, f"sh -c '{BURN}' & sh -c '{BURN}' & wait", cpu_time=0.4)
    assert answer["exit_code"] == 128 + 24  # SIGXCPU
    assert hit(answer) == [("cpu_time", "doorward")]
    assert answer["limits_hit"][0][1] == 0.4
    assert sandbox.gone() == []


def test_a_command_that_ignores_the_signal_is_killed(caller_sandbox):
    answer = limited(caller_sandbox, f"trap '' XCPU; {BURN}", cpu_time=0.8)
    assert answer["exit_code"] == 128 + 9
    assert hit(answer) == [("cpu_time", "doorward")]


def test_a_command_that_stays_below_hears_nothing(sandbox):
    answer = limited(sandbox, "exit 3", cpu_time=30, files=64)
    assert (answer["exit_code"], answer["limits_hit"]) == (3, [])
    assert answer["limits"] == {"cpu_time": "doorward", "files": "rlimit"}


def test_processor_time_without_a_sandbox(caller_sandbox):
    """Also of a process whose parent has gone."""
    answer = limited(
        caller_sandbox, f"(sh -c '{BURN}' &) ; sleep 30", cpu_time=0.3, policy={"mode": "unconfined", "network": "full"}
    )
    assert hit(answer) == [("cpu_time", "doorward")]
    assert answer["took"] < 20
    assert caller_sandbox.gone() == []


def test_open_files(sandbox):
    script = "import os\ntry:\n    while True: os.dup(0)\nexcept OSError as error: print(error.errno, os.dup.__name__)"
    answer = limited(sandbox, [PYTHON, "-c", script], files=16)
    assert answer["stdout"] == "24 dup\n"
    assert limited(sandbox, "ulimit -n; ulimit -Hn; ulimit -n 17", files=16)["stdout"].split() == ["16", "16"]


@pytest.fixture
def no_group(monkeypatch):
    """Only where no control group is delegated: else that one holds it, and the tests of groups are about that."""
    if delegation().controllers:
        pytest.skip("a control group is delegated here, so the kernel's own limits are not used")


def test_memory_of_a_process(sandbox, no_group):
    grow = "l = []\nwhile True: l.append(bytearray(1 << 20))"
    answer = limited(sandbox, [PYTHON, "-c", grow], memory=96 << 20)
    assert "MemoryError" in answer["stderr"]
    assert answer["limits"] == {"memory": "rlimit"}
    assert any("each process" in notice for notice in answer["notices"])


def test_processes_are_counted_in_the_sandbox_alone(sandbox, no_group):
    """The ones the user has outside do not count, and the limit is exact."""
    fork = "i=0; while [ $i -lt {n} ]; do sleep 5 & i=$((i+1)); done; echo all {n}"
    answer = limited(sandbox, fork.format(n=7), pids=8)
    if sandbox.is_root:
        assert "root's processes" in answer["unavailable"]
        assert "systemd-run" in answer["remedy"]
        return
    assert answer["stdout"] == "all 7\n"
    assert "all" not in limited(sandbox, fork.format(n=8), pids=8)["stdout"]
    assert answer["limits"] == {"pids": "rlimit"}


def test_root_with_best_effort_goes_on_and_says_so(caller_sandbox, no_group):
    if not caller_sandbox.is_root:
        pytest.skip("root only: the kernel limits an ordinary user's processes")
    answer = limited(caller_sandbox, "true", pids=8, policy={"require": "best-effort"})
    assert (answer["exit_code"], answer["limits"]) == (0, {})
    assert any("cannot be held" in notice for notice in answer["notices"])


# --- with a control group of this machine's own


@pytest.fixture
def group():
    found = delegation()
    if found.controllers != {"memory", "pids"}:
        pytest.skip(f"no control group is delegated here: {found.why}")
    yield found.parent
    assert [name for name in os.listdir(found.parent) if name.startswith("doorward-")] == []


def test_memory_of_the_whole_run(caller_sandbox, group):
    """Four processes that are small alone, and a file in /dev/shm, which is memory too."""
    four = (
        "import os, signal\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        x = b'x' * (30 << 20)\n"
        "        signal.pause()\n"
        "print(os.wait()[1])"
    )
    answer = limited(caller_sandbox, [PYTHON, "-c", four], memory=80 << 20)
    assert answer["stdout"] == "9\n"
    assert hit(answer) == [("memory", "cgroup")]
    answer = limited(caller_sandbox, "head -c 200M /dev/zero > /dev/shm/big", memory=64 << 20)
    assert hit(answer) == [("memory", "cgroup")]
    assert answer["limits"] == {"memory": "cgroup"}


def test_processes_of_the_whole_run(caller_sandbox, group):
    fork = "i=0; while [ $i -lt {n} ]; do sleep 5 & i=$((i+1)); done; echo all {n}"
    answer = limited(caller_sandbox, fork.format(n=7), pids=8)
    assert (answer["stdout"], hit(answer)) == ("all 7\n", [])
    answer = limited(caller_sandbox, fork.format(n=8), pids=8)
    assert "all" not in answer["stdout"]
    assert hit(answer) == [("pids", "cgroup")]


def test_a_group_goes_also_when_supervisor_and_shim_are_killed(caller_sandbox, group):
    steps = [["release"], ["say", "x"], ["hang"]]
    driver = caller_sandbox.start("sleep 60", policy={"limits": {"pids": 8}}, steps=steps)
    assert driver.stderr.read(1) == b"x"
    driver.kill()
    driver.communicate(timeout=20)
    assert caller_sandbox.gone() == []
    driver = caller_sandbox.start("sleep 60", policy={"limits": {"pids": 8}}, steps=steps)
    assert driver.stderr.read(1) == b"x"
    for pid, _ in caller_sandbox.survivors():
        Path(f"/proc/{pid}").exists() and os.kill(pid, 9)
    driver.communicate(timeout=20)
    assert caller_sandbox.gone() == []
    # nobody was left to take it back; the next run does
    assert limited(caller_sandbox, "true", pids=8)["exit_code"] == 0

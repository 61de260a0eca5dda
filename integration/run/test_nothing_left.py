"""Nothing outlives a run: no process, mount, namespace, temporary file or lock, also after SIGKILL of doorward."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

DEADLINE = 30


def _marked(marker: str) -> list[int]:
    """Processes that carry the marker in their environment or arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if marker.encode() in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _gone(marker: str) -> bool:
    """Wait until none is left, at most DEADLINE seconds."""
    until = time.monotonic() + DEADLINE
    while _marked(marker):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)  # there is no event for "a process that is not mine is gone"
    return True


def test_a_detached_grandchild_is_gone_and_its_output_is_kept(doorward: Any) -> None:
    """P-TT-06, P-TT-08."""
    doorward.env["MARK"] = marker = f"mark-{os.getpid()}-detached"
    seen = doorward("run", "--", "sh", "-c", "setsid sleep 600 & (sleep 600 &) ; echo done")
    assert seen.out == b"done\n"
    assert _gone(marker)


def test_output_through_a_substitution(doorward: Any) -> None:
    """P-TT-07."""
    doorward.env["MARK"] = marker = f"mark-{os.getpid()}-tee"
    seen = doorward("run", "--", "bash", "-c", "exec > >(tee -a log) 2>&1; echo a; exit 3")
    assert seen.status == 3
    assert _gone(marker)


def test_sigkill_of_doorward_ends_everything(doorward: Any) -> None:
    """P-TT-08."""
    doorward.env["MARK"] = marker = f"mark-{os.getpid()}-killed"
    process = doorward.start("run", "--", "sh", "-c", "setsid sleep 600 & echo up; sleep 600")
    assert process.stdout.readline() == b"up\n"
    process.kill()
    process.wait(10)
    process.stdout.close()
    process.stderr.close()
    assert _gone(marker)


def test_signals_are_forwarded_and_the_status_is_the_commands(doorward: Any) -> None:
    script = "trap 'echo got; exit 9' TERM INT HUP QUIT; echo up; while :; do sleep 0.05; done"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        process = doorward.start("run", "--", "sh", "-c", script)
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        out, _ = process.communicate(timeout=DEADLINE)
        assert (out, process.returncode) == (b"got\n", 9)


def test_a_second_signal_kills_the_tree(doorward: Any) -> None:
    process = doorward.start("run", "--", "sh", "-c", "trap 'echo first' TERM; echo up; while :; do sleep 0.05; done")
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == b"first\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 137


def test_fifty_concurrent_runs_ten_of_them_killed(doorward: Any) -> None:
    """The issue's own words: 50 runs, 10 killed with SIGKILL at random moments, and nothing is left."""
    doorward("run", "--", "true")  # makes the home and its caches
    mounts = Path("/proc/self/mountinfo").read_text()
    temporary = set(Path("/tmp").iterdir())
    doorward.env["MARK"] = marker = f"mark-{os.getpid()}-fifty"
    dice = random.Random(7)
    running = []
    for number in range(50):
        running.append((number, doorward.start("run", "--", "sh", "-c", "echo x > out-$$; sleep 0.05")))
        if number % 5 == 4:
            time.sleep(dice.uniform(0, 0.3))  # a random moment is the point
            running[-1][1].kill()
    statuses = []
    for number, process in running:
        process.communicate(timeout=120)
        statuses.append((number, process.returncode))
    assert [status for number, status in statuses if number % 5 != 4] == [0] * 40
    # A namespace lives as long as a process is in it, or a mount or a descriptor holds it (namespaces(7)); their
    # numbers are used again at once, so it is these that are looked for.
    assert _gone(marker)
    assert Path("/proc/self/mountinfo").read_text() == mounts
    # by name, for others use the folder too; what the tests themselves put there is called something else
    assert {path for path in set(Path("/tmp").iterdir()) - temporary if path.name.startswith("doorward")} == set()
    assert [path for path in doorward.home.rglob("*") if ".partial" in path.name or path.suffix == ".lock"] == []
    for path in doorward.rollouts():
        with path.open("rb") as file:  # no lock is left: a writer could go on
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

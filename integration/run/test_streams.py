"""Standard input of every kind, inherited children, and order between the streams."""

from __future__ import annotations

import os
import pty
import subprocess
from typing import Any

import pytest

DEADLINE = 60


@pytest.mark.parametrize("kind", ["closed", "null", "open pipe", "terminal"])
def test_a_command_that_does_not_read_finishes_whatever_stdin_is(doorward: Any, kind: str) -> None:
    """P-TT-09: and the child sees an open descriptor 0."""
    argv = doorward.argv("run", "--", "sh", "-c", "test -e /proc/self/fd/0 && echo open")
    opened: list[int] = []
    stdin: Any = subprocess.DEVNULL
    if kind == "closed":
        argv = ["sh", "-c", 'exec "$@" <&-', "sh", *argv]
    elif kind == "open pipe":
        stdin, writer = os.pipe()
        opened = [stdin, writer]
    elif kind == "terminal":
        master, stdin = pty.openpty()
        opened = [master, stdin]
    done = subprocess.run(
        argv, cwd=doorward.workspace, env=doorward.env, stdin=stdin, capture_output=True, timeout=DEADLINE, check=False
    )
    for descriptor in opened:
        os.close(descriptor)
    assert (done.returncode, done.stdout) == (0, b"open\n"), done.stderr


def test_an_inherited_child_does_not_confuse_the_wait(doorward: Any) -> None:
    """P-TT-10: started by exec in a shell that already has a child which ends first."""
    script = 'sleep 0.05 & exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *doorward.argv("run", "--", "sh", "-c", "sleep 0.3; exit 9")],
        cwd=doorward.workspace, env=doorward.env, capture_output=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 9


def test_no_defunct_process_is_left_while_it_runs(doorward: Any) -> None:
    """P-TT-10."""
    process = doorward.start("run", "--", "sh", "-c", "for i in 1 2 3; do (true &) ; done; echo up; read x", stdin=-1)
    assert process.stdout.readline() == b"up\n"
    states = subprocess.run(
        ["ps", "--ppid", str(process.pid), "-o", "stat="], capture_output=True, text=True, check=True
    ).stdout.split()
    process.communicate(b"\n", timeout=DEADLINE)
    assert states
    assert not [state for state in states if state.startswith("Z")]


def test_one_place_for_both_streams_keeps_the_order(doorward: Any) -> None:
    done = subprocess.run(
        doorward.argv("run", "--", "sh", "-c", "for i in 1 2 3 4; do echo o$i; echo e$i >&2; done"),
        cwd=doorward.workspace, env=doorward.env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert done.stdout == b"o1\ne1\no2\ne2\no3\ne3\no4\ne4\n"


def test_a_large_output_is_whole_on_the_way_out_and_a_blob_in_the_record(doorward: Any) -> None:
    seen = doorward("run", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x")
    assert seen.out == b"x" * 3_000_000
    session = doorward.rollouts()[0].stem[-36:]
    (output,) = [line["payload"]["output"] for line in doorward.lines(session) if line["type"] == "observation"]
    assert output["blob"]["bytes"] == 3_000_000
    (blob,) = [path for path in (doorward.home / "blobs").rglob("*") if path.is_file()]
    assert blob.stat().st_size < 300_000


def test_no_record_output_hands_the_descriptors_over(doorward: Any) -> None:
    seen = doorward("run", "--no-record-output", "--", "sh", "-c", "echo out; echo err >&2")
    assert (seen.out, seen.err) == (b"out\n", "err\n")
    session = doorward.rollouts()[0].stem[-36:]
    lines = doorward.lines(session)
    assert next(line for line in lines if line["type"] == "exec")["payload"]["output"] == "not-recorded"
    assert next(line for line in lines if line["type"] == "observation")["payload"]["output"] is None

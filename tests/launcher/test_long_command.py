"""The carrier of commands that are too long for bubblewrap, run without a sandbox."""

import os
import subprocess
import sys

import pytest

from doorward.launcher.interface import Command
from doorward.launcher.long_command import carried, carrier
from doorward.launcher.mounts import Entry, Kind, plan_mounts

OPEN = plan_mounts([Entry("/", Kind.READ)])


def carry(argv, env=None, cwd="/"):
    handle = os.memfd_create("command")
    os.write(handle, carried(Command(tuple(argv), cwd, env or {})).encode())
    os.lseek(handle, 0, os.SEEK_SET)
    try:
        return subprocess.run(
            [*carrier(OPEN), str(handle)], pass_fds=[handle], env={}, capture_output=True, check=False, timeout=60
        )
    finally:
        os.close(handle)


def test_arguments_and_environment_arrive_as_they_are():
    """P-EV-16, P-TT-11."""
    code = "import os, sys; sys.stdout.buffer.write(b'|'.join([os.fsencode(sys.argv[-1]), os.environb[b'V']]))"
    done = carry([sys.executable, "-c", code, *["x"] * 20_000, "\udcff"], {"V": "\udcfe", "PATH": "/bin"}, "/tmp")
    assert done.stdout == b"\xff|\xfe"


def test_the_environment_is_only_what_was_given():
    done = carry(["/usr/bin/env"], {"A": "1"}, "/tmp")
    assert sorted(done.stdout.split()) == [b"A=1", b"PWD=/tmp"]


def test_signals_are_as_a_command_expects_them():
    done = carry(["sh", "-c", "kill -PIPE $$"], {"PATH": "/usr/bin:/bin"})
    assert done.returncode == -13


def test_the_descriptor_does_not_reach_the_command():
    done = carry(["sh", "-c", "ls /proc/self/fd | wc -l"], {"PATH": "/usr/bin:/bin"})
    assert done.stdout.split() == [b"4"]


@pytest.mark.parametrize(("argv", "code"), [(["no-such-program"], 127), (["/"], 126)])
def test_what_cannot_be_executed(argv, code):
    done = carry(argv, {"PATH": "/usr/bin:/bin"})
    assert done.returncode == code
    assert argv[0].encode() in done.stderr


def test_a_script_without_a_first_line(tmp_path):
    (tmp_path / "script").write_text("exit 9\n")
    (tmp_path / "script").chmod(0o755)
    assert carry([str(tmp_path / "script")]).returncode == 9


def test_an_interpreter_must_be_visible_inside(monkeypatch):
    assert carrier(OPEN)[0] == os.path.realpath(sys.executable)
    monkeypatch.setattr(sys, "executable", "/no/such")
    hidden = plan_mounts([Entry("/", Kind.READ), Entry("/usr", Kind.HIDDEN)])
    assert carrier(hidden) == []

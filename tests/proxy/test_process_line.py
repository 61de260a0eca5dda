"""What is said of a process that is becoming another program; lines of real processes: `test_attribution.py`."""

import itertools
import os

import pytest

from doorward.proxy import process_line
from doorward.proxy.process_line import Line

SH, SLEEP = "/bin/sh", "/bin/sleep"
OLD, NEW = b"sh\0-c\0exec sleep 6\0", b"sleep\0006\0"


@pytest.fixture
def said(monkeypatch):
    """What is said where /proc gives these executables and arguments, read after read, the last of each for ever."""
    made = []

    def say(executables, arguments):
        for name, owner, values in (("_executable", process_line, executables), ("_arguments", Line, arguments)):
            left = itertools.chain(values, itertools.repeat(values[-1]))
            monkeypatch.setattr(owner, name, lambda _, left=left: next(left))
        made.append(Line([os.getpid()]))
        told = made[-1].described()
        return told["executable"], told["argv"]

    yield say
    for line in made:
        line.close()


@pytest.mark.parametrize(
    ("executables", "arguments", "expected"),
    [
        ([SH], [OLD], (SH, ["sh", "-c", "exec sleep 6"])),
        ([SH, SLEEP], [NEW], (SLEEP, ["sleep", "6"])),  # it became another one between the two reads
        ([SH, SLEEP], [b"", NEW], (SLEEP, ["sleep", "6"])),
        ([SLEEP], [b"", b"", NEW], (SLEEP, ["sleep", "6"])),  # and has no arguments yet
        ([SLEEP], [b""], (SLEEP, [])),  # nor gets any: not waited for
    ],
)
def test_executable_and_arguments_are_of_one_program(said, executables, arguments, expected):
    assert said(executables, arguments) == expected

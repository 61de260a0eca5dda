"""From argv to a command line, a program's file and a block of variables. The standard library is the oracle."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.launcher.interface import LaunchFailure
from doorward.launcher.windows_command_line import Program, command_line, environment_block, find_program

ENV = {"Path": r'C:\tools;"C:\more tools";C:\alias', "SystemRoot": r"C:\Windows", "PATHEXT": ".EXE;.BAT;.CMD"}


def find(*argv, files=(), aliases=(), env=ENV, cwd=r"C:\work"):
    return find_program(argv, env, cwd, lambda path: path in files, lambda path: path in aliases)


@pytest.mark.parametrize(
    "argv",
    [
        ["a"],
        ["a", ""],
        ["a", "b c"],
        ["a", 'b"c'],
        ["a", "b\\"],
        ["a", "b c\\"],
        ["a", 'b\\"c d'],
        ["a b", "\\\\x\\ z"],
    ],
)
def test_quoting(argv):
    assert command_line(tuple(argv)) == subprocess.list2cmdline(argv)


@given(st.lists(st.text(alphabet='ab \t"\\', max_size=8), min_size=1, max_size=4))
def test_quoting_of_anything(argv):
    assert command_line(tuple(argv)) == subprocess.list2cmdline(argv)


def test_a_program_is_looked_up_in_path_with_its_endings():
    assert find("make", "x", files=[r"C:\more tools\make.exe"]) == Program(
        r"C:\more tools\make.exe", r'"C:\more tools\make.exe" x'
    )
    assert find("make.EXE", files=[r"C:\tools\make.EXE"]).path == r"C:\tools\make.EXE"
    assert find("sub/make.exe", files=[r"C:\work\sub\make.exe"]).path == r"C:\work\sub\make.exe"


def test_never_in_the_working_folder():
    found = find("make", files=[r"C:\work\make.exe"])
    assert isinstance(found, LaunchFailure)
    assert found.kind == "not-found"


def test_a_store_alias_counts_only_if_nothing_else_has_the_name():
    """P-PL-05: the shell found through an alias of the store."""
    alias = r"C:\alias\pwsh.exe"
    found = find("pwsh", aliases=[alias])
    assert isinstance(found, LaunchFailure)
    assert found.kind == "not-executable"
    assert "Microsoft Store" in found.sentence and alias in found.sentence
    assert "MSI" in found.remedy
    assert find("pwsh", aliases=[r"C:\tools\pwsh.exe"], files=[r"C:\more tools\pwsh.exe"]).path == (
        r"C:\more tools\pwsh.exe"
    )


def test_a_batch_file_goes_through_cmd():
    found = find("go", "a b", files=[r"C:\tools\go.cmd"])
    assert found.path == r"C:\Windows\System32\cmd.exe"
    assert found.command_line == r'C:\Windows\System32\cmd.exe /d /s /c "C:\tools\go.cmd "a b""'


@pytest.mark.parametrize("argument", ['"&calc', "%PATH%", "a&b", "x|y", "^", "a\nb", "<in"])
def test_what_cmd_would_take_for_its_own_is_refused(argument):
    found = find("go", argument, files=[r"C:\tools\go.bat"])
    assert isinstance(found, LaunchFailure)
    assert "cmd.exe" in found.sentence


@pytest.mark.parametrize("argv", [(), ("",), ("a\0b",)])
def test_what_is_no_command(argv):
    assert find(*argv).kind == "malformed"


def test_more_than_windows_takes():
    assert find("a", "x" * 40000, files=[r"C:\tools\a.exe"]).kind == "too-large"


def test_variables():
    assert environment_block({"b": "2", "A": "1", "a": "3"}) == "a=3\0b=2\0\0"
    assert environment_block({"a=b": "1"}).kind == "malformed"

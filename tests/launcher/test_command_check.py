"""Which commands are told from the outside that they cannot start."""

import errno
import os

import pytest

from doorward.launcher.command_check import check_form, check_start, failed, failure_of_exec
from doorward.launcher.interface import Command, LaunchFailure
from doorward.launcher.mounts import Entry, Kind, Origin, plan_mounts


@pytest.fixture
def place(tmp_path):
    """A workspace with a bin folder, seen through a plan with a private and a hidden directory."""
    for name in ("bin", "hidden", "private"):
        (tmp_path / name).mkdir()
    plan = plan_mounts(
        [
            Entry("/", Kind.READ),
            Entry("/proc", Kind.PROCESSES),
            Entry(str(tmp_path), Kind.WRITE, Origin.EXACT),
            Entry(str(tmp_path / "hidden"), Kind.HIDDEN, Origin.EXACT),
            Entry(str(tmp_path / "private"), Kind.PRIVATE, Origin.EXACT),
        ]
    )
    return tmp_path, plan


def program(path, text="#!/bin/sh\n", mode=0o755):
    path.write_text(text)
    path.chmod(mode)
    return path


def check(place, *argv, cwd=None, path="bin"):
    directory, plan = place
    return check_start(Command(argv, str(cwd or directory), {"PATH": f"{directory}/{path}:/usr/bin:/bin"}), plan)


def test_what_is_there_may_start(place):
    program(place[0] / "bin/tool")
    assert check(place, "tool") is None
    assert check(place, "./bin/tool") is None
    assert check(place, "sh") is None


def test_what_is_nowhere_is_not_found(place):
    """P-TT-01."""
    assert check(place, "no-such-tool") == LaunchFailure("not-found", "no-such-tool: command not found.")
    assert check(place, "./gone").kind == "not-found"


def test_a_plain_file_is_not_executable(place):
    program(place[0] / "bin/tool", mode=0o644)
    assert check(place, "./bin/tool").kind == "not-executable"
    assert check(place, "tool").kind == "not-executable"
    assert check(place, "./bin").sentence == "./bin: is a directory."


def test_the_search_goes_on_after_a_file_that_may_not_be_executed(place):
    program(place[0] / "bin/sh", mode=0o644)
    assert check(place, "sh") is None


@pytest.mark.parametrize("where", ["hidden", "private"])
def test_what_is_not_visible_inside_is_said_to_be_so(place, where):
    program(place[0] / where / "tool")
    failure = check(place, f"./{where}/tool")
    assert failure.kind == "not-found"
    assert "sandbox" in failure.sentence
    assert failure.remedy.startswith("--read-only ")
    assert check(place, "tool", path=where).remedy == failure.remedy


def test_a_missing_interpreter_is_named(place):
    program(place[0] / "bin/tool", "#! /no/such -x\n")
    assert "/no/such" in check(place, "tool").sentence
    program(place[0] / "hidden/sh")
    program(place[0] / "bin/tool", f"#!{place[0]}/hidden/sh\n")
    assert "hidden/sh" in check(place, "tool").sentence


def test_a_working_directory(place):
    program(place[0] / "bin/tool")
    assert check(place, "tool", cwd="/no/such").kind == "directory"
    assert "hidden" in check(place, "tool", cwd=place[0] / "hidden").sentence
    (place[0] / "private/below").mkdir()
    assert "--add-dir" in check(place, "tool", cwd=place[0] / "private/below").remedy
    # the private directory itself exists inside
    assert check(place, "tool", cwd=place[0] / "private") is None


def form(*argv, **env):
    return check_form(Command(argv, "/", env))


def test_sizes_up_to_the_kernels(place):
    """P-EV-16."""
    assert form("x" * 131_071) is None
    assert form("a", V="x" * (131_071 - 2)) is None
    assert form(*["a"] * 2001) is None


@pytest.mark.parametrize(
    ("argv", "env", "numbers"),
    [
        (("x" * 131_072,), {}, ("131072", "131071")),
        (("\udcff" * 131_072,), {}, ("131072",)),
        (("é" * 65_536,), {}, ("131072",)),
        (("a",), {"V": "x" * 131_072}, ("131074",)),
        (("a", *["x" * 100_000] * 70), {}, ("70",)),
    ],
)
def test_sizes_above_are_told_in_bytes(argv, env, numbers):
    """P-EV-16."""
    failure = form(*argv, **env)
    assert failure.kind == "too-large"
    assert all(number in failure.sentence for number in numbers)


@pytest.mark.parametrize("argv", [(), ("",), ("a\0b",), ("a", "\0")])
def test_what_no_program_can_be_given(argv):
    """P-TT-11."""
    assert form(*argv).kind == "malformed"


@pytest.mark.parametrize("name", ["", "A=B", "A\0"])
def test_names_no_environment_holds(name):
    assert check_form(Command(("a",), "/", {name: "x"})).kind == "malformed"


def test_exit_codes():
    codes = {kind: failed(LaunchFailure(kind, "")).exit_code for kind in
             ("sandbox", "not-found", "not-executable", "too-large", "directory", "malformed")}  # fmt: skip
    assert codes == {
        "sandbox": 125, "not-found": 127, "not-executable": 126, "too-large": 126, "directory": 125, "malformed": 126,
    }  # fmt: skip


def test_error_numbers_of_exec():
    assert failure_of_exec("x", errno.ENOENT).kind == "not-found"
    assert failure_of_exec("x", errno.E2BIG).kind == "too-large"
    assert failure_of_exec("x", errno.EACCES).sentence == f"x: {os.strerror(errno.EACCES)}."

"""Actions taken apart: wrappers peeled, scripts found, and what is not certain said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.command_part import Part
from doorward.gates.unfolding import feeds_interpreter, unfold

Shell = Callable[..., Action]


def parts(shell: Shell, *argv: str) -> list[Part]:
    return list(unfold(shell(*argv)))


def words(shell: Shell, *argv: str) -> list[tuple[object, ...]]:
    return [part.words for part in parts(shell, *argv)]


@pytest.mark.parametrize(
    "wrapper",
    [
        "timeout 5",
        "timeout -s KILL 5",
        "timeout --signal=KILL --foreground 5s",
        "nice -n 10",
        "nice -10",
        "nice --adjustment=5",
        "env A=1",
        "env -i",
        "env -u X A=1 B=2",
        "stdbuf -oL",
        "setsid",
        "setsid -w",
        "nohup",
        "sudo",
        "sudo -u root -E A=1",
        "sudo --user=root --",
        "time -p",
        "doas -u root",
        "ionice -c2 -n 0",
        "command",
        "command -p",
        "exec",
        "exec -a other",
        "builtin",
        "busybox",
        "flock /tmp/l",
        "chroot /x",
        "strace -f -o log",
        "nohup nice env timeout 5",
        "/usr/bin/env -i",
    ],
)
def test_wrappers_are_peeled(shell: Shell, wrapper: str) -> None:
    """P-AP-09"""
    (part,) = parts(shell, *wrapper.split(), "git", "push")
    assert part.words == ("git", "push")
    assert [layer.words[layer.inner] for layer in part.outer][-1] == "git"


def test_variables_on_the_way_are_kept(shell: Shell) -> None:
    (part,) = parts(shell, "env", "A=1", "sudo", "B=2", "ls")
    assert part.env == {"A": "1", "B": "2"}


@pytest.mark.parametrize("wrapper", ["sudo -e", "env -S", "timeout --unheard-of 5", "nice -z", "flock -c"])
def test_an_option_that_is_not_known_leaves_the_rest_uncertain(shell: Shell, wrapper: str) -> None:
    (part,) = parts(shell, *wrapper.split(), "ls")
    assert part.doubt and part.words == (None, ...)


def test_a_wrapper_by_itself_is_a_command(shell: Shell) -> None:
    assert words(shell, "env") == [("env",)]
    assert words(shell, "command", "-v", "git") == [("type", "git")], "it only looks it up"


def test_xargs_and_its_like_add_words(shell: Shell) -> None:
    assert words(shell, "xargs", "-0", "-n", "1", "rm", "-f") == [("rm", "-f", ...)]
    assert words(shell, "xargs", "-I{}", "cp", "{}", "/x/{}") == [("cp", None, None, ...)]
    assert words(shell, "xargs", "-I", "%", "sh", "-c", "rm %")[0] == (None, ...)
    assert words(shell, "parallel", "-j2", "rm", "{}") == [("rm", None, ...)]


@pytest.mark.parametrize(
    "argv",
    [
        ("bash", "-c", "git push"),
        ("bash", "-lc", "git push"),
        ("bash", "-ic", "git push"),
        ("sh", "-xec", "git push", "name", "argument"),
        ("bash", "-c", "-l", "git push"),
        ("bash", "-o", "pipefail", "-c", "git push"),
        ("bash", "+o", "history", "-c", "git push"),
        ("bash", "--norc", "--rcfile", "x", "-c", "git push"),
        ("/usr/bin/env", "bash", "-c", "git push"),
        ("zsh", "-c", "git push"),
        ("dash", "-c", "git push"),
        ("busybox", "sh", "-c", "git push"),
        ("sh", "-c", "sh -c 'bash -c \"git push\"'"),
        ("watch", "-n2", "git push"),
        ("watch", "git", "push"),
    ],
)
def test_scripts_are_found_whatever_the_options(shell: Shell, argv: tuple[str, ...]) -> None:
    """P-AP-10, P-AP-12"""
    assert words(shell, *argv) == [("git", "push")]


@pytest.mark.parametrize(
    "argv",
    [("sh",), ("bash", "-i"), ("sh", "x.sh"), ("bash", "-s", "x"), ("fish", "-c", "ls"), ("sh", "-c"), ("su", "x")],
)
def test_a_shell_whose_commands_are_not_there_to_read_is_a_doubt(shell: Shell, argv: tuple[str, ...]) -> None:
    assert any(part.doubt for part in parts(shell, *argv))


def test_what_find_runs_is_a_part_of_its_own(shell: Shell) -> None:
    found = words(shell, "find", ".", "-exec", "rm", "-f", "{}", ";", "-execdir", "ls", "{}", "+")
    assert found[1:] == [("rm", "-f", None), ("ls", ...)]
    assert words(shell, "find", ".", "-name", "*.py") == [("find", ".", "-name", "*.py")]


def test_a_command_for_another_machine_is_a_script_there(shell: Shell) -> None:
    """P-AP-15"""
    assert words(shell, "ssh", "h", "git status && rm -rf x") == [
        ("ssh", "h", "git", "status"),
        ("ssh", "h", "rm", "-rf", "x"),
    ]
    assert words(shell, "ssh", "h", "git", "status", ";", "rm", "x")[1] == ("ssh", "h", "rm", "x")
    assert words(shell, "ssh", "-p", "22", "h", "ls") == [("ssh", "-p", "22", "h", "ls")]
    assert words(shell, "ssh", "h") == [("ssh", "h")]
    for option in (("-o", "ProxyCommand=./x"), ("-oProxyCommand=./x",), ("-o", "LocalCommand ./x"), ("-F", "config")):
        assert parts(shell, "ssh", *option, "h")[0].doubt, option


def test_wrapping_without_end_is_a_doubt(shell: Shell) -> None:
    assert any(part.doubt for part in parts(shell, *("nice",) * 1000, "ls"))


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("sh",), "sh"),
        (("bash", "-s", "--", "x"), "bash"),
        (("python3", "-"), "python3"),
        (("python3", "-u"), "python3"),
        (("perl",), "perl"),
        (("sh", "script.sh"), ""),
        (("python3", "-c", "print()"), ""),
        (("bash", "-lc", "ls"), ""),
        (("python3", "script.py"), ""),
        (("cat",), ""),
    ],
)
def test_interpreters_that_run_their_input(argv: tuple[str, ...], name: str) -> None:
    assert feeds_interpreter(argv) == name

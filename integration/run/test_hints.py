"""Hints after a failed command, each held to its word: what it says is done literally, and the same command works."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from ports import closed_port

ALONE = ("-c", "network.transparent=false")
CURL = ("curl", "-sS", "--max-time", "20")
DIAL = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 9).getpeername()[1])"
REMEDY = re.compile(r"(?:^|[.;:] )(?:to allow it: )?((?:--[a-z-]+|-[a-z]) \S+)(?= |$)")


def hint_of(err: str) -> str:
    """The one line of ours that follows a failed command."""
    lines = [line.removeprefix("doorward: ") for line in err.splitlines() if line.startswith("doorward: ")]
    assert len(lines) == 1, err
    return lines[0]


def options_of(hint: str) -> list[str]:
    """The first option that the sentence names, with its argument."""
    found = REMEDY.search(hint)
    assert found, hint
    return shlex.split(found[1])


def round_trip(doorward: Any, begin: str, *words: str, options: tuple[str, ...] = (), env: Any = None) -> bytes:
    """Runs, fails, does what the hint says, runs again and does not fail. The output of that."""
    failed = doorward("run", *options, "--", *words, env=env)
    hint = hint_of(failed.err)
    assert failed.status != 0 and hint.startswith(begin), failed
    again = doorward("run", *options, *options_of(hint), "--", *words, env=env)
    assert again.status == 0 and not any(line.startswith("doorward") for line in again.err.splitlines()), again
    out: bytes = again.out
    return out


def test_a_library_that_reads_no_proxy_variable(doorward: Any, origin: Any) -> None:
    """P-EV-08, P-EV-09, P-DN-04."""
    options = (*ALONE, *origin.reach())
    out = round_trip(doorward, "a name did not resolve", *CURL, "--noproxy", "*", origin.url(), options=options)
    assert out == b"hello\n"


@pytest.mark.parametrize("words", [("--proxy", "socks5://127.0.0.1:3128"), ("--socks5", "127.0.0.1:3128")])
def test_socks5_for_socks5h(doorward: Any, origin: Any, words: tuple[str, str]) -> None:
    """P-DN-04: the words it says in place of those it names."""
    options = (*ALONE, *origin.reach())
    failed = doorward("run", *options, "--", *CURL, *words, origin.url())
    found = re.search(r"write (\S+) .*in place of (\S+)$", hint_of(failed.err))
    assert failed.status == 97 and found, failed
    right = [word.replace(found[2], found[1]) for word in words]
    again = doorward("run", *options, "--", *CURL, *right, origin.url())
    assert (again.status, again.out, again.err) == (0, b"hello\n", "")


def test_a_missing_loopback_grant(doorward: Any, origin: Any) -> None:
    """P-EV-06, P-EV-17: also where only the command says which port; without a server there, that is said; none where
    it is granted."""
    assert round_trip(doorward, "nothing listens there", *CURL, f"http://127.0.0.1:{origin.port}/") == b"hello\n"
    dial = ("/usr/bin/python3", "-c", DIAL.replace("int(sys.argv[1])", str(origin.port)))
    assert round_trip(doorward, "nothing listens there", *dial).split() == [str(origin.port).encode()]
    with closed_port() as port:
        gone = doorward("run", "--", *CURL, f"http://127.0.0.1:{port}/")
        assert f"nothing listens on its port {port} now" in hint_of(gone.err)
        granted = doorward("run", "--allow-loopback", str(port), "--", *CURL, f"http://127.0.0.1:{port}/")
    assert granted.status != 0 and "nothing listens there" not in granted.err


def test_a_withheld_variable(doorward: Any) -> None:
    """The one that the command or its output names, not all of them."""
    env = {"MY_TOKEN": "x" * 20, "OTHER_SECRET": "y" * 20}
    words = ("sh", "-c", "exec \"$0\" -c \"import os; print(len(os.environ['MY' + '_TOKEN']))\"", sys.executable)
    out = round_trip(doorward, "MY_TOKEN was withheld", *words, options=("--add-dir", sys.prefix), env=env)
    assert out == b"20\n"


@pytest.fixture
def outside() -> Iterator[str]:
    """A folder that is seen inside: not below /tmp."""
    with tempfile.TemporaryDirectory(prefix="doorward-test-", dir="/var/tmp") as folder:
        yield folder


@pytest.mark.parametrize(
    ("begin", "words", "options"),
    [
        ("{work}/.git/hooks/x is protected", ("sh", "-c", "echo x > .git/hooks/x"), ()),
        ("{work}/.git/config is protected", ("git", "config", "user.name", "x"), ()),
        ("{outside}/x lies outside", ("sh", "-c", "echo x > $0/x", "{outside}"), ()),
        ("{work}/made cannot be written", ("/usr/bin/python3", "-c", "open('made', 'w')"), ("-s", "read-only")),
        ("something could not be written", ("sh", "-c", "cd .git; echo x > hooks/x"), ()),
    ],
)  # fmt: skip
def test_a_path_that_may_not_be_written(
    doorward: Any, outside: str, begin: str, words: tuple[str, ...], options: tuple[str, ...]
) -> None:
    """Told from what was printed; where that does not tell the path, the hint is how to hear it, and that one helps."""
    assert doorward("run", "--", "git", "init", "-q").status == 0
    begin = begin.format(work=doorward.workspace, outside=outside)
    words = tuple(word.replace("{outside}", outside) for word in words)
    failed = doorward("run", *options, "--", *words)
    hint = hint_of(failed.err)
    assert failed.status != 0 and hint.startswith(begin), failed
    if begin.startswith("something"):
        explained = doorward("run", "--explain-denials", "--", *words)
        assert "--explain-denials" in hint and explained.err.count("\n    to allow it: ") == 1, explained
        hint = explained.err.partition("    to allow it: ")[2]
        assert "something could not" not in explained.err, "told once"
        words_of = shlex.split(hint)
    else:
        words_of = options_of(hint)
    kept = () if words_of[:1] == [*options[:1]] else options  # the same option with another value
    again = doorward("run", *kept, *words_of, "--", *words)
    assert (again.status, again.err) == (0, ""), again


def test_several_causes_are_each_told_once_and_as_data(doorward: Any) -> None:
    """Under --json they stand in the document alone."""
    script = f"{shlex.join(CURL)} http://127.0.0.1:9/; echo x > .git/hooks/x; echo y > .git/hooks/y; exit 3"
    assert doorward("run", "--", "git", "init", "-q").status == 0
    seen = doorward("run", "--json", "--", "sh", "-c", script, env={"SOME_TOKEN": "x" * 20})
    told = seen.document["hints"]
    assert [each["cause"] for each in told] == ["loopback", "protected_path", "withheld_variable"]
    assert [each["remedy"] for each in told] == [
        "--allow-loopback 9", f"--add-dir {doorward.workspace}/.git/hooks", "--pass-env NAME",
    ]  # fmt: skip
    assert [each["message"] for each in told] == seen.document["notes"] and seen.err == ""


@pytest.mark.parametrize(
    "words",
    [
        ("sh", "-c", "echo 'Read-only file system: /no/such/place'; echo 'disk: Device or resource busy'; exit 1"),
        ("sh", "-c", "echo 'Could not resolve host: a.test'; exit 1"),
        ("sh", "-c", "echo 'Connection refused: 127.0.0.1:9'"),
        ("false",),
    ],
)
def test_words_alone_are_no_cause(doorward: Any, words: tuple[str, ...]) -> None:
    seen = doorward("run", "--json", "--", *words)
    assert [each["cause"] for each in seen.document["hints"]] in ([], ["protected_path"]) and seen.err == ""
    for each in seen.document["hints"]:
        assert each["remedy"] == "--explain-denials"  # what an unknown path leaves to do


def test_a_refusal_is_not_told_twice(doorward: Any, origin: Any) -> None:
    seen = doorward("run", "--json", "--", *CURL, "--fail", origin.url("b.test"))
    assert seen.status == 22 and len(seen.document["refusals"]) == 1
    assert (seen.document["hints"], seen.document["notes"]) == ([], [])

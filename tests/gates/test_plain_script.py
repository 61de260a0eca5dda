"""One plain command in a shell's script is that command; anything more is left as it is."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.gates.plain_script import unwrapped
from doorward.gates.unfolding import Surroundings, unfold_words


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (("bash", "-lc", "npm run test"), ("npm", "run", "test")),
        (("/bin/sh", "-c", "  npm 'run' \"test\"  "), ("npm", "run", "test")),
        (("zsh", "-lc", "echo 'a b'c \"d $\"".replace("$", "")), ("echo", "a bc", "d ")),
        (("sh", "-c", "bash -lc 'git status'"), ("git", "status")),
        (("sh", "-c", "echo ''"), ("echo", "")),
        (("npm", "run", "test"), ("npm", "run", "test")),
    ],
)
def test_a_wrapped_command_is_the_command(argv: tuple[str, ...], command: tuple[str, ...]) -> None:
    """P-AP-10, P-AP-21"""
    assert unwrapped(argv) == command


@pytest.mark.parametrize(
    "script",
    [
        *("a; b", "a && b", "a | b", "a &", "a\nb", "a > f", "a < f", "a $x", "a `b`", "a $(b)", "a *", "a ?", "a [b]"),
        *("a ~", "a {b,c}", "a \\b", "X=1 a", "! a", "if a", "eval a", "exec a", ". a", "(a)", "a # b", "", "a '"),
        *('a "$x"', "a !b", 'a "!b"', "=a", "'' a", "a=b", "-", "-x a", "+e a"),
    ],
)
def test_what_is_more_stays_a_script(script: str) -> None:
    assert unwrapped(("bash", "-c", script)) == ("bash", "-c", script)


@pytest.mark.parametrize(
    "argv", [("bash", "-ic", "a"), ("bash", "-c", "a", "b"), ("bash", "a"), ("mybash", "-c", "a"), ("bash", "-c"), ()]
)
def test_other_ways_to_start_a_shell_are_left_alone(argv: tuple[str, ...]) -> None:
    assert unwrapped(argv) == argv


@given(st.lists(st.text(st.sampled_from("ab-_/.'\" =$\\;*~!#"), max_size=5), min_size=1, max_size=4))
def test_a_shell_reads_the_same_words(words: list[str]) -> None:
    """Whatever is unwrapped is what POSIX sh makes of it."""
    script = " ".join(words)
    found = unwrapped(("sh", "-c", script))
    if found != ("sh", "-c", script):
        assert list(found) == shlex.split(script)


def test_the_shell_itself_agrees() -> None:
    script = "printf %s. 'a b' \"c d\" e=f --g=h 'i'\"j\"k"
    assert unwrapped(("sh", "-c", script)) == ("printf", "%s.", "a b", "c d", "e=f", "--g=h", "ijk")
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=20)
    assert done.stdout == b"a b.c d.e=f.--g=h.ijk."


def test_a_long_script_that_is_no_plain_command_is_told_at_once() -> None:
    """However long its words are: none is cut in every possible way."""
    script = "a" * 10_000 + " " + "b/c" * 10_000 + ";"
    assert unwrapped(("sh", "-c", script)) == ("sh", "-c", script)
    quoted = "'x'" * 2_000 + ";"
    assert unwrapped(("sh", "-c", quoted)) == ("sh", "-c", quoted)


_WORDS = ("a", "b.c", "-x", "--y=z", "env", "nice", "time", "exec", "/bin/a", "'b'", "A=1", "{", "}", "!", "a>b")
_ODD = st.text(st.sampled_from("ab-_/.'\" =$\\;*~!#|&<>(){}\n+:@%,^[]?"), min_size=1, max_size=4)


@given(st.sampled_from(["sh", "bash", "zsh"]), st.lists(st.sampled_from(_WORDS) | _ODD, min_size=1, max_size=4))
@settings(max_examples=400)
def test_the_grammar_agrees(shell: str, words: list[str]) -> None:
    """Two readers, one answer: to the reader of whole scripts, where it has no doubt, the script is what the unwrapped
    command is."""
    argv = (shell, "-c", " ".join(words))
    found = unwrapped(argv)

    def read(words: tuple[str, ...]) -> list[tuple[object, ...]]:
        parts = unfold_words(words, Surroundings())
        return [(part.words, part.doubt, part.env, part.writes, part.reads, part.risks) for part in parts]

    seen = read(argv)
    assert found == argv or seen == read(found) or any(doubt for _, doubt, *_ in seen)

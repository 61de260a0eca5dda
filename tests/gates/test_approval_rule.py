"""What "always" would write, and for what it is not offered."""

from __future__ import annotations

import json

import pytest

from doorward.gates.approval_rule import offered_rule

PLANTED = ("/srv/project", "/tmp")


def test_the_rule_is_about_exactly_these_words() -> None:
    """P-AP-10, P-AP-20: a rule is about the inner command, and says so in the words Codex reads."""
    for argv in (("npm", "run", "test"), ("bash", "-lc", "npm run test")):
        offer = offered_rule(argv, PLANTED)
        assert offer.rule == 'prefix_rule(pattern=["npm", "run", "test"], decision="allow")'
        assert "begins with exactly these words, in every folder, until the line is removed" in offer.sentence


@pytest.mark.parametrize(
    "argv",
    [
        *(("curl", "-s", "http://allowed.test/ip"), ("/usr/bin/wget", "x"), ("ssh", "h", "ls"), ("rsync", "a", "h:b")),
        *(("python3", "x.py"), ("python3.12", "x.py"), ("node22", "x.js"), ("perl5.36.0", "-e", "1"), ("Rscript", "x")),
        *(("bash", "-c", "a; b"), ("sh", "x.sh"), ("zsh",), ("busybox", "ls"), ("bash", "-lc", "python3 x.py")),
        *(("env", "ls"), ("xargs", "rm"), ("timeout", "5", "ls"), ("nohup", "ls"), ("find", ".", "-name", "x")),
        *(("sudo", "ls"), ("doas", "ls"), ("docker", "run", "x"), ("su", "-c", "ls"), ("SUDO.EXE", "ls")),
        *(("./build.sh",), ("/srv/project/bin/tool",), ("/tmp/tool",), ("bin/tool",)),
        *(("ls", "a\nb"), ("ls", "\udcff"), ("ls", "\x1b[2J"), ("ls", "x" * 5000), ()),
    ],
)
def test_nothing_is_offered_that_would_open_everything(argv: tuple[str, ...]) -> None:
    """P-AP-20"""
    offer = offered_rule(argv, PLANTED)
    assert offer.rule == "" and offer.sentence.isprintable()


def test_quotes_and_letters_are_written_as_starlark_reads_them() -> None:
    words = ["grün", 'a"b', "c\\d", "\U0001f600"]
    offer = offered_rule(words, PLANTED)
    pattern = offer.rule.removeprefix("prefix_rule(pattern=").removesuffix(', decision="allow")')
    assert json.loads(pattern) == words and "grün" in pattern

"""Patterns: what they mean, and what one walk finds."""

import re

import pytest

from doorward.launcher.globs import is_glob, is_name_anywhere, split_glob, translate

MATCHES = [
    ("*.key", "a.key", True),
    ("*.key", "a/b.key", False),
    ("**/*.key", "a.key", True),
    ("**/*.key", "a/b/c.key", True),
    ("a/**/z", "a/z", True),
    ("a/**/z", "a/b/c/z", True),
    ("a/**/z", "ab/z", False),
    ("a/**", "a/b/c", True),
    ("a/**", "a", False),
    ("?.txt", "a.txt", True),
    ("?.txt", "ab.txt", False),
    ("?", "/", False),
    ("[ab].txt", "b.txt", True),
    ("[!ab].txt", "b.txt", False),
    ("[!ab].txt", "c.txt", True),
    ("[]a]x", "]x", True),
    ("[a", "[a", True),
    ("[^a]x", "/x", False),
    ("a.b", "axb", False),
    ("a+b*", "a+bc", True),
    ("*", ".hidden", True),
    ("*", "new\nline", True),
    ("*\udcff", "a\udcff", True),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), MATCHES)
def test_what_matches(pattern, path, expected):
    assert (re.fullmatch(translate(pattern), path) is not None) is expected


SPLITS = [
    ("src/a/**/x.key", ("src/a", "**/x.key")),
    ("*.key", (".", "**/*.key")),
    ("./*.key", (".", "*.key")),
    ("/a/b/*.key", ("/a/b", "*.key")),
    ("/*.key", ("/", "*.key")),
    ("data/**", ("data", "")),
    ("**", (".", "")),
    ("**/x", (".", "**/x")),
]


@pytest.mark.parametrize(("text", "expected"), SPLITS)
def test_the_fixed_part_is_split_off(text, expected):
    assert split_glob(text) == expected


def test_what_is_a_pattern():
    assert is_glob("a*") and is_glob("a?") and is_glob("[a]")
    assert not is_glob("a/b.c")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [(name, True) for name in ("**/*.key", "**/a?[!b]", "**/.env", "**/a.+b")]
    + [(name, False) for name in ("*.key", "**/a/*.key", "**/a/**", "**", "a")],
)
def test_what_looks_at_a_name_alone(pattern, expected):
    assert is_name_anywhere(translate(pattern)) is expected

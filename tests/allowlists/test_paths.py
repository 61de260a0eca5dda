"""Path globs by segments, and the spellings of a path that are never judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.paths import MalformedGlob, OddPath, canonical_path, literal, matches, parse_glob


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b", "/a/b/", False),
        ("/a/b", "/A/b", False),
        ("/a/*", "/a/b", True),
        ("/a/*", "/a/", False),
        ("/a/*", "/a/b/c", False),
        ("/a/**", "/a", True),
        ("/a/**", "/a/", True),
        ("/a/**", "/a/b/c", True),
        ("/a/**", "/ab", False),
        ("/**", "/", True),
        ("/**/x", "/x", True),
        ("/**/x", "/a/b/x", True),
        ("/**/x", "/a/bx", False),
        ("/a-*.tar.gz", "/a-1.2.tar.gz", True),
        ("/a-*.tar.gz", "/a-1/2.tar.gz", False),
        ("/a.b", "/axb", False),
        ("/a%20b", "/a%20b", True),
        ("/ä", "/%C3%A4", True),
        ("/a", "/a?x=1", True),
        ("/a", "/%61", True),
    ],
)
def test_what_a_glob_matches(glob: str, path: str, expected: bool) -> None:
    assert matches(parse_glob(glob), canonical_path(path)) is expected


@pytest.mark.parametrize(
    "target",
    [
        "/a/../b", "/a/./b", "/..", "/a/%2e%2e/b", "/a/.%2E/b", "/a/..;x=1/b", "/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b",
        "/a//b", "//a", "/a%00b", "/a%0d%0a", "/%252e%252e/b", "/%2", "/%zz", "/%ff", "/%c0%ae%c0%ae/", "/a b", "/ä",
        "a", "*", "", "http://b.test/a", "/" + "a" * 5000, "/a%7f",
    ],
)  # fmt: skip
def test_what_servers_read_differently_is_not_judged(target: str) -> None:
    with pytest.raises(OddPath):
        canonical_path(target)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [("a/b", "/a/b"), ("", "/**"), ("/a**", "/a*"), ("/a?x=1", None), ("/a/../b", None), ("/a//b", None)],
)
def test_what_is_no_glob(text: str, suggestion: str | None) -> None:
    with pytest.raises(MalformedGlob) as error:
        parse_glob(text)
    assert error.value.suggestion == suggestion


@given(st.text(alphabet="/.%2eEfFa;\\*", max_size=12))
def test_a_path_below_a_glob_stays_below_it_for_every_reader(tail: str) -> None:
    """Whatever is let through under /a/** has no segment that climbs, however often it is decoded."""
    from posixpath import normpath
    from urllib.parse import unquote

    target = f"/a/{tail}"
    try:
        path = canonical_path(target)
    except OddPath:
        return
    if matches("/a/**", path):
        for reading in (target, unquote(target), unquote(unquote(target)), target.replace(";", "/")):
            assert f"{normpath(reading.replace(chr(92), '/'))}/".startswith("/a/")


def test_a_glob_for_one_path_alone() -> None:
    assert literal("/a/b") == "/a/b"
    assert literal("/a*") is None

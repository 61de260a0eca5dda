"""Suggested spellings: right for the usual mistakes, always valid, none where it would be a guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.pattern import Kind, Pattern, parse_pattern
from doorward.allowlists.spelling import canonical, suggest


@pytest.mark.parametrize(
    ("entry", "suggestion"),
    [
        ("https://*.allowed.test", "*.allowed.test"),
        ("https://allowed.test:8443/path?x#y", "allowed.test:8443"),
        ("allowed.test/path", "allowed.test"),
        ("user@allowed.test", "allowed.test"),
        ("https://user:secret@allowed.test/", "allowed.test"),
        (" allowed.test ", "allowed.test"),
        ('"Allowed.test"', "allowed.test"),
        ("*.com", "*.NAME.com"),
        ("**.co.uk", "*.NAME.co.uk"),
        ("", None),
        ("@pip", None),
        ("ex*ample.test", None),
        ("a.*.test", None),
        ("*.*.test", "*.test"),
        ("*a.test", "*.a.test"),
        ("**a.test", "*.a.test"),
        ("api.*", None),
        ("*.*.com", "*.NAME.com"),
        (".a.test", "a.test"),
        ("a..test", "a.test"),
        ("::1", "[::1]"),
        ("10.0.0.5/8", "10.0.0.0/8"),
        ("a.test:443x", "a.test"),
    ],
)
def test_usual_mistakes(entry: str, suggestion: str | None) -> None:
    """P-DM-08, P-DM-09."""
    assert suggest(entry, wildcard_above_suffix=False) == suggestion


def test_a_deny_may_stand_above_a_suffix() -> None:
    assert suggest("https://*.com", wildcard_above_suffix=True) == "*.com"


@given(st.text(alphabet="abz.*:/@[]-_ 0129%\tü", max_size=30))
def test_every_suggestion_parses(entry: str) -> None:
    suggestion = suggest(entry, wildcard_above_suffix=False)
    if suggestion is not None:
        parse_pattern(suggestion)


def test_one_spelling_for_one_meaning() -> None:
    assert canonical(Pattern(Kind.BELOW, "a.test"), ((8000, 8010),)) == "*.a.test:8000-8010"
    assert canonical(Pattern(Kind.EXACT, "a.test"), ((1, 65535),)) == "a.test:*"
    assert canonical(Pattern(Kind.EXACT, "a.test"), None) == "a.test"

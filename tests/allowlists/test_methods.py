"""Methods a rule lists: strict spelling, and the nearest one in the error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.methods import (
    KNOWN_METHODS,
    MalformedMethods,
    is_method,
    methods_text,
    parse_methods,
    unknown_methods,
)


def test_methods_are_upper_case_tokens() -> None:
    """RFC 9110 §9.1, §5.6.2."""
    assert parse_methods(["GET", "HEAD"]) == ("GET", "HEAD")
    assert parse_methods(("POST", "GET", "POST")) == ("GET", "POST")
    assert parse_methods(["M-SEARCH", "X_1!"]) == ("M-SEARCH", "X_1!")


@pytest.mark.parametrize(
    ("listed", "suggestion"),
    [
        (["get"], ["GET"]),
        (["Get", "HEAD"], ["GET", "HEAD"]),
        ([" GET"], ["GET"]),
        (["gett"], ["GET"]),
        (["propfnd"], ["PROPFIND"]),
        ("GET", ["GET"]),
        ("get, head", ["GET", "HEAD"]),
        (["G E T"], None),
        (["GET\r\n"], ["GET"]),
        (["GET,HEAD"], None),
        (["GÉT"], None),
        (["ＧＥＴ"], None),
        ([""], None),
        (["1"], None),
        (["*"], None),
        ([], None),
        (["CONNECT"], None),
        (["GET", 5], None),
        (5, None),
        (None, None),
        ({"GET": True}, None),
    ],
)
def test_what_is_no_list_of_methods(listed: object, suggestion: list[str] | None) -> None:
    with pytest.raises(MalformedMethods) as error:
        parse_methods(listed)
    assert error.value.suggestion == suggestion
    if suggestion is not None:
        assert parse_methods(suggestion) == tuple(sorted(suggestion))


def test_a_method_that_nobody_registered_is_legal_but_likely_a_slip() -> None:
    assert unknown_methods(("GET", "GETT", "ZZZZZ")) == (("GETT", "GET"), ("ZZZZZ", None))
    assert unknown_methods(tuple(KNOWN_METHODS)) == ()


def test_every_known_method_can_be_listed() -> None:
    assert parse_methods(list(KNOWN_METHODS)) == tuple(sorted(KNOWN_METHODS))


@given(st.text(alphabet="GETget -*,!1É\n", max_size=6))
def test_what_can_be_listed_is_what_is_method_says(text: str) -> None:
    try:
        assert parse_methods([text]) == (text,)
    except MalformedMethods:
        assert not is_method(text)
    else:
        assert is_method(text)


def test_for_messages() -> None:
    assert methods_text(("GET",)) == "GET"
    assert methods_text(("GET", "HEAD")) == "GET and HEAD"
    assert methods_text(("GET", "HEAD", "POST")) == "GET, HEAD and POST"

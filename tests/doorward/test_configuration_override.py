"""`-c key=value`: what is TOML is TOML, what is not is text, what only looks like TOML is an error."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.configuration_override import MalformedOverride, parse_override


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("network.mode=off", ("network", "mode"), "off"),
        ("a = true", ("a",), True),
        ("a=false", ("a",), False),
        ("a=7", ("a",), 7),
        ("a=-7", ("a",), -7),
        ("a=1_000", ("a",), 1000),
        ("a=0x1F", ("a",), 31),
        ("a=1.5", ("a",), 1.5),
        ("a=007", ("a",), "007"),
        ("a=30s", ("a",), "30s"),
        ("a=127.0.0.1", ("a",), "127.0.0.1"),
        ("a=10.0.0.0/8", ("a",), "10.0.0.0/8"),
        ("a=::1", ("a",), "::1"),
        ("a=http://p:3128", ("a",), "http://p:3128"),
        ("a=*.test", ("a",), "*.test"),
        ("a=", ("a",), ""),
        ("a=b=c", ("a",), "b=c"),
        ("a=two words # kept", ("a",), "two words # kept"),
        ('a="x"', ("a",), "x"),
        ("a='x'", ("a",), "x"),
        (r'a="\u0041"', ("a",), "A"),
        ('a="""x"""', ("a",), "x"),
        ("a=[\"x\", 'y',]", ("a",), ["x", "y"]),
        ("a=[]", ("a",), []),
        ('a=["x", 1, {h = "y"}]', ("a",), ["x", 1, {"h": "y"}]),
        ('a={"x.y" = "z"}', ("a",), {"x.y": "z"}),
        ("a.\"b.c\".'d=e'=1", ("a", "b.c", "d=e"), 1),
        (" a . b = 1 ", ("a", "b"), 1),
        ("a=True", ("a",), "True"),
    ],
)
def test_key_and_value(text: str, path: tuple[str, ...], value: object) -> None:
    assert parse_override(text) == (path, value)
    assert type(parse_override(text)[1]) is type(value)


@pytest.mark.parametrize(
    "text",
    ["", "a", "=1", "a.=1", ".a=1", "a b=1", 'a="x', "a=[1", 'a=["x"', "a={b}", "a='x'\nb=1", "a=[1]\nb=2", "ä=1"],
)
def test_what_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(MalformedOverride):
        parse_override(text)


@given(st.text(alphabet="[]{}\"'\\,=+-.0123456789abtruefalsinX# \n", max_size=14))
def test_the_short_way_agrees_with_tomllib(text: str) -> None:
    try:
        document = tomllib.loads(f"v = {text.strip()}")
    except tomllib.TOMLDecodeError:
        document = {}
    try:
        value = parse_override(f"v={text}")[1]
    except MalformedOverride:
        assert len(document) != 1
        return
    if len(document) == 1:
        assert repr(value) == repr(document["v"])
    else:
        assert value == text.strip()

"""Credentials in heads and bodies: put in where they belong, noticed everywhere else, whatever the spelling."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.proxy.inspection.credentials import (
    BodyWatch,
    Credential,
    Leak,
    Mirror,
    leak_in,
    replaced_header,
    replaced_target,
)

REAL, MARK = "ghp_0123456789abcdef", "ghp_9876543210fedcba"


def credential(place: str = "header", field: str = "authorization") -> Credential:
    return Credential("gh", REAL, MARK, place, field)


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("made", "name", "value", "expected"),
    [
        (credential(), "authorization", f"Bearer {MARK}", f"Bearer {REAL}"),
        (credential(), "authorization", f"token {MARK}", f"token {REAL}"),
        (credential(), "authorization", "Bearer else", None),
        (credential(), "x-api-key", MARK, None),
        (credential("header", "x-api-key"), "x-api-key", MARK, REAL),
        (credential("basic"), "authorization", basic(f"me:{MARK}"), basic(f"me:{REAL}")),
        (credential("basic"), "authorization", f"Bearer {MARK}", None),
        (credential("basic"), "authorization", "Basic !!", None),
        (credential("cookie", "sid"), "cookie", f"a=b; sid={MARK}; c=d", f"a=b; sid={REAL}; c=d"),
        (credential("cookie", "sid"), "cookie", f"other={MARK}", None),
    ],
)
def test_a_header(made: Credential, name: str, value: str, expected: str | None) -> None:
    assert replaced_header(made, name, value) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (f"/x?key={MARK}&a=b", f"/x?key={REAL}&a=b"),
        (f"/x?key={quote(MARK, safe='')}", f"/x?key={REAL}"),
        (f"/x?other={MARK}", None),
        (f"/{MARK}", None),
        ("/x", None),
    ],
)
def test_a_target(target: str, expected: str | None) -> None:
    assert replaced_target(credential("query", "key"), target) == expected
    assert replaced_target(credential(), target) is None


@pytest.mark.parametrize("text", [REAL, MARK])
@pytest.mark.parametrize(
    "spelling",
    [
        "{}", "Bearer {}", "/x?a={}", "x{}y", "basic", "percent",
    ],
)  # fmt: skip
def test_a_leak_in_whatever_spelling(text: str, spelling: str) -> None:
    made = {
        "basic": basic(f"me:{text}"),
        "percent": "/x?a=" + "".join(f"%{ord(mark):02x}" for mark in text),
    }.get(spelling, spelling.format(text))
    found = leak_in(["nothing", made], [credential()])
    assert found is not None and found.credential.name == "gh" and found.real is (text == REAL)
    assert REAL not in str(found) and REAL not in repr(found.credential)


def test_no_leak() -> None:
    assert leak_in(["Bearer ghp_other", "/x", basic("me:you")], [credential()]) is None


@given(st.lists(st.integers(1, 30), max_size=8), st.sampled_from([REAL, MARK, quote(REAL)]))
def test_a_body_in_any_pieces_does_not_carry_it(sizes: list[int], text: str) -> None:
    """Three letters of it may have gone when the fourth tells: nobody waits for what may never come."""
    body = b"before " + text.encode() + b" after"
    found: list[Leak] = []
    watch = BodyWatch([credential()], found.append)
    out = passed(watch, body, sizes)
    assert len(found) == 1
    assert len(out) <= len(b"before ") + 3
    assert b"before ".startswith(out[:7])


@given(st.lists(st.integers(1, 30), max_size=8), st.binary(max_size=60))
def test_a_body_without_it_passes_unchanged(sizes: list[int], body: bytes) -> None:
    found: list[Leak] = []
    watch = BodyWatch([credential()], found.append)
    assert passed(watch, body, sizes) == body or found
    assert passed(Mirror([credential()]), body, sizes) == body or REAL.encode() in body


@given(st.lists(st.integers(4, 30), max_size=8))
def test_an_echo_is_turned_back(sizes: list[int]) -> None:
    """What a server answers tells the command no more than it knew, and is as long as it was."""
    body = b"you sent " + REAL.encode() + b" and " + REAL.encode()
    out = passed(Mirror([credential()]), body, sizes)
    assert len(out) == len(body) and REAL.encode()[4:] not in out
    assert Mirror([credential()]).header(REAL.encode()) == MARK.encode()


def passed(watch: Any, body: bytes, sizes: list[int]) -> bytes:
    out = b""
    for size in sizes:
        if body:
            out += watch(body[:size])
            body = body[size:]
    if body:
        out += watch(body)
    return out + bytes(watch(b""))

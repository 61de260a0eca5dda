"""What operations a GraphQL request holds, and that what is unclear holds none."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("graphql", reason="graphql-core comes with doorward[inspect], from Python 3.12 on")

from doorward.proxy.inspection.operations import (
    LIMIT,
    may_hold_operations,
    operations_in_body,
    operations_in_target,
)


def told(query: object, **more: object) -> tuple[str, ...] | None:
    body = json.dumps({"query": query, **more}).encode()
    return operations_in_body("/graphql", "application/json", "", body)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("{ viewer { login } }", ("query.viewer",)),
        ("query Read { a b }", ("query.a", "query.b")),
        ("mutation Read { close }", ("mutation.close",)),
        ("query A { a } mutation B { close }", ("query.a", "mutation.close")),
        ("{ renamed: close }", ("query.close",)),
        ("query A { ...F } fragment F on Query { a ...G } fragment G on Query { b }", ("query.a", "query.b")),
        ("{ ... on Query { a } ... @include(if: true) { b } }", ("query.a", "query.b")),
        ("subscription { news }", ("subscription.news",)),
    ],
)
def test_every_field_at_the_top_of_every_operation(query: str, expected: tuple[str, ...]) -> None:
    """What an operation calls itself, or a field is renamed to, counts for nothing."""
    assert told(query, operationName="Read") == expected


@pytest.mark.parametrize(
    "query",
    [
        "", "{", "{ ...F }", 5, None, ["{ a }"], "fragment F on Q { a }", "query A { ...F } fragment F on Q { ...F }",
        "{ ...F } fragment F on Q { a } fragment F on Q { b }", "{ a " + "b " * 30_000 + "}", "type A { b: C }",
    ],
)  # fmt: skip
def test_what_is_unclear(query: object) -> None:
    assert told(query) is None


@pytest.mark.parametrize(
    "body",
    [
        b"", b"x", b"[]", b"5", b'{"variables": {}}', b'{"query": "{ a }", "query": "mutation { close }"}',
        b'{"extensions": {"persistedQuery": {"sha256Hash": "x"}}}', b'[{"query": "{ a }"}, {}]', b'\xff',
    ],
)  # fmt: skip
def test_bodies_that_are_unclear(body: bytes) -> None:
    assert operations_in_body("/graphql", "application/json", "", body) is None


def test_other_ways_to_send_one() -> None:
    batch = json.dumps([{"query": "{ a }"}, {"query": "mutation { b }"}]).encode()
    assert operations_in_body("/graphql", "application/json; charset=utf-8", "", batch) == ("query.a", "mutation.b")
    assert operations_in_body("/graphql", "application/graphql", "", b"{ a }") == ("query.a",)
    assert operations_in_target("/graphql?query=%7Ba%7D") == ("query.a",)
    assert operations_in_target("/graphql?query=%7Ba%7D&query=mutation%7Bb%7D") is None
    assert operations_in_target("/graphql") is None


def test_what_two_readers_may_read_differently() -> None:
    body = b'{"query": "{ a }"}'
    assert operations_in_body("/graphql?query=mutation%7Bb%7D", "application/json", "", body) is None
    assert operations_in_body("/graphql", "application/json", "gzip", body) is None
    assert operations_in_body("/graphql", "application/json", "", body + b" " * LIMIT) is None


def test_whose_body_is_read() -> None:
    assert may_hold_operations("POST", "application/json; charset=utf-8")
    assert may_hold_operations("POST", "application/graphql+json")
    assert not may_hold_operations("GET", "application/json")
    assert not may_hold_operations("POST", "text/plain")

"""The GraphQL operations a request holds, as `query.viewer`: the fields at the top of every operation in it.

What an operation calls itself counts for nothing, since the sender chose it. What is not read without doubt has no
operations, and a rule that lists some then allows nothing: two keys of one name, a document by its hash alone
(persisted queries), a query in the address beside one in the body, a body that is encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

LIMIT = 1024 * 1024
"""Bytes of a body that is read for its operations; beyond it has none."""

_DEEPEST = 50


class _Unclear(Exception):
    """No operations can be told."""


def may_hold_operations(method: str, content_type: str) -> bool:
    """Whether the body must be read before the request is judged."""
    kind = content_type.partition(";")[0].strip().lower()
    return method == "POST" and (kind.endswith("json") or kind == "application/graphql")


def operations_in_target(target: str) -> tuple[str, ...] | None:
    """Those of a GET."""
    given = [value for name, value in _parameters(target) if name == "query"]
    return _told(given) if len(given) == 1 else None


def operations_in_body(target: str, content_type: str, content_encoding: str, body: bytes) -> tuple[str, ...] | None:
    """Those of a POST."""
    if content_encoding or len(body) > LIMIT or any(name == "query" for name, _ in _parameters(target)):
        return None
    try:
        if content_type.partition(";")[0].strip().lower() == "application/graphql":
            return _told([body.decode("utf-8")])
        told = json.loads(body, object_pairs_hook=_once)
        requests = told if isinstance(told, list) else [told]
        documents = [each["query"] for each in requests]
    except (ValueError, KeyError, TypeError, RecursionError, _Unclear):
        return None
    return _told(documents) if documents and all(isinstance(each, str) for each in documents) else None


def _parameters(target: str) -> list[tuple[str, str]]:
    return parse_qsl(target.partition("?")[2], keep_blank_values=True)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Unclear
    return found


def _told(documents: Iterable[str]) -> tuple[str, ...] | None:
    try:
        from graphql import GraphQLError, parse
    except ImportError:
        return None
    found: dict[str, None] = {}
    try:
        for document in documents:
            found.update(dict.fromkeys(_operations(parse(document, no_location=True, max_tokens=20_000))))
    except (GraphQLError, RecursionError, _Unclear):
        return None
    return tuple(found) or None


def _operations(document: Any) -> Iterable[str]:
    from graphql import FragmentDefinitionNode, OperationDefinitionNode

    fragments: dict[str, Any] = {}
    for each in document.definitions:
        if isinstance(each, FragmentDefinitionNode):
            if each.name.value in fragments:
                raise _Unclear
            fragments[each.name.value] = each
    for each in document.definitions:
        if isinstance(each, OperationDefinitionNode):
            for field in _fields(each.selection_set, fragments, 0):
                yield f"{each.operation.value}.{field}"


def _fields(selected: Any, fragments: dict[str, Any], depth: int) -> Iterable[str]:
    from graphql import FieldNode, FragmentSpreadNode

    if depth > _DEEPEST:
        raise _Unclear
    for each in selected.selections:
        if isinstance(each, FieldNode):
            yield each.name.value
        elif isinstance(each, FragmentSpreadNode):
            if each.name.value not in fragments:
                raise _Unclear
            yield from _fields(fragments[each.name.value].selection_set, fragments, depth + 1)
        else:
            yield from _fields(each.selection_set, fragments, depth + 1)

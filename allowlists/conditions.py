"""What a rule may ask of a request besides its host: paths, query, headers, GraphQL operations.

    {host = "api.test", paths = ["/v1/**"], query = {service = "git-upload-pack"},
     headers = {content-type = "application/json"}, graphql = ["query", "mutation.addComment"]}

- `paths`: globs of `paths.py`; one must match.
- `query` and `headers`: each name with one value or a list of them, `*` for any run of characters. The name must be
  there, and each of its values must match one of them; an empty list means that it must not be there.
- `graphql`: `query`, `mutation` or `subscription`, alone or with the name of a field at the top of the operation. Every
  such field of every operation in the request must be listed: what an operation calls itself is the sender's to choose.

All of them must hold. What cannot be read without doubt holds never.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from doorward.allowlists.paths import MalformedGlob, OddPath, canonical_path, matches, parse_glob
from doorward.named_tuple import NamedTuple

Wanted = tuple[tuple[str, tuple[str, ...]], ...]
"""Names, each with the globs its values must match; none for a name that must not be there."""

KEYS = ("paths", "query", "headers", "graphql")

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_OPERATION = re.compile(r"(?:query|mutation|subscription)(?:\.[_A-Za-z*][_0-9A-Za-z*]*)?")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class MalformedConditions(ValueError):
    """The message is one plain clause; `key` is the key at fault, `suggestion` a value for it that can be used."""

    def __init__(self, key: str, problem: str, suggestion: object = None) -> None:
        super().__init__(problem)
        self.key = key
        self.suggestion = suggestion


class Request(NamedTuple):
    """What is judged of a request. `target` in origin form, as sent; header names in lower case; `operations` as
    `query.viewer`, None where the body was not read or is no GraphQL; `upgrade`: it asks to switch to a protocol in
    which no request can be seen."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    operations: tuple[str, ...] | None = None
    upgrade: bool = False


class Conditions(NamedTuple):
    """() where nothing is asked."""

    paths: tuple[str, ...] = ()
    query: Wanted = ()
    headers: Wanted = ()
    graphql: tuple[str, ...] = ()

    def unmet(self, request: Request) -> str | None:
        """What does not hold, as a clause for a sentence; None if all does."""
        if self.paths:
            try:
                path = canonical_path(request.target)
            except OddPath as error:
                return f"its path is not judged, since {error}"
            if not any(matches(glob, path) for glob in self.paths):
                return f"the path {path} is not among {', '.join(self.paths)}"
        if self.query:
            given = _query(request.target)
            if given is None:
                return "its query is encoded in a way that servers read differently"
            found = _unmet(self.query, given)
            if found is not None:
                return f"the query parameter {found}"
        if self.headers:
            found = _unmet(self.headers, request.headers)
            if found is not None:
                return f"the header {found}"
        if self.graphql:
            if not request.operations:
                return "its body is not a GraphQL request that can be judged"
            for operation in request.operations:
                if not any(_operation_matches(listed, operation) for listed in self.graphql):
                    return f"the GraphQL operation {operation} is not among {', '.join(self.graphql)}"
        return None

    def table(self) -> dict[str, object]:
        """As a rule's table has it."""
        found: dict[str, object] = {}
        if self.paths:
            found["paths"] = list(self.paths)
        for key, wanted in (("query", self.query), ("headers", self.headers)):
            if wanted:
                found[key] = {name: list(globs) for name, globs in wanted}
        if self.graphql:
            found["graphql"] = list(self.graphql)
        return found


def parse_conditions(table: Mapping[str, object]) -> Conditions | None:
    """The conditions of a rule's table; None without any. Raises MalformedConditions."""
    if not any(key in table for key in KEYS):
        return None
    return Conditions(
        _paths(table["paths"]) if "paths" in table else (),
        _wanted("query", table["query"]) if "query" in table else (),
        _wanted("headers", table["headers"]) if "headers" in table else (),
        _operations(table["graphql"]) if "graphql" in table else (),
    )


def _paths(listed: object) -> tuple[str, ...]:
    texts = _texts("paths", "paths is a list of paths, as text", listed, '["/v1/**"]')
    found = []
    for text in texts:
        try:
            found.append(parse_glob(text))
        except MalformedGlob as error:
            better = [error.suggestion if each is text else each for each in texts] if error.suggestion else None
            raise MalformedConditions("paths", str(error), better) from None
    return tuple(dict.fromkeys(found))


def _operations(listed: object) -> tuple[str, ...]:
    texts = _texts("graphql", "graphql is a list of operations, as text", listed, '["query"]')
    for text in texts:
        if _OPERATION.fullmatch(text) is None:
            raise MalformedConditions(
                "graphql",
                f"{text!r} is no operation: write query, mutation or subscription, or one of them with a field, such "
                "as mutation.addComment",
            )
    return tuple(dict.fromkeys(texts))


def _texts(key: str, what: str, listed: object, example: str) -> list[str]:
    if isinstance(listed, str):
        raise MalformedConditions(key, what, [listed])
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise MalformedConditions(key, f"{what}, such as {example}")
    if not listed:
        raise MalformedConditions(key, f"{key} is empty, which allows nothing; left out, it allows everything")
    return list(listed)


def _wanted(key: str, table: object) -> Wanted:
    if not isinstance(table, Mapping) or not table:
        raise MalformedConditions(key, f'{key} is a table of names and values, such as {{name = "value"}}')
    found: dict[str, tuple[str, ...]] = {}
    for name, value in table.items():
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list | tuple) or not all(isinstance(each, str) for each in values):
            raise MalformedConditions(key, f"in {key} the value of {name} is a text or a list of texts")
        if key == "headers":
            name = name.lower()
            if _HEADER.fullmatch(name) is None:
                raise MalformedConditions(key, f"{name!r} is no header's name")
            if name in ("host", ":authority"):
                raise MalformedConditions(key, "the Host header always names the rule's host; it needs no condition")
        found[name] = tuple(values)
    return tuple(sorted(found.items()))


def _unmet(wanted: Wanted, given: Iterable[tuple[str, str]]) -> str | None:
    given = tuple(given)
    for name, globs in wanted:
        values = [value for each, value in given if each == name]
        if not globs:
            if values:
                return f"{name} must not be there"
        elif not values:
            return f"{name} is missing"
        elif not all(any(_glob(glob).fullmatch(value) is not None for glob in globs) for value in values):
            return f"{name} is not {' or '.join(globs)}"  # without the value: it may hold a secret
    return None


def _query(target: str) -> list[tuple[str, str]] | None:
    """The parameters; None where servers may read others."""
    query = target.partition("?")[2]
    if not query:
        return []
    if ";" in query or _BROKEN_ESCAPE.search(query) is not None:
        return None
    from urllib.parse import parse_qsl

    try:
        return parse_qsl(query, keep_blank_values=True, strict_parsing=False, errors="strict")
    except ValueError:
        return None


def _operation_matches(listed: str, operation: str) -> bool:
    return _glob(listed if "." in listed else f"{listed}.*").fullmatch(operation) is not None


@lru_cache(512)
def _glob(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)

"""Sets and takes out one value in a TOML text: comments, order and everything else stay.

As `toml_edit` does with arrays: an edit that cannot be shown to mean exactly what was wanted is not made.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

import tomlkit

from doorward.toml_edit import Uneditable

Value = str | bool


def with_value(text: str, path: Sequence[str], value: Value) -> str:
    """The text with `value` at the dotted `path`, whose tables are made where they are not there. Raises Uneditable."""
    before = _document(text)
    expected = copy.deepcopy(before)
    inside = expected
    for name in path[:-1]:
        inside = inside.setdefault(name, {})
        if not isinstance(inside, dict):
            raise Uneditable(f"{'.'.join(path[:-1])} is no table in it")
    inside[path[-1]] = value
    if expected == before:
        return text
    comments = text.count("#")
    return _first_right((new for new in _settings(text, path, value) if new.count("#") >= comments), text, expected)


def without_value(text: str, path: Sequence[str]) -> str:
    """The text without the value at `path`, nor the table that held nothing else. Raises Uneditable."""
    before = _document(text)
    holders: list[Any] = [before]
    for name in path[:-1]:
        inner = holders[-1].get(name)
        if not isinstance(inner, dict):
            return text
        holders.append(inner)
    if path[-1] not in holders[-1]:
        return text
    expected = copy.deepcopy(before)
    _remove(expected, path)
    return _first_right(_removals(text, path), text, expected)


def _document(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Uneditable(f"it is not valid TOML: {error}") from None
    except RecursionError:
        raise Uneditable("it is nested deeper than any configuration is") from None


def _remove(document: Any, path: Sequence[str]) -> None:
    """Take the value out, and every table that is empty then."""
    inside = document
    for name in path[:-1]:
        inside = inside[name]
    del inside[path[-1]]
    if not inside and len(path) > 1:
        _remove(document, path[:-1])


def _first_right(proposals: Iterator[str], old: str, expected: dict[str, Any]) -> str:
    """The first text that means what is wanted."""
    for text in proposals:
        if "\r\n" in old and not re.search(r"(?<!\r)\n", old):
            text = re.sub(r"(?<!\r)\n", "\r\n", text)
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if _full(found) == _full(expected):
            return text
    raise Uneditable("its form is too unusual to edit safely; please edit it by hand")


def _full(table: dict[str, Any]) -> dict[str, Any]:
    """`table` without the tables that hold nothing: a header may stay when its last key goes."""
    kept = {name: _full(value) if isinstance(value, dict) else value for name, value in table.items()}
    return {name: value for name, value in kept.items() if value != {}}


def _settings(text: str, path: Sequence[str], value: Value) -> Iterator[str]:
    line = f"{_key(path[-1])} = {tomlkit.item(value).as_string()}\n"
    document: Any = tomlkit.parse(text)
    inside = document
    for name in path:
        inside = inside.get(name) if hasattr(inside, "get") else None
    if inside is not None:  # it is there: on its line, with what else stands on it
        _set(document, path, value)
        yield tomlkit.dumps(document)
    header = ".".join(_key(name) for name in path[:-1])
    # behind the table's header, where no comment comes to stand before something else than it did
    for found in re.finditer(rf"^[ \t]*\[[ \t]*{re.escape(header)}[ \t]*\][^\n]*(?:\n|\Z)", text, re.MULTILINE):
        yield f"{_ended(text[: found.end()])}{line}{text[found.end() :]}"
    gap = "\n" if text.strip() else ""
    yield f"{_ended(text)}{gap}[{header}]\n{line}" if header else f"{line}{gap}{text}"
    document = tomlkit.parse(text)
    _set(document, path, value)
    yield tomlkit.dumps(document)


def _set(document: Any, path: Sequence[str], value: Value) -> None:
    inside = document
    for name in path[:-1]:
        if name not in inside:
            inside[name] = tomlkit.table()
        inside = inside[name]
    inside[path[-1]] = value


def _removals(text: str, path: Sequence[str]) -> Iterator[str]:
    # the whole line with its comment, or the header with it, where nothing else stands there
    key = re.escape(_key(path[-1]))
    header = re.escape(".".join(_key(name) for name in path[:-1]))
    alone = rf"(?:^|\n)[ \t]*\[[ \t]*{header}[ \t]*\][ \t\r]*\n[ \t]*{key}[ \t]*=[^\n]*(?=\n|\Z)"
    for pattern in (alone, rf"^[ \t]*{key}[ \t]*=[^\n]*(?:\n|\Z)"):
        for found in re.finditer(pattern, text, re.MULTILINE):
            yield text[: found.start()] + text[found.end() :]
    document: Any = tomlkit.parse(text)
    inside = document
    for name in path[:-1]:
        inside = inside[name]
    del inside[path[-1]]
    yield tomlkit.dumps(document)
    document = tomlkit.parse(text)
    _remove(document, path)
    yield tomlkit.dumps(document)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else tomlkit.item(name).as_string()


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"

"""Changes one array in a TOML file: comments, order and everything else stay, and the file is replaced in one step.

Each edit is checked: what the new text means must be exactly what the old one meant, with the entries added or taken
away. An edit that cannot be shown to be right is not made.
"""

from __future__ import annotations

import fcntl
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import tomlkit
from tomlkit.items import AoT

from doorward.configuration_file import read_text
from doorward.errors import EngineError
from doorward.toml_array import with_entries, without_entry

Entry = str | Mapping[str, object]

_LOCK_TIMEOUT_S = 5.0


class Uneditable(Exception):
    """The text cannot be edited by a program; the message is one plain clause about it."""


def entries_of(text: str, table: str, name: str) -> list[Any]:
    """The array `table.name` as data, [] where it is not set. Raises Uneditable."""
    return list(_array(_document(text), table, name))


def with_added(text: str, table: str, name: str, entries: Sequence[Entry]) -> str:
    """The text with the entries at the end of the array `table.name`, which is made if it is not there. Raises
    Uneditable."""
    before = _document(text)
    array = _array(before, table, name)
    if name not in before.get(table, {}):
        proposals = _with_new_array(text, table, name, entries)
    elif _is_array_of_tables(text, table, name):
        entries = [{"host": entry} if isinstance(entry, str) else entry for entry in entries]
        proposals = _with_more_tables(text, table, name, entries)
    else:
        items = [_item(entry) for entry in entries]
        proposals = _with_array_text(text, table, name, lambda old: with_entries(old, items))
    return _first_right(proposals, before, table, name, [*array, *map(_plain, entries)], text)


def without(text: str, table: str, name: str, places: Collection[int]) -> str:
    """The text without the entries at these places of the array `table.name`, nor the comments on their lines. Raises
    Uneditable."""
    before = _document(text)
    kept = [entry for place, entry in enumerate(_array(before, table, name)) if place not in places]
    last_first = sorted(places, reverse=True)
    if _is_array_of_tables(text, table, name):
        proposals = _with_fewer_tables(text, table, name, last_first)
    else:
        proposals = _with_array_text(text, table, name, lambda old: reduce(without_entry, last_first, old))
    return _first_right(proposals, before, table, name, kept, text)


def change_file(path: str, change: Callable[[str], str]) -> bool:
    """Put `change(text)` in the place of the file's text; True if that differs. A file that is not there has the text
    "", and is made if there is something to write; its folder exists.

    The new file has mode 0600 and the owner of the old one. A link stays one: what it leads to is replaced. Whoever
    changes a file this way meanwhile waits. Raises configuration_file.UnusableFile, EngineError, and what `change`
    raises; then nothing was written.
    """
    path = os.path.realpath(path)
    try:
        with _locked(os.path.dirname(path)):
            old = read_text(path)
            new = change(old or "")
            if new == (old or ""):
                return False
            _replace(path, new.encode())
    except OSError as error:
        raise EngineError(f"cannot write {path}: {error.strerror}") from None
    return True


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Hold a lock on the folder itself, so that no lock file is left behind."""
    import time

    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + _LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise EngineError(f"{folder} is locked by another program; nothing was written") from None
                time.sleep(0.02)
        yield
    finally:
        os.close(fd)


def _replace(path: str, data: bytes) -> None:
    """Raises OSError."""
    folder, name = os.path.split(path)
    fresh = os.path.join(folder, f".{name}.doorward-new")
    try:
        os.unlink(fresh)  # of an edit that was killed; we hold the lock
    except FileNotFoundError:
        pass
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            os.fchmod(fd, 0o600)  # whatever the umask
            try:
                owner = os.stat(path)
            except FileNotFoundError:
                pass
            else:
                if os.geteuid() == 0:
                    os.fchown(fd, owner.st_uid, owner.st_gid)
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def _document(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Uneditable(f"it is not valid TOML: {error}") from None
    except RecursionError:
        raise Uneditable("it is nested deeper than any configuration is") from None


def _array(document: Mapping[str, Any], table: str, name: str) -> list[Any]:
    inside = document.get(table, {})
    array = inside.get(name, []) if isinstance(inside, dict) else None
    if not isinstance(array, list):
        raise Uneditable(f"{table}.{name} is no array in it")
    return array


def _first_right(
    proposals: Iterator[str], before: dict[str, Any], table: str, name: str, array: list[Any], old: str
) -> str:
    """The first text that means what the old one meant, but for the array."""
    expected = _meaning({**before, table: {**before.get(table, {}), name: array}}, table, name)
    for text in proposals:
        text = _with_line_ends_of(old, text)
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if _meaning(found, table, name) == expected:
            return text
    raise Uneditable("its form is too unusual to edit safely; please edit it by hand")


def _meaning(document: dict[str, Any], table: str, name: str) -> dict[str, Any]:
    """An array that lost its last entry may stay as `[]` or go with its header."""
    inside = document.get(table)
    kept = {key: value for key, value in inside.items() if key != name or value} if isinstance(inside, dict) else inside
    return {**document, table: kept or {}}


def _with_line_ends_of(old: str, new: str) -> str:
    if "\r\n" in old and not re.search(r"(?<!\r)\n", old):
        return re.sub(r"(?<!\r)\n", "\r\n", new)
    return new


def _with_array_text(text: str, table: str, name: str, change: Callable[[str], str]) -> Iterator[str]:
    """Texts in which the array is changed: one for each place where its text stands."""
    document: Any = tomlkit.parse(text)
    old = document[table][name].as_string()
    new = change(old)
    at = text.find(old)
    while at >= 0:
        yield text[:at] + new + text[at + len(old) :]
        at = text.find(old, at + 1)


def _with_more_tables(text: str, table: str, name: str, entries: Sequence[Entry]) -> Iterator[str]:
    document: Any = tomlkit.parse(text)
    for entry in entries:
        more = tomlkit.table()
        more.update(_plain(entry))
        document[table][name].append(more)
    yield tomlkit.dumps(document)


def _with_fewer_tables(text: str, table: str, name: str, places: Sequence[int]) -> Iterator[str]:
    document: Any = tomlkit.parse(text)
    for place in places:
        del document[table][name][place]
    yield tomlkit.dumps(document)


def _is_array_of_tables(text: str, table: str, name: str) -> bool:
    document: Any = tomlkit.parse(text)
    return isinstance(document[table][name], AoT)


def _with_new_array(text: str, table: str, name: str, entries: Sequence[Entry]) -> Iterator[str]:
    """Texts that set an array which is not there yet, the most readable first; not all of them need be TOML."""
    lines = "".join(f"    {_item(entry)},\n" for entry in entries)
    block = f"{name} = [\n{lines}]\n"
    # behind the table's header, where no comment comes to stand before something else than it did
    for header in re.finditer(rf"^[ \t]*\[[ \t]*[\"']?{table}[\"']?[ \t]*\][^\n]*(?:\n|\Z)", text, re.MULTILINE):
        yield f"{_ended(text[: header.end()])}{block}{text[header.end() :]}"
    gap = "\n" if text.strip() else ""
    yield f"{_ended(text)}{gap}[{table}]\n{block}"
    # `table.other = …` and `table = {other = …}`
    document: Any = tomlkit.parse(text)
    document[table][name] = [_plain(entry) for entry in entries]
    yield tomlkit.dumps(document)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _item(entry: Entry) -> str:
    """The entry as TOML writes it on one line."""
    if isinstance(entry, str):
        return tomlkit.item(entry).as_string()
    table = tomlkit.inline_table()
    table.update(_plain(entry))
    return table.as_string()


def _plain(entry: Entry) -> Any:
    """The entry as a TOML parser gives it."""
    if isinstance(entry, str):
        return entry
    return {key: list(value) if isinstance(value, list | tuple) else value for key, value in entry.items()}

"""Brings rollouts of Codex (and of other doorward homes) in: plain or compressed, legacy or paginated.

The bytes are taken over as they are, so offsets that forks name, times and numbers stay true. Behind them one record
of ours says where they came from; it accounts for every byte before it (`chain.py`), so that from the import on any
change shows. What is here already is left alone: importing twice adds nothing.
"""

import json
import os
from collections.abc import Iterator
from hashlib import sha256

from doorward.named_tuple import NamedTuple
from doorward.sessions.folders import Found, Problem
from doorward.sessions.history import base_of, history_file
from doorward.sessions.home import Home, StoreError, private_folder
from doorward.sessions.ids import session_in
from doorward.sessions.items import imported, renamed, turn_change
from doorward.sessions.lifecycle import archive, is_name
from doorward.sessions.line import Line, Totals
from doorward.sessions.lookup import SessionRef
from doorward.sessions.reading import lines_of
from doorward.sessions.rollout import Rollout
from doorward.sessions.stored_file import COMPRESSED, open_stored
from doorward.sessions.summary import session_meta
from doorward.sessions.unnamed_file import UnnamedFile

_CHUNK = 1 << 20
_DEEPEST = 8
_INDEX = "session_index.jsonl"
_NAME_DAY = slice(len("rollout-"), len("rollout-2025-11-29"))


class Imported(NamedTuple):
    """One rollout that is here now."""

    id: str
    source: str
    path: str
    archived: bool
    base: str | None
    """The session whose lines it shares; None where it shares none."""


def import_rollouts(home: Home, folder: str) -> Iterator[Imported | Problem]:
    """Takes over every rollout below `folder` (a CODEX_HOME, a folder of rollouts, one file), the oldest first.

    Those under `archived_sessions` are archived here. What is not taken is given as a Problem. Raises StoreError when
    the home cannot be written or the folder read.
    """
    if not os.path.lexists(folder):
        raise StoreError(f"{folder} does not exist")
    home.ensure()
    found = sorted(_below(os.path.abspath(folder)), key=lambda each: os.path.basename(each.path))
    names = _names(os.path.abspath(folder))
    if not found:
        raise StoreError(f"{folder} holds no rollout-TIME-UUID.jsonl, plain or .zst")
    for each in found:
        if isinstance(each, Problem):
            yield each
        elif history_file(home, each.id) is not None:
            yield Problem(each.path, f"is here already: session {each.id}")
        else:
            try:
                yield _imported(home, each, names.get(each.id))
            except StoreError as error:
                yield Problem(each.path, f"is not imported: {str(error).removeprefix(each.path).strip()}")


def _below(folder: str, depth: int = _DEEPEST) -> Iterator[Found | Problem]:
    name = os.path.basename(folder)
    session = session_in(name)
    if session is not None and not os.path.isdir(folder):
        if os.path.islink(folder):
            yield Problem(folder, "a link, and links are not read")
        else:
            yield Found(session, folder, "/archived_sessions/" in folder)
        return
    if not os.path.isdir(folder) or os.path.islink(folder) or not depth:
        return
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield Problem(folder, f"cannot be read: {error.strerror}")
        return
    for name in names:
        yield from _below(f"{folder}/{name}", depth - 1)


def _names(folder: str) -> dict[str, str]:
    """The names that Codex gave its threads: the last line of an id in the index of the home that `folder` is in."""
    names: dict[str, str] = {}
    for _ in range(_DEEPEST):
        index = f"{folder}/{_INDEX}"
        if os.path.isfile(index) and not os.path.islink(index):
            with open(index, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    try:
                        entry = json.loads(line)
                        names[str(entry["id"])] = str(entry["thread_name"])
                    except (ValueError, RecursionError, LookupError, TypeError):
                        continue  # a bad line loses only its name
            break
        folder = os.path.dirname(folder)
    return names


def _imported(home: Home, found: Found, called: str | None) -> Imported:
    name = os.path.basename(found.path).removesuffix(COMPRESSED)
    day = home.sessions
    for part in name[_NAME_DAY].split("-"):
        if not part.isdigit():
            raise StoreError("its name has no date")
        day = f"{day}/{part}"
        private_folder(day)
    path = f"{day}/{name}"
    digest, size = _copied(found.path, day, path)
    try:
        base = base_of(path)
        shared = None if base is None else _shared(home, base.session, base.end_byte)
        with Rollout.open(home, path, shared=shared) as rollout:
            rollout.append(*imported(found.path, size=size, sha256=digest))
            if called is not None and is_name(called):
                rollout.append(*renamed(found.id, called))
            rollout.sync()
    except BaseException:
        os.unlink(path)
        raise
    if found.archived:
        path = archive(home, SessionRef(found.id, None, path, False)).path
    return Imported(found.id, found.path, path, found.archived, None if base is None else base.session)


def _copied(source: str, folder: str, target: str) -> tuple[str, int]:
    """The plain bytes at their place; their hash and number."""
    descriptor = open_stored(source)
    made = UnnamedFile(folder)
    try:
        size = os.fstat(descriptor).st_size
        if session_meta(descriptor, size) is None:
            raise StoreError("has no session_meta near its start, so it is no rollout")
        digest, position = sha256(), 0
        while position < size and (data := os.pread(descriptor, min(_CHUNK, size - position), position)):
            position += len(data)
            digest.update(data)
            made.write(data)
        if not made.publish(target):
            raise StoreError(f"{target} exists already")
        return digest.hexdigest(), position
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror}") from error
    finally:
        made.discard()
        os.close(descriptor)


def _shared(home: Home, session: str, end: int) -> Totals:
    """How many turns the lines that a fork shares amount to; none where they are not here."""
    path = history_file(home, session)
    if path is None:
        return Totals()
    before = base_of(path)
    totals = _shared(home, before.session, before.end_byte) if before is not None else Totals()
    descriptor = open_stored(path)
    try:
        turns = sum(
            isinstance(line, Line) and turn_change(line.type, line.payload) == "started"
            for line in lines_of(descriptor, min(end, os.fstat(descriptor).st_size))
        )
    finally:
        os.close(descriptor)
    return totals._replace(turn=totals.turn + turns)

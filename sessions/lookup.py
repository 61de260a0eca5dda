"""Finds a session by what a person typed: its UUID first, then its exact name."""

import json
import os
from collections.abc import Iterator

from doorward.named_tuple import NamedTuple
from doorward.sessions import chain
from doorward.sessions.folders import Found, Problem, expected, rollouts
from doorward.sessions.home import Home, StoreError
from doorward.sessions.ids import as_uuid
from doorward.sessions.regular_file import open_regular
from doorward.sessions.summary import summarise

_HEAD = 8192
"""Bytes; a first record of ours is much shorter."""


class SessionRef(NamedTuple):
    """One session that was found."""

    id: str
    name: str | None
    path: str
    archived: bool


class SessionLookupError(LookupError):
    """No one session is meant. `remedy` says what to do."""

    def __init__(self, sentence: str, remedy: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.remedy = remedy


class SessionNotFound(SessionLookupError):
    """No session has this id or name."""


class SessionAmbiguous(SessionLookupError):
    """Several sessions have this name (`ids`), or several files this id (`paths`)."""

    def __init__(self, sentence: str, remedy: str, ids: tuple[str, ...], paths: tuple[str, ...]) -> None:
        super().__init__(sentence, remedy)
        self.ids = ids
        self.paths = paths


def find_session(home: Home, text: str, *, archived: bool | None = None) -> SessionRef:
    """The session whose id is `text`, else the one whose name is exactly `text`.

    `archived` restricts the search to archived (True) or active (False) ones; with None an active one is preferred,
    and an archived one has to be told by its `archived`. Files without a readable record are never found by name and
    never hide another. Raises SessionNotFound, SessionAmbiguous.
    """
    identifier = as_uuid(text)
    folders = (False, True) if archived is None else (archived,)
    matches: list[SessionRef] = []
    if identifier:
        matches = [_ref(found) for found in expected(home, identifier) if found.archived in folders][:1]
        for folder in folders:
            matches = matches or [_ref(found) for found in _in(home, folder) if found.id == identifier]
    spellings = _spellings(text)
    for folder in folders:
        candidates = (found for found in _in(home, folder) if _may_be_named(found.path, spellings))
        matches = matches or [ref for ref in map(_ref, candidates) if ref.name == text]
    if not matches:
        raise SessionNotFound(f"no session has the id or name {text!r}", "doorward sessions --all lists them")
    if len(matches) > 1:
        ids = tuple(dict.fromkeys(match.id for match in matches))
        paths = tuple(match.path for match in matches)
        if len(ids) == 1:
            raise SessionAmbiguous(f"{len(paths)} files have the id {ids[0]}", "move all but one away", ids, paths)
        remedy = f"give one of the ids: {', '.join(ids)}"
        raise SessionAmbiguous(f"{len(ids)} sessions are named {text!r}", remedy, ids, paths)
    return matches[0]


def _in(home: Home, archived: bool) -> Iterator[Found]:
    for found in rollouts(home, archived=archived):
        if not isinstance(found, Problem):
            yield found


def _spellings(name: str) -> tuple[bytes, bytes]:
    """The name as it stands in JSON: with escapes, and without."""
    plain = json.dumps(name, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    return json.dumps(name)[1:-1].encode("ascii"), plain


def _may_be_named(path: str, spellings: tuple[bytes, bytes]) -> bool:
    """Whether a file's first or last bytes, where its name stands, hold these bytes: a look that costs a tenth.

    True wherever that cannot be told: compressed, a long first record, an end that was torn off.
    """
    if not path.endswith(".jsonl"):
        return True
    try:
        descriptor = open_regular(path)
    except StoreError:
        return False
    try:
        size = os.fstat(descriptor).st_size
        ends = os.pread(descriptor, _HEAD, 0)
        if b"\n" not in ends:
            return True
        if size > len(ends):
            ends += os.pread(descriptor, chain.METADATA_LIMIT, max(len(ends), size - chain.METADATA_LIMIT))
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return not ends.endswith(b"\n") or any(spelling in ends for spelling in spellings)


def _ref(found: Found) -> SessionRef:
    try:
        name = summarise(found).name
    except StoreError:
        # it can still be meant by its id: opening it will say what is wrong
        name = None
    return SessionRef(found.id, name, found.path, found.archived)

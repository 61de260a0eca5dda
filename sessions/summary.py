"""What one session is, from the first and the last bytes of its file: whatever its size, two small reads."""

import json
import os
import re
import time
from typing import Any

from doorward.named_tuple import NamedTuple
from doorward.sessions import chain
from doorward.sessions.decoding import decoded
from doorward.sessions.folders import Found
from doorward.sessions.home import StoreError
from doorward.sessions.line import Line, Totals, totals_from
from doorward.sessions.stored_file import open_stored
from doorward.sessions.tail import SEARCH_LIMIT, tail_within
from doorward.sessions.timestamps import rfc3339

_HEAD_STEPS = (8192, 1 << 16, 1 << 20, 4 << 20)
"""How far the first records are searched for `session_meta`; ours is within the first step."""
_HEAD_RECORDS = 16
_TIMESTAMP = re.compile(rb'\{"timestamp":"([0-9TZ:.+-]{1,40})"')


class SessionSummary(NamedTuple):
    """One session, as `sessions --json` shows it. What the file does not tell is None."""

    id: str
    name: str | None
    cwd: str | None
    created_at: str
    updated_at: str
    archived: bool
    turns: int | None
    refused: int | None
    path: str
    notes: tuple[str, ...]
    """What is wrong with the file, one sentence each."""

    def to_json(self) -> dict[str, Any]:
        """`{id, name, cwd, created_at, updated_at, archived, turns, refused}`."""
        fields = self._asdict()
        del fields["path"], fields["notes"]
        return fields


def summarise(found: Found) -> SessionSummary:
    """Raises StoreError when the file cannot be read, or is empty."""
    descriptor = open_stored(found.path)
    try:
        return summary_of(found, descriptor, os.stat(found.path, follow_symlinks=False))
    except OSError as error:
        raise StoreError(f"cannot read {found.path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def summary_of(found: Found, descriptor: int, status: os.stat_result) -> SessionSummary:
    """The same of an open file with this `status` on the disk. Raises StoreError when it is empty; OSError passes."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        raise StoreError(f"{found.path} is empty: its session never started")
    notes: list[str] = []
    meta = session_meta(descriptor, size)
    totals, updated = _last(descriptor, size)
    if meta is None:
        notes.append("has no readable session_meta at its start")
        meta = {}
    elif meta.get("id") != found.id:
        notes.append(f"names itself {meta.get('id')}; the id in its file name counts")
    name = meta.get("name") if totals is None or totals.name is None else totals.name
    modified = rfc3339(status.st_mtime_ns)
    return SessionSummary(
        found.id,
        name if isinstance(name, str) else None,
        _text(meta, "cwd"),
        _text(meta, "timestamp") or _named_time(found.path) or modified,
        updated or modified,
        found.archived,
        None if totals is None else totals.turn,
        None if totals is None else totals.refused,
        found.path,
        tuple(notes),
    )


def _text(meta: dict[str, Any], key: str) -> str | None:
    value = meta.get(key)
    return value if isinstance(value, str) else None


def session_meta(descriptor: int, size: int) -> dict[str, Any] | None:
    """The payload of the first `session_meta` of an open file; None where none is near its start. OSError passes."""
    for step in _HEAD_STEPS:
        head = os.pread(descriptor, step, 0)
        lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if len(head) < size:
            lines.pop()  # may be cut by the end of this read
        for data in lines:
            if data.strip():
                line = decoded(data, number=0, offset=0)
                if isinstance(line, Line) and line.type == "session_meta":
                    return dict(line.payload)
        if len(head) == size or len(lines) > _HEAD_RECORDS:
            return None
    return None


def _last(descriptor: int, size: int) -> tuple[Totals | None, str | None]:
    """Totals and time of the last record."""
    ending = os.pread(descriptor, chain.METADATA_LIMIT, max(0, size - chain.METADATA_LIMIT))
    if ending.endswith(b"\n"):
        ending = ending[:-1]
        metadata = chain.metadata_at_end(ending)
        if metadata is not None:
            timestamp = _TIMESTAMP.match(ending, ending.rfind(b"\n") + 1)
            try:
                return totals_from(json.loads(metadata)), timestamp[1].decode("ascii") if timestamp else None
            except (ValueError, RecursionError):
                pass
    tail = tail_within(descriptor, size, SEARCH_LIMIT)
    return (None, None) if tail is None else (tail.totals, None)


def _named_time(path: str) -> str | None:
    """The time in a file name `rollout-2025-11-29T23-41-00-…`."""
    text = os.path.basename(path)[len("rollout-") :][:19]
    try:
        time.strptime(text, "%Y-%m-%dT%H-%M-%S")
    except ValueError:
        return None
    return f"{text[:13]}:{text[14:16]}:{text[17:19]}.000Z"

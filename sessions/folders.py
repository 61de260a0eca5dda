"""Walks the folders that hold rollouts: what is a session's file, and what only stands there."""

import os
import stat
import time
from collections.abc import Iterator

from doorward.named_tuple import NamedTuple
from doorward.sessions.home import Home
from doorward.sessions.ids import day_folder, rollout_name, session_in, uuid7_milliseconds

_DEEPEST = 3
"""`YYYY/MM/DD`; what lies below is not ours, and a loop of bind mounts must not hold the walk."""
_ENDINGS = (".jsonl", ".jsonl.zst")


class Found(NamedTuple):
    """A rollout by its name. The id in the name is the session's: names are unique, contents may be copied."""

    id: str
    path: str
    archived: bool


class Problem(NamedTuple):
    """Something that stands where rollouts stand and is not read."""

    path: str
    detail: str

    @property
    def sentence(self) -> str:
        """One line for a person."""
        return f"{self.path}: {self.detail}"


def rollouts(home: Home, *, archived: bool) -> Iterator[Found | Problem]:
    """The rollouts of one of the two folders, roughly the newest first (exactly so for those in their day's folder)."""
    return _walk(home.archived if archived else home.sessions, archived, _DEEPEST)


def _walk(folder: str, archived: bool, depth: int) -> Iterator[Found | Problem]:
    try:
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name, reverse=True)
    except FileNotFoundError:
        return
    except OSError as error:
        yield Problem(folder, f"cannot be read: {error.strerror}")
        return
    for entry in ordered:
        if depth and entry.is_dir(follow_symlinks=False) and not entry.name.endswith(_ENDINGS):
            yield from _walk(entry.path, archived, depth - 1)
    for entry in ordered:
        if entry.name.endswith(_ENDINGS):
            session = session_in(entry.name)
            if entry.is_symlink():
                yield Problem(entry.path, "a link, and links are not read")
            elif not entry.is_file(follow_symlinks=False):
                kind = "a directory" if entry.is_dir(follow_symlinks=False) else "not a regular file"
                yield Problem(entry.path, f"{kind}, not a rollout")
            elif session is None:
                yield Problem(entry.path, "not named rollout-TIME-UUID.jsonl")
            else:
                yield Found(session, entry.path, archived)


def expected(home: Home, session: str) -> Iterator[Found]:
    """Where a session with this id is when it was made here: at most one look at each place, no folder read."""
    milliseconds = uuid7_milliseconds(session)
    if milliseconds is None:
        return
    moment = time.gmtime(milliseconds // 1000)
    name = rollout_name(session, moment)
    places = ((f"{home.sessions}/{day_folder(moment)}/{name}", False), (f"{home.archived}/{name}", True))
    for path, archived in (*places, (f"{home.archived}/{name}.zst", True)):
        try:
            if stat.S_ISREG(os.stat(path, follow_symlinks=False).st_mode):
                yield Found(session, path, archived)
        except OSError:
            continue

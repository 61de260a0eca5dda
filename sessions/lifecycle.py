"""Archives, brings back and renames sessions. A live one is left alone: its writer must end first.

An archived session lies in `archived_sessions/` under the same file name, perhaps compressed (`prune.py`). Where a
file system reports a rename as failed that took place (NFS does, when an answer is lost), the file's number decides.
"""

import os

from doorward.sessions import items
from doorward.sessions.home import Home, StoreError, private_folder
from doorward.sessions.live import held_still
from doorward.sessions.lookup import SessionRef
from doorward.sessions.refused import SessionLive, SessionRefused
from doorward.sessions.rollout import Rollout, RolloutBusy
from doorward.sessions.stored_file import COMPRESSED, open_stored
from doorward.sessions.unnamed_file import UnnamedFile

NAME_LIMIT = 200
"""Characters; with escapes it must fit into the metadata of every later line."""
_CHUNK = 1 << 20
_DAY = slice(len("rollout-"), len("rollout-2025-11-29"))


def archive(home: Home, session: SessionRef) -> SessionRef:
    """Moves it to the archived ones. Raises SessionLive, SessionRefused when it is there already, StoreError."""
    if session.archived:
        raise SessionRefused(f"session {session.id} is archived already", f"doorward unarchive {session.id}")
    target = f"{home.archived}/{os.path.basename(session.path)}"
    with held_still(session.id, session.path) as status:
        private_folder(home.archived)
        _move(session.path, target, status)
    return session._replace(path=target, archived=True)


def unarchive(home: Home, session: SessionRef) -> SessionRef:
    """Moves it back to the active ones, plain again. Raises SessionRefused when it is not archived, StoreError."""
    if not session.archived:
        raise SessionRefused(f"session {session.id} is not archived", "")
    name = os.path.basename(session.path).removesuffix(COMPRESSED)
    folder = home.sessions
    home.ensure()
    for part in name[_DAY].split("-"):
        folder = f"{folder}/{part}"
        private_folder(folder)
    target = f"{folder}/{name}"
    with held_still(session.id, session.path) as status:
        if session.path.endswith(COMPRESSED):
            _restore(session.path, target, status)
        else:
            _move(session.path, target, status)
    return session._replace(path=target, archived=False)


def rename(home: Home, session: SessionRef, name: str) -> SessionRef:
    """Gives it another name, from here on. Names need not be unique. Raises SessionLive, SessionRefused, StoreError."""
    check_name(name)
    if session.archived:
        raise SessionRefused(f"session {session.id} is archived", f"doorward unarchive {session.id}")
    try:
        with Rollout.open(home, session.path) as rollout:
            rollout.append(*items.renamed(session.id, name))
            rollout.sync()
    except RolloutBusy as busy:
        raise SessionLive(session.id, busy.pid) from None
    return session._replace(name=name)


def check_name(name: str) -> None:
    """Raises SessionRefused for a name that could not be typed, or seen, again."""
    if not is_name(name):
        raise SessionRefused(
            f"a session cannot be named {name[:40]!r}", f"a name is 1 to {NAME_LIMIT} characters that can be printed"
        )


def is_name(name: str) -> bool:
    """Whether a session can be named so."""
    return bool(name.strip()) and len(name) <= NAME_LIMIT and name.isprintable()


def _move(source: str, target: str, status: os.stat_result) -> None:
    try:
        # link and unlink would never overwrite, but hard links are not everywhere; nobody else makes this name
        if os.path.lexists(target):
            raise StoreError(f"{target} exists already: move it away")
        os.rename(source, target)
    except OSError as error:
        if os.path.lexists(source) or not _is(target, status):
            raise StoreError(f"cannot move {source} to {target}: {error.strerror}") from error
    for folder in (os.path.dirname(target), os.path.dirname(source)):
        _sync(folder)


def _is(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), status)
    except OSError:
        return False


def _restore(source: str, target: str, status: os.stat_result) -> None:
    plain = open_stored(source)
    made = UnnamedFile(os.path.dirname(target))
    try:
        position = 0
        while data := os.pread(plain, _CHUNK, position):
            made.write(data)
            position += len(data)
        made.keep_times(status)
        if not made.publish(target):
            raise StoreError(f"{target} exists already: move it away")
    finally:
        made.discard()
        os.close(plain)
    _sync(os.path.dirname(target))
    os.unlink(source)


def _sync(folder: str) -> None:
    """So that a power cut leaves the session in one of the two places."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

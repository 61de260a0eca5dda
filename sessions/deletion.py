"""Deletes a session for good. Sessions that share its lines get them first: they are put where only those look.

`shared_history/rollout-UUID.jsonl` holds a deleted session's lines up to the last one that somebody shares, byte for
byte, so offsets, numbers and links stay true. It goes when nobody shares from it any more.
"""

import os
from collections.abc import Iterator

from doorward.named_tuple import NamedTuple
from doorward.sessions.folders import Found, rollouts
from doorward.sessions.heads import forget_head
from doorward.sessions.history import Base, base_of
from doorward.sessions.home import Home, StoreError
from doorward.sessions.live import held_still
from doorward.sessions.lookup import SessionRef
from doorward.sessions.stored_file import open_stored
from doorward.sessions.unnamed_file import UnnamedFile

_CHUNK = 1 << 20
_PREFIX, _ENDING = "rollout-", ".jsonl"


class Deleted(NamedTuple):
    """What was done."""

    id: str
    forks: tuple[str, ...]
    """Sessions that share lines of it, and keep them."""


def delete(home: Home, session: SessionRef) -> Deleted:
    """Removes its rollout. Blobs that only it names are left to `prune`. Raises SessionLive, StoreError."""
    with held_still(session.id, session.path):
        sharing = [(fork, base) for fork, base in _bases(home) if base.session == session.id]
        if sharing:
            _hand_over(home, session, max(base.end_byte for _, base in sharing))
        os.unlink(session.path)
    forget_head(home, session.id)
    drop_unshared(home)
    return Deleted(session.id, tuple(fork for fork, _ in sharing))


def drop_unshared(home: Home, *, dry_run: bool = False) -> list[str]:
    """Removes the left lines of deleted sessions that nobody shares any more; returns their paths. StoreError."""
    dropped: list[str] = []
    while True:
        needed = {base.session for _, base in _bases(home, without=dropped)}
        idle = [path for session, path in _left(home) if session not in needed and path not in dropped]
        if not idle:
            return dropped
        dropped += idle
        if not dry_run:
            for path in idle:
                os.unlink(path)


def _hand_over(home: Home, session: SessionRef, end: int) -> None:
    made = UnnamedFile(home.shared)
    source = open_stored(session.path)
    try:
        position = 0
        while position < end and (data := os.pread(source, min(_CHUNK, end - position), position)):
            made.write(data)
            position += len(data)
        made.to_disk()
        made.publish(f"{home.shared}/{_PREFIX}{session.id}{_ENDING}")
    finally:
        made.discard()
        os.close(source)


def _bases(home: Home, without: list[str] | None = None) -> Iterator[tuple[str, Base]]:
    """Each session that shares lines, and which; those that were deleted but are shared from, too."""
    walked = [each for old in (False, True) for each in rollouts(home, archived=old)]
    places = [(each.id, each.path) for each in walked if isinstance(each, Found)]
    for session, path in (*places, *_left(home)):
        if path in (without or ()):
            continue
        try:
            base = base_of(path)
        except StoreError:
            continue  # what cannot be read shares nothing that could be shown
        if base is not None:
            yield session, base


def _left(home: Home) -> Iterator[tuple[str, str]]:
    try:
        names = sorted(os.listdir(home.shared))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot read {home.shared}: {error.strerror}") from error
    for name in names:
        if name.startswith(_PREFIX) and name.endswith(_ENDING):
            yield name[len(_PREFIX) : -len(_ENDING)], f"{home.shared}/{name}"

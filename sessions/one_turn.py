"""One turn of a session, without reading the rest of its file."""

import os
from collections.abc import Iterator

from doorward.sessions.damage import Damage
from doorward.sessions.folders import Problem
from doorward.sessions.history import segments
from doorward.sessions.home import Home, StoreError
from doorward.sessions.line import Line
from doorward.sessions.reading import lines_of
from doorward.sessions.stored_file import open_stored
from doorward.sessions.turn_offset import turn_offset
from doorward.sessions.turns import Turn, parts


def turn_lines(home: Home, session: str, path: str, turn: int) -> Iterator[Line | Damage]:
    """The lines of a turn and what follows up to the next, nothing where there is no such turn. Raises StoreError.

    Offsets and numbers in the lines count from the turn's start.
    """
    for segment in reversed(segments(home, session, path)):
        if isinstance(segment, Problem):
            continue
        descriptor = open_stored(segment.path)
        try:
            there = os.fstat(descriptor).st_size
            size = there if segment.size is None else min(segment.size, there)
            start = turn_offset(descriptor, size, turn)
            if start is None:
                continue
            end = turn_offset(descriptor, size, turn + 1)
            yield from lines_of(descriptor, size if end is None else end, start=start)
            return
        except OSError as error:
            raise StoreError(f"cannot read {segment.path}: {error.strerror}") from error
        finally:
            os.close(descriptor)


def one_turn(home: Home, session: str, path: str, turn: int) -> Turn | None:
    """The turn as `turns.parts` folds it, None where there is none. Raises StoreError."""
    for part in parts(turn_lines(home, session, path, turn)):
        if isinstance(part, Turn) and part.number == turn:
            return part
    return None

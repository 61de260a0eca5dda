"""The session that a command line names, and what goes wrong with it, as the command line says it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from doorward.errors import EngineError, Refused, UsageError
from doorward.sessions.home import Home, StoreError, default_home
from doorward.sessions.lookup import SessionLookupError, SessionRef, find_session
from doorward.sessions.refused import SessionLive, SessionRefused


@contextmanager
def store(command: str) -> Iterator[Home]:
    """The home. What the store raises inside becomes UsageError (exit 2), Refused (1) or EngineError (125)."""
    try:
        yield Home(default_home(os.environ))
    except SessionLookupError as error:
        raise UsageError(f"doorward {command}: {error.sentence}; {error.remedy}") from None
    except SessionLive as error:
        raise Refused(f"doorward {command}: {error}") from None
    except SessionRefused as error:
        raise UsageError(f"doorward {command}: {error}") from None
    except StoreError as error:
        raise EngineError(str(error)) from None


def the_session(home: Home, command: str, words: tuple[str, ...]) -> SessionRef:
    """The one session that the words name. Raises UsageError, and what `find_session` raises."""
    if len(words) != 1:
        raise UsageError(f"doorward {command}: name one session, by its UUID or its name")
    return find_session(home, words[0])

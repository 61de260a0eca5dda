"""Did the command that an agent was handed reach doorward? Some versions of agents drop the changed command silently
(anthropics/claude-code#15897, #81340): then it runs as it was, confined by nothing, and nobody would know.

The hook leaves a mark, the run takes it away, and after the command the hook looks whether it is gone. Once it was not,
the agent is told, and no shell command of that session is let through any more.
"""

from __future__ import annotations

import os
import time

from doorward.agents.rollouts import folder_of
from doorward.sessions.home import FILE_MODE, Home, StoreError, default_home, private_folder
from doorward.sessions.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT_S = 86_400
"""How long a mark is kept whose command never came: a person may take their time over a question."""


def mark_of(reference: str, call: str) -> str:
    """What the run is told, to take the mark away. `call` is the agent's own id of the tool use, which the event after
    it has too; without one nothing is looked for afterwards."""
    text = f"{reference}\0{call or os.urandom(16).hex()}"
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def expect(home: Home, mark: str) -> None:
    """Leave the mark. Raises StoreError."""
    folder = _folder(home)
    try:
        private_folder(folder_of(home))
        private_folder(folder)
        _sweep(folder)
        os.close(os.open(f"{folder}/{mark}", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE))
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror}") from None


def arrived(home: Home, mark: str) -> bool:
    """Take the mark away: the command is here. False if there was none."""
    if len(mark) != 32 or not mark.isalnum():
        return False
    try:
        os.unlink(f"{_folder(home)}/{mark}")
    except OSError:
        return False
    return True


def arrived_here(mark: str, env: Mapping[str, str]) -> None:
    """As `arrived`, in the home that `env` means. What else is wrong with that home comes up where it is needed."""
    try:
        arrived(Home(default_home(env)), mark)
    except StoreError:
        pass


def distrust(home: Home, reference: str) -> None:
    """Let no shell command of this agent session through any more. Raises StoreError."""
    path = _distrusted(home, reference)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE))
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from None


def is_distrusted(home: Home, reference: str) -> bool:
    """True once a command of this agent session went round doorward."""
    return os.path.lexists(_distrusted(home, reference))


def _folder(home: Home) -> str:
    return f"{folder_of(home)}/calls"


def _distrusted(home: Home, reference: str) -> str:
    return f"{folder_of(home)}/{sha256(reference.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.ignored"


def _sweep(folder: str) -> None:
    old = time.time() - _KEPT_S
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.stat(follow_symlinks=False).st_mtime < old:
                    os.unlink(entry.path)
            except FileNotFoundError:
                pass  # taken away meanwhile

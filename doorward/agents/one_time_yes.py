"""A person's yes on its way from the agent's own question to the run: a secret good for one run of one action.

The agent asks its person and, after a yes, runs the command it was given, which holds the secret. The file knows only
the secret's hash, so nobody who reads it can use it; it goes with its first use.
"""

from __future__ import annotations

import os
import time

from doorward.sessions.home import FILE_MODE, Home, StoreError, private_folder
from doorward.sessions.sha256 import sha256
from doorward.start_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.gates.action import Action
    from doorward.gates.dial import Dial

LASTS_S = 600
"""From the question to the run: as long as a person may take."""

_BYTES = 24


def issue(home: Home, dial: Dial, action: Action, question: str) -> str:
    """A new secret for `action`; `question` is the id under which the question stands in the rollout. Raises
    StoreError."""
    secret = os.urandom(_BYTES).hex()
    folder = _folder(home)
    try:
        home.ensure_approvals()
        private_folder(folder)
        _sweep(folder)
        document = {"key": _key(dial, action), "question": question, "until": time.time() + LASTS_S}
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(f"{folder}/{_hashed(secret)}", flags, FILE_MODE)
        try:
            os.write(descriptor, dumps(document).encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"cannot keep the question in {folder}: {error.strerror}") from None
    return secret


def redeem(home: Home, secret: str, dial: Dial, action: Action) -> str | None:
    """The question's id if the secret is good for exactly this action and has not been used; it is used then."""
    path = f"{_folder(home)}/{_hashed(secret)}"
    try:
        with open(path, "rb") as file:
            document = loads(file.read(1 << 16))
        if document["key"] != _key(dial, action):
            return None  # not this one's: it stays good for its own
        os.unlink(path)  # of two at once only one succeeds
        return str(document["question"]) if time.time() < document["until"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _folder(home: Home) -> str:
    return f"{home.approvals}/yes"


def _hashed(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _key(dial: Dial, action: Action) -> str:
    """The approval key without PATH: the agent's shell may have another one than its hooks."""
    from doorward.gates.approval_key import approval_key

    return _hashed(approval_key(dial, action._replace(env={})))


def _sweep(folder: str) -> None:
    old = time.time() - 2 * LASTS_S
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < old:
                os.unlink(entry.path)

"""An agent's session and its rollout: found again at every hook and every run of the same agent session.

A rollout has one writer. A hook holds it for milliseconds, and the next waits for that; a command that is still running
(in the background, or beside another) holds it for as long as it runs, and what comes meanwhile goes into a further
rollout of the same agent session, named after the first: `codex:ID`, `codex:ID+2`, … They are listed in a file in
`$DOORWARD_HOME/agents`, which is locked while one is chosen.
"""

from __future__ import annotations

import os
import time

from doorward.errors import EngineError
from doorward.session_log import SessionLog
from doorward.sessions.home import FILE_MODE, Home, StoreError, private_folder
from doorward.sessions.rollout import Rollout, RolloutBusy
from doorward.sessions.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.plan import Plan

FOLDER = "agents"
WAIT_S = 5.0
"""How long another hook of the same session is waited for. It holds the list for milliseconds."""

_POLL_S = 0.005
_MOST = 1000
"""Rollouts of one agent session."""


def folder_of(home: Home) -> str:
    """Where the lists are."""
    return f"{home.path}/{FOLDER}"


def first_rollout(home: Home, reference: str) -> str | None:
    """The path of the agent session's first rollout, which says what sandbox it is pinned to; None: not known."""
    try:
        with open(_list_of(home, reference), encoding="utf-8", errors="surrogateescape") as file:
            names = file.read(1 << 20).split("\n")
    except OSError:
        return None
    paths = (f"{home.sessions}/{name}" for name in names if name)
    return next((path for path in paths if os.path.isfile(path)), None)


class Claim:
    """One rollout of the agent session, open for writing. Hooks keep the list locked (`release` it before a long
    wait), so that another hook waits instead of taking a rollout of its own."""

    def __init__(self, plan: Plan) -> None:
        """`plan.agent` is the agent session's reference. Raises EngineError."""
        home, reference = plan.home, str(plan.agent)
        try:
            home.ensure()
            private_folder(folder_of(home))
        except StoreError as error:
            raise EngineError(f"the session cannot be recorded: {error}") from None
        path = _list_of(home, reference)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, FILE_MODE)
            try:
                _lock(self._descriptor, path)
                names = [name for name in os.pread(self._descriptor, 1 << 20, 0).decode().split("\n") if name]
                self.log = _free(home, names) or self._new(plan, reference, len(names))
            except BaseException:
                self.release()
                raise
        except (OSError, UnicodeDecodeError) as error:
            raise EngineError(f"the agent's session cannot be found in {path}: {error}") from None

    def _new(self, plan: Plan, reference: str, before: int) -> SessionLog:
        if before >= _MOST:
            raise EngineError(f"{reference} has {before} rollouts", "start a new session of the agent")
        name = reference if not before else f"{reference}+{before + 1}"
        log = SessionLog.create(plan.home, cwd=plan.sandbox.workspace, name=name, profile=plan.sandbox_profile)
        try:
            os.write(self._descriptor, f"{os.path.relpath(log.path, plan.home.sessions)}\n".encode())
        except BaseException:
            log.close()
            raise
        return log

    def release(self) -> None:
        """Let others choose. Twice is fine; the rollout stays open."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def claimed(plan: Plan) -> SessionLog:
    """The rollout for a run of `plan`, which is of an agent's session. Raises EngineError."""
    claim = Claim(plan)
    claim.release()
    return claim.log


def _free(home: Home, names: list[str]) -> SessionLog | None:
    """The first rollout that nobody writes."""
    for name in names:
        path = f"{home.sessions}/{name}"
        if not os.path.isfile(path):
            continue  # deleted or archived
        try:
            return SessionLog.going_on(home, Rollout.open(home, path))
        except RolloutBusy:
            continue
        except StoreError as error:
            raise EngineError(f"the session cannot be recorded: {error}") from None
    return None


def _lock(descriptor: int, path: str) -> None:
    import fcntl

    until = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise EngineError(f"another hook has held {path} for {WAIT_S:.0f} s", "call the tool again") from None
            time.sleep(_POLL_S)


def _list_of(home: Home, reference: str) -> str:
    return f"{folder_of(home)}/{sha256(reference.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}"

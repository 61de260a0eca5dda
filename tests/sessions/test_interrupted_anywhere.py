"""Archive, unarchive, compress, delete, fork and import, ended or refused by the system at every single change.

Every call that changes a file is counted; the work is done over and over, and each time another call is the one at
which the process is killed, or the system says no. Whatever that leaves, the session is found and reads as before, the
fork reads as before, and the same command goes through afterwards.
"""

import errno
import os
import shutil
import signal
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from doorward.sessions import items
from doorward.sessions.deletion import delete
from doorward.sessions.folders import Found, rollouts
from doorward.sessions.fork import fork
from doorward.sessions.history import session_bytes
from doorward.sessions.home import Home, StoreError
from doorward.sessions.importing import Imported, import_rollouts
from doorward.sessions.lifecycle import archive, rename, unarchive
from doorward.sessions.lookup import SessionNotFound, SessionRef, find_session
from doorward.sessions.prune import prune
from doorward.sessions.rollout import Rollout

CHANGES = ("rename", "link", "unlink", "write", "fsync", "fdatasync", "mkdir", "open", "fchmod", "chmod", "utime")
CODEX = Path(__file__).parent / "codex" / "sessions"
MOST = 60
"""Changes that one of these works makes at most; the loop must end."""


def whole(home: Home, session: SessionRef) -> bytes:
    return b"".join(piece for piece in session_bytes(home, session.id, session.path) if isinstance(piece, bytes))


class Scene:
    """A home with a session of three turns and a fork of it, ready for one kind of work."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.home = Home(str(folder))
        with Rollout.create(self.home, cwd="/work", name="it") as rollout:
            for turn in (1, 2, 3):
                start = items.turn_start(
                    rollout.id, turn, argv=["true"], cwd="/", approval_policy="never", sandbox_policy={}
                )
                for item in (*start, items.turn_end(rollout.id, turn)):
                    rollout.append(*item)
        self.id = rollout.id
        self.lines = whole(self.home, self.found())
        self.fork = fork(self.home, self.found(), at=3).id
        self.shared = whole(self.home, find_session(self.home, self.fork))
        if kind in ("unarchive", "compress", "unarchive-compressed"):
            archive(self.home, self.found())
        if kind == "unarchive-compressed":
            prune(self.home, apply=True)

    def copy(self, folder: Path) -> "Scene":
        """The same in another home: nothing in it names the place where it is."""
        shutil.copytree(self.home.path, folder)
        copied = copy(self)
        copied.home = Home(str(folder))
        return copied

    def found(self) -> SessionRef:
        return find_session(self.home, self.id)


def compress(scene: Scene) -> None:
    """As `prune` does it, which tells what went wrong."""
    problems = [problem for problem in prune(scene.home, apply=True).problems if "has the id" not in problem.detail]
    if problems:
        raise StoreError(problems[0].sentence)


def take_over(scene: Scene) -> None:
    for each in import_rollouts(scene.home, str(CODEX)):
        if not isinstance(each, Imported) and "is here already" not in each.detail:
            raise StoreError(each.sentence)


WORK: dict[str, Callable[[Scene], object]] = {
    "archive": lambda scene: archive(scene.home, scene.found()),
    "unarchive": lambda scene: unarchive(scene.home, scene.found()),
    "unarchive-compressed": lambda scene: unarchive(scene.home, scene.found()),
    "compress": compress,
    "rename": lambda scene: rename(scene.home, scene.found(), "other"),
    "fork": lambda scene: fork(scene.home, scene.found(), at=2, name="new"),
    "delete": lambda scene: delete(scene.home, scene.found()),
    "import": take_over,
}


class Counting:
    """Stands before each call that changes a file; at the `at`th of them `act` is called."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.at, self.act, self.count = at, act, 0

    def patch(self, patched: pytest.MonkeyPatch) -> None:
        for name in CHANGES:
            patched.setattr(os, name, self._counted(getattr(os, name), name))

    def _counted(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if name != "open" or (len(args) > 1 and args[1] & (os.O_CREAT | os.O_RDWR | os.O_WRONLY)):
                self.count += 1
                if self.count == self.at:
                    self.act()
            return real(*args, **named)

        return call


def check(scene: Scene, kind: str) -> None:
    """Nothing is lost: the session reads as before (or is wholly deleted), and so does the fork."""
    fork_now = find_session(scene.home, scene.fork)
    assert whole(scene.home, fork_now) == scene.shared
    try:
        lines = whole(scene.home, scene.found())
    except SessionNotFound:
        assert kind == "delete"
        return
    assert lines.startswith(scene.lines)
    walked = [each for old in (False, True) for each in rollouts(scene.home, archived=old)]
    assert {scene.id, scene.fork} <= {each.id for each in walked if isinstance(each, Found)}


def finished(scene: Scene, kind: str) -> None:
    """The same command goes through now, or had before."""
    try:
        WORK[kind](scene)
    except (StoreError, SessionNotFound) as error:
        assert kind in ("archive", "unarchive", "unarchive-compressed", "delete"), error
        assert "already" in str(error) or "is not archived" in str(error) or "no session" in str(error)


@pytest.mark.parametrize("kind", WORK)
def test_killed(kind: str, tmp_path: Path, in_child: Callable[..., tuple[object, int]]) -> None:
    template = Scene(tmp_path / "template", kind)
    for at in range(1, MOST):
        scene = template.copy(tmp_path / str(at))

        def work(scene: Scene = scene, at: int = at) -> object:
            with pytest.MonkeyPatch.context() as patched:
                Counting(at, lambda: os.kill(os.getpid(), signal.SIGKILL)).patch(patched)
                WORK[kind](scene)
            return "done"

        result, status = in_child(work)
        check(scene, kind)
        if result == "done":
            assert at > 1
            return
        assert os.WIFSIGNALED(status)
        finished(scene, kind)
        check(scene, kind)
    pytest.fail("it never ends")


@pytest.mark.parametrize("kind", WORK)
def test_refused(kind: str, tmp_path: Path) -> None:
    """What the system says is told as one sentence, and nothing is lost."""

    def refuse() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    template = Scene(tmp_path / "template", kind)
    for at in range(1, MOST):
        scene = template.copy(tmp_path / str(at))
        counting = Counting(at, refuse)
        with pytest.MonkeyPatch.context() as patched:
            counting.patch(patched)
            try:
                WORK[kind](scene)
            except StoreError as error:
                assert "\n" not in str(error)
        check(scene, kind)
        if counting.count < at:
            assert at > 1
            return
        finished(scene, kind)
        check(scene, kind)
    pytest.fail("it never ends")

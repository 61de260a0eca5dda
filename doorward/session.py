"""The library: open a session once, run many commands in it, get observations. A refusal is data."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from doorward.errors import EngineError, UsageError
from doorward.observation import Observation

_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from doorward import own_modules; own_modules.install(); "
    "from doorward.service import main; sys.exit(main(3))"
)


class Session:
    """Commands under one policy and one rollout. Use it as a context manager, or `close` it.

    Commands run one after the other, whichever thread asks. Everything of the session ends with it, and with this
    process.
    """

    def __init__(self, options: Mapping[str, object]) -> None:
        self._wire, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lock = threading.Lock()
        self._lines = self._wire.makefile("rb")
        self._process = start_service(theirs)
        self.notices: tuple[str, ...] = ()
        try:
            self.notices = tuple(self._ask({"open": dict(options)})["opened"]["notices"])
        except BaseException:
            self.close()
            raise

    def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        input: str | bytes | None = None,
        timeout: float | None = None,
    ) -> Observation:
        """Run `argv` and wait for it. Refusals, time-outs and exit codes are in the Observation.

        `env` replaces this process's environment as what the command's is built from; `input` is its standard input
        (nothing by default); `timeout` is in seconds. Raises EngineError only for a broken machine, UsageError for
        a request that makes no sense (no words, a NUL in one).
        """
        return Observation.from_json(self._ask(exec_message(argv, cwd, env, input, timeout))["observation"])

    def log(self, payload: Mapping[str, Any], type: str = "response_item") -> None:
        """Append a record of the conversation to the session's rollout; it is there when this returns.

        `type` is `response_item` (a message, a function call, its output, as they are sent to the model), `compacted`,
        or `event_msg` for `user_message`, `agent_message` and `thread_rolled_back`. Raises UsageError for any other:
        what the doors say is theirs to write. EngineError when it cannot be written.
        """
        self._ask({"conversation": {"type": type, "payload": dict(payload)}})

    def messages(self) -> list[dict[str, Any]]:
        """What the model sees, derived from the rollout alone (`doorward.sessions.projection`)."""
        found: list[dict[str, Any]] = self._ask({"conversation": {}})["conversation"]["messages"]
        return found

    def close(self) -> None:
        """End the session: whatever still runs in it is killed, the rollout is complete."""
        self._lines.close()
        self._wire.close()
        if self._process:
            reap(self._process)
            self._process = 0

    def abort(self) -> None:
        """From another thread: end the command that runs now and the session; its `exec` raises EngineError."""
        try:
            self._wire.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed already

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, message: Mapping[str, object]) -> dict[str, Any]:
        with self._lock:
            if not self._process:
                raise UsageError("the session is closed")
            try:
                self._wire.sendall(json.dumps(message).encode() + b"\n")
                line = self._lines.readline()
            except OSError:
                line = b""
            except BaseException:
                # interrupted (Ctrl-C): the answer that is still to come would be taken for the next one's
                self.close()
                raise
        return answer_of(line)


def answer_of(line: bytes) -> dict[str, Any]:
    """One answer of the service; raises what it reports."""
    if not line:
        raise EngineError("the session's supervisor ended unexpectedly", "see its rollout with `doorward show`")
    answer: dict[str, Any] = json.loads(line)
    if (error := answer.get("error")) is not None:
        if error["kind"] == "usage":
            raise UsageError(error["sentence"])
        raise EngineError(error["sentence"], error["remedy"])
    return answer


def exec_message(
    argv: Sequence[str],
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None,
    input: str | bytes | None,
    timeout: float | None,
) -> dict[str, object]:
    if isinstance(argv, str | bytes):
        raise UsageError("exec takes a list of words, not one string; for a shell line give ['sh', '-c', line]")
    return {
        "exec": {
            "argv": [os.fsdecode(word) for word in argv],
            "cwd": os.path.abspath(os.fsdecode(cwd)) if cwd is not None else None,
            "env": dict(os.environ if env is None else env),
            "stdin": os.fsdecode(input) if input is not None else None,
            "timeout_s": timeout,
        }
    }


def reap(pid: int) -> None:
    """Wait for the supervisor, which ends as soon as its socket is closed."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # the program ignores SIGCHLD, so the kernel has reaped it


def start_service(theirs: socket.socket) -> int:
    """Start the supervisor process with nothing but its socket (as descriptor 3) and this process's stderr."""
    null = os.open("/dev/null", os.O_RDWR)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        return os.posix_spawn(
            sys.executable,
            # -P: the working folder, which the command may write to, is not where modules are looked for
            [sys.executable, "-P", "-c", _BOOT, root],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, null, 1),
            ],
            setsid=True,  # Ctrl-C at a terminal is this program's to handle
        )
    finally:
        os.close(null)
        theirs.close()

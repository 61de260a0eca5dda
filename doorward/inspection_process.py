"""The supervisor's side of the inspection worker: started beside everything else, told what to do, ended with the run.

The worker needs mitmproxy, and so Python 3.12 or later. It is this interpreter where that will do, or the one that
`inspect.python` names: it gets its work through two sockets, and of doorward it needs the code alone.
"""

from __future__ import annotations

import json
import os
import select
import sys
from _socket import AF_UNIX, SOCK_STREAM, socket, socketpair
from fcntl import F_DUPFD_CLOEXEC, fcntl

from doorward.errors import EngineError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
else:
    import _signal as signal  # the same functions without the enums, which cost 0.5 ms

MODULE = "doorward.proxy.inspection.worker"
_READY_S = 20
_OLDEST = (3, 12)
# this doorward's code and no other's, with the libraries of whichever interpreter it is
_BOOT = f"""
import importlib.util, sys
folder = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("doorward", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["doorward"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from {MODULE} import main
sys.exit(main(sys.argv[1:]))
"""
REMEDY = (
    "install it with `pip install 'doorward[inspect]'` on Python 3.12 or later, or name the python of an environment "
    "that has it: -c inspect.python=/path/to/python"
)


def interpreter(named: str | None) -> str:
    """The python the worker runs in. Raises UsageError with the remedy where there is none."""
    if sys.platform != "linux":
        raise UsageError("doorward: inspection runs on Linux alone")
    if named is not None:
        if not os.access(named, os.X_OK):
            raise UsageError(f"doorward: inspect.python: {named} is no program that can be run")
        return named
    if sys.version_info < _OLDEST:
        here = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise UsageError(f"doorward: inspection needs mitmproxy, which needs Python 3.12, and this is {here}; {REMEDY}")
    from importlib.util import find_spec  # only where something is inspected

    if find_spec("mitmproxy") is None:
        raise UsageError(f"doorward: inspection needs mitmproxy, which is not installed; {REMEDY}")
    return sys.executable


class InspectionProcess:
    """Running from the start; what it was told is read when its imports are done."""

    def __init__(self, python: str, work: Mapping[str, object], link: socket) -> None:
        """`work` is what `worker` documents; `link` leads to the door, and is closed here. Raises EngineError."""
        self._setup, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        self._python = python
        folder = os.path.dirname(os.path.abspath(__file__))
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        debug = "DOORWARD_DEBUG" in os.environ
        # 3 and 4 may be among the descriptors themselves, so they are moved out of the way first
        ends = [fcntl(sock.fileno(), F_DUPFD_CLOEXEC, 10) for sock in (theirs, link)]
        environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_IT}
        try:
            self.pid = os.posix_spawn(
                python,
                # -P: the working folder, which the command may write to, is not where modules are looked for
                [python, "-P", "-c", _BOOT, folder, "3", "4"],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, ends[0], 3),
                    (os.POSIX_SPAWN_DUP2, ends[1], 4),
                    (os.POSIX_SPAWN_DUP2, null, 0),
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    *(() if debug else ((os.POSIX_SPAWN_DUP2, null, 2),)),
                ],
                setsid=True,  # Ctrl-C at a terminal is the supervisor's to handle
            )
        except OSError as error:
            raise EngineError(f"the inspection worker cannot be started: {python}: {error.strerror}", REMEDY) from None
        finally:
            for descriptor in (null, *ends):
                os.close(descriptor)
            theirs.close()
            link.close()
        self._pidfd = os.pidfd_open(self.pid)
        self._said = b""
        try:
            self._setup.sendall(json.dumps(work).encode() + b"\n")
        except ConnectionError:
            pass  # it has ended already, which is heard where its answer is waited for

    def await_ready(self) -> dict[str, str]:
        """The files clients inside are to trust: `bundle`, `ca`, `java` (may be empty). Raises EngineError."""
        self._setup.settimeout(_READY_S)
        ready = None
        while ready is None:
            try:
                ready = self._hear()
            except TimeoutError:
                raise _not_ready() from None
        return ready

    def ready(self) -> dict[str, str] | None:
        """The same where it has said so, None where it has not yet; `fileno` can be read when there is more to hear.
        Raises EngineError."""
        self._setup.setblocking(False)
        try:
            return self._hear()
        except BlockingIOError:
            return None

    def _hear(self) -> dict[str, str] | None:
        try:
            data = self._setup.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise _not_ready()
        self._said += data
        if not self._said.endswith(b"\n"):
            return None
        answer = json.loads(self._said)
        if "error" in answer:
            raise EngineError(answer["error"], REMEDY)
        ready: dict[str, str] = answer["ready"]
        return ready

    def fileno(self) -> int:
        """The descriptor by which it says that it is ready."""
        return self._setup.fileno()

    @property
    def ending(self) -> int:
        """A descriptor that can be read once it has ended."""
        return self._pidfd

    def ended(self) -> bool:
        """Whether it has ended by itself."""
        poll = select.poll()
        if self.pid:
            poll.register(self._pidfd, select.POLLIN)
        return bool(self.pid) and bool(poll.poll(0))

    def failure(self) -> str:
        """Why it could not begin, if it said so; "" else."""
        try:
            self._setup.setblocking(False)
            answer = json.loads(self._setup.recv(65536) or b"{}")
        except (OSError, ValueError):
            return ""
        return str(answer.get("error", ""))

    def close(self) -> None:
        """End it and reap it. Twice is fine."""
        if not self.pid:
            return
        self._setup.close()
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass  # SIGCHLD is ignored, so the kernel has reaped it
        os.close(self._pidfd)
        self.pid = 0


def _not_ready() -> EngineError:
    return EngineError(
        "the inspection worker did not become ready, so nothing was started",
        f"with DOORWARD_DEBUG=1 its own messages are shown; {REMEDY}",
    )


_NOT_FOR_IT = frozenset(("SSLKEYLOGFILE", "MITMPROXY_SSLKEYLOGFILE", "PYTHONPATH", "PYTHONSTARTUP"))
"""Key logs would write down what is inside TLS; the rest could put other modules in the place of ours."""

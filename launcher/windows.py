"""The Windows door: a write-restricted token of low integrity in a job, and entries in access control lists.

The calls are in `windows_api`, what they are told in `windows_plan`, what is undone in `windows_journal`. What Windows
cannot hold in this way (the network, hiding files, system calls) is refused or stated, never passed over.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from doorward.launcher import windows_plan as plans
from doorward.launcher import windows_structures as w
from doorward.launcher.interface import (
    Command,
    Enforcement,
    LaunchFailure,
    Layer,
    Mode,
    Outcome,
    SandboxPolicy,
    SandboxUnavailable,
    Stdio,
    Undone,
)
from doorward.launcher.loopback_listeners import Listeners, open_listeners
from doorward.launcher.windows_command_line import Program, environment_block, find_program
from doorward.launcher.windows_errors import ApiError, failure_of_start, unavailable
from doorward.launcher.windows_files import WindowsFiles
from doorward.launcher.windows_journal import Journal, sweep
from doorward.launcher.windows_plan import WindowsPlan, make_plan

if TYPE_CHECKING:
    from _socket import socket as Socket

    from doorward.launcher.protocols import Confinement, Process
    from doorward.launcher.windows_api import Started, WindowsApi

# 128 + SIGKILL, the status that a killed command has on the other platforms
_KILLED = 137
_CODES = {"sandbox": 125, "directory": 125, "not-found": 127}


class Windows:
    """See `protocols.Backend`. `api` and `files` are parameters for tests only."""

    def __init__(self, api: "WindowsApi | None" = None, files: WindowsFiles | None = None) -> None:
        self._api = api
        self._files = files or WindowsFiles()

    def start_ahead(self) -> None:
        """Nothing has to come up here."""

    def close(self) -> None:
        """Nothing was started."""

    def prepare(self, policy: SandboxPolicy) -> "Confinement":
        """Checks the policy, and tidies up after runs that were killed. Raises SandboxUnavailable,
        UnenforceableRule."""
        policy = policy._replace(mode=Mode(policy.mode))
        if policy.user is not None:
            raise SandboxUnavailable("On Windows a command cannot be run as another user.", "Log on as that user.")
        if set_limits := policy.limits.set_values():
            raise SandboxUnavailable(
                f"On Windows nothing holds the limits of a run: {', '.join(set_limits)}.",
                "Leave them out, or run on Linux.",
            )
        notices = plans.check_network(policy)
        if policy.explain:
            notices += ("On Windows nothing tells what the sandbox refused (--explain-denials).",)
        if policy.replaced:
            raise SandboxUnavailable("On Windows no file can stand in the place of another.", "Run without inspection.")
        if self._api is None:
            from doorward.launcher.windows_api import WindowsApi

            try:
                self._api = WindowsApi()
            except OSError as error:
                raise SandboxUnavailable(f"The Windows sandbox needs Windows ({error}).") from error
        # what cannot be held is found out now, not at the first command
        make_plan(policy, policy.workspace, self._files.look, self._files.resolve)
        try:
            notices += sweep(self._api, self._files, os.path.join(policy.cache_dir, "windows"))
        except (ApiError, OSError) as error:
            raise SandboxUnavailable(f"What a killed run has left cannot be undone ({error}).") from error
        return WindowsConfinement(self._api, self._files, policy, notices)


class WindowsConfinement:
    """See `protocols.Confinement`."""

    def __init__(self, api: "WindowsApi", files: WindowsFiles, policy: SandboxPolicy, notices: tuple[str, ...]) -> None:
        self._api = api
        self._files = files
        self._policy = policy
        self._notices = notices
        self._temporary = ""
        self.listeners: Listeners | None = None
        """For a proxy in this process; open until `close`."""

    @property
    def enforcement(self) -> Enforcement:
        """What holds: writes and other processes by the token, the network by nothing."""
        return enforcement_of(self._policy)

    @property
    def limits(self) -> dict[str, str]:
        """None is held, and none was asked for."""
        return {}

    @property
    def notices(self) -> tuple[str, ...]:
        """What is weaker than it looks."""
        return self._notices

    def proxy_url(self) -> str:
        """Where the next command finds the proxy."""
        if self.listeners is None:
            try:
                self.listeners = open_listeners()
            except OSError as error:
                raise SandboxUnavailable(f"The proxy cannot listen on localhost ({error.strerror}).") from error
        return self.listeners.url

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """`env` with its temporary folder the next command's own."""
        inner = dict(env)
        if self._policy.mode in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE):
            temporary = self._own_temporary()
            for name in [name for name in inner if name.upper() in ("TMP", "TEMP", "TMPDIR")]:
                del inner[name]
            inner["TMP"] = inner["TEMP"] = temporary
        return inner

    def spawn(
        self,
        command: Command,
        stdio: Stdio,
        *,
        handover: "Socket | None" = None,
        run: str = "",
        policy_id: str = "",
    ) -> "Process":
        """See `protocols.Confinement.spawn`."""
        if handover is not None:
            raise SandboxUnavailable("On Windows no listener can be handed to another process this way.")
        block = environment_block(command.env)
        program = find_program(command.argv, command.env, command.cwd, self._is_file, self._files.is_store_alias)
        for answer in (block, program):
            if isinstance(answer, LaunchFailure):
                return WindowsEnded(failed(answer))
        assert isinstance(block, str) and isinstance(program, Program)
        confined = self._policy.mode in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE)
        plan = make_plan(self._policy, self._own_temporary() if confined else "", self._files.look, self._files.resolve)
        temporary, self._temporary = self._temporary, ""
        folder = os.path.join(self._policy.cache_dir, "windows")
        journal = Journal(self._api, self._files, folder, plan, temporary)
        try:
            journal.apply()
        except ApiError as error:
            raise unavailable(error) from error
        except OSError as error:
            raise SandboxUnavailable(f"The changes cannot be written down first ({error.strerror}).") from error
        try:
            return self._start(plan, program, block, command, stdio, journal)
        except ApiError as error:
            journal.undo()
            if error.call.startswith("CreateProcess"):
                return WindowsEnded(failed(failure_of_start(error, command.argv[0])))
            raise unavailable(error) from error
        except BaseException:
            journal.undo()
            raise

    def start_ahead(self) -> None:
        """Nothing has to come up here."""

    def close(self) -> None:
        """Gives back what was made for a command that never came."""
        if self.listeners is not None:
            self.listeners.close()
            self.listeners = None
        if self._temporary:
            self._files.remove_temporary(self._temporary)
            self._temporary = ""

    def _is_file(self, path: str) -> bool:
        return self._files.look(path) == "file"

    def _own_temporary(self) -> str:
        if not self._temporary:
            self._temporary = self._files.make_temporary()
        return self._temporary

    def _start(
        self, plan: WindowsPlan, program: Program, block: str, command: Command, stdio: Stdio, journal: Journal
    ) -> "Process":
        api = self._api
        opened: list[int] = []
        started: Started | None = None
        null = os.open(os.devnull, os.O_RDWR)
        try:
            job = api.create_job(plans.JOB_LIMITS, w.JOB_OBJECT_UILIMIT_ALL if plan.restricted else 0)
            opened.append(job)
            token: int | None = None
            if plan.restricted:
                logon = api.logon_sid()
                restricting = (*plan.restricting, *((logon,) if logon else ()))
                token = api.restricted_token(plans.TOKEN_FLAGS, restricting)
                opened.append(token)
                api.set_default_dacl(token, restricting)
                api.set_integrity(token, plans.LOW_INTEGRITY)
            streams = [api.inheritable(null if number < 0 else number) for number in stdio[:3]]
            opened += streams
            started = api.create_suspended(token, program.path, program.command_line, command.cwd, block, streams)
            opened += started[:2]
            # before its first instruction: nothing it starts can be outside the job
            api.assign(job, started.process)
        except BaseException:
            if started is not None:
                api.terminate(started.process, _KILLED)  # it may not be in the job yet
            for handle in reversed(opened):
                api.close(handle)
            raise
        finally:
            os.close(null)
        for handle in (*streams, *((token,) if token is not None else ())):
            api.close(handle)
        return WindowsProcess(api, job, started, lambda: self._tidy(plan, journal))

    def _tidy(self, plan: WindowsPlan, journal: Journal) -> tuple[Undone, ...]:
        undone = self._files.put_back(plan.absent)
        journal.undo()
        return undone


class WindowsProcess:
    """See `protocols.Process`. A thread waits for the command, ends its job and tidies up."""

    def __init__(self, api: "WindowsApi", job: int, started: "Started", tidy: Callable[[], tuple[Undone, ...]]) -> None:
        self._api = api
        self._job = job
        self._started = started
        self._tidy = tidy
        self._reader, self._writer = socket.socketpair()
        self._outcome: Outcome | None = None
        self._killed = False
        self._released = False
        self._closed = False
        self._lock = threading.Lock()  # a handle is not used once it is closed
        self._thread = threading.Thread(target=self._attend, name="doorward-wait", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Readable once everything of the run is gone."""
        return self._reader.fileno()

    def release(self) -> None:
        """Let the command start."""
        with self._lock:
            if not self._released and self._outcome is None:
                self._released = True
                self._api.resume(self._started.thread)

    def signal(self, signum: int) -> None:
        """INT and the like become Ctrl-Break, since no other can be sent to one process group; KILL ends the run."""
        if self._outcome is not None:
            return
        if signum in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGBREAK", signal.SIGINT)):
            try:
                self._api.interrupt(self._started.pid)
            except ApiError:
                self.kill()  # it has no console, so nothing gentler reaches it
        else:
            self.kill()

    def kill(self) -> None:
        """Kill the whole tree at once."""
        with self._lock:
            if self._outcome is None:
                self._killed = True
                self._api.terminate_job(self._job, _KILLED)

    def wait(self) -> Outcome:
        """Block until everything of the run is gone."""
        self._thread.join()
        assert self._outcome is not None
        return self._outcome

    def close(self) -> None:
        """Give the handles back; kills the run if it still goes on."""
        if self._closed:
            return
        if self._outcome is None:
            self.kill()
        self._thread.join()
        self._closed = True
        self._reader.close()

    def _attend(self) -> None:
        code = 125
        undone: tuple[Undone, ...] = ()
        failure: LaunchFailure | None = None
        try:
            code = self._api.wait(self._started.process)
            self._api.terminate_job(self._job, _KILLED)
            undone = self._tidy()
        except (ApiError, OSError) as error:
            failure = LaunchFailure("sandbox", f"What the run changed could not be undone: {error}.")
            code = 125
        finally:
            number = code - 128 if self._killed and code == _KILLED else None
            with self._lock:
                self._outcome = Outcome(code, number, failure, undone)
                for handle in (self._job, self._started.process, self._started.thread):
                    self._api.close(handle)
            self._writer.close()


class WindowsEnded:
    """The outcome of a command that was not started."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._reader, writer = socket.socketpair()
        writer.close()

    def fileno(self) -> int:
        """Readable from the start: at its end."""
        return self._reader.fileno()

    def release(self) -> None:
        """There is nothing to release."""

    def signal(self, signum: int) -> None:
        """There is nothing to signal."""

    def kill(self) -> None:
        """There is nothing to kill."""

    def wait(self) -> Outcome:
        """Why it did not start."""
        return self._outcome

    def close(self) -> None:
        """Give the descriptor back."""
        self._reader.close()


def enforcement_of(policy: SandboxPolicy) -> Enforcement:
    """What would hold in a run of `policy` on Windows."""
    if policy.mode is Mode.UNCONFINED:
        return Enforcement("none", "none", "none", "none")
    held: Layer = "none" if policy.mode is Mode.DANGER_FULL_ACCESS else "kernel"
    return Enforcement(held, "none" if policy.network == "full" else "env-only", held, "none")


def failed(failure: LaunchFailure) -> Outcome:
    """The outcome of a command that did not start."""
    return Outcome(_CODES.get(failure.kind, 126), failure=failure)

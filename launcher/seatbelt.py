"""The macOS door: Seatbelt through sandbox-exec(1), a reaper beside each command, the proxy on a loopback port.

There is no namespace of any kind here. So the profile does all the work (see `seatbelt_profile`), the proxy listens
on the host's loopback on a port of the run's own, and what outlives the command is looked for and ended.

The interface is that of the Linux door, but for one thing: `proxy_url` differs from run to run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from doorward.launcher.command_check import check_form, check_start, failed, failure_of_exec
from doorward.launcher.interface import (
    Command,
    Enforcement,
    LaunchFailure,
    Mode,
    Outcome,
    SandboxPolicy,
    SandboxUnavailable,
    Stdio,
    Undone,
    UnenforceableRule,
)
from doorward.launcher.loopback_listeners import Listeners, open_listeners
from doorward.launcher.mounts import Kind
from doorward.launcher.reaped_process import NotStarted, ReapedProcess, Report
from doorward.launcher.reaper import Start
from doorward.launcher.rules import PathRule, Rules, read_rules
from doorward.launcher.seatbelt_profile import Profile, make_profile
from doorward.launcher.seatbelt_survey import Look, look

if TYPE_CHECKING:
    from _socket import socket

    from doorward.launcher.interface import Layer
    from doorward.launcher.protocols import Confinement, Process

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
# <unistd.h> of macOS: _CS_DARWIN_USER_TEMP_DIR, the per-user folder below /var/folders
_DARWIN_USER_TEMP_DIR = 65537


class Seatbelt:
    """See `protocols.Backend`. `sandbox_exec` is a parameter for tests only."""

    def __init__(self, sandbox_exec: str = SANDBOX_EXEC) -> None:
        self._sandbox_exec = sandbox_exec

    def start_ahead(self) -> None:
        """Nothing has to come up here."""

    def close(self) -> None:
        """Nothing was started."""

    def prepare(self, policy: SandboxPolicy) -> Confinement:
        """Checks the policy and what it needs. Raises SandboxUnavailable, UnenforceableRule."""
        policy = policy._replace(mode=Mode(policy.mode))
        if policy.user is not None:
            raise SandboxUnavailable(
                "On macOS a command cannot be run as another user than the one who starts doorward.",
                f"Start doorward as {policy.user.name} (sudo -u {policy.user.name} doorward run …).",
            )
        if policy.limits.set_values():
            raise SandboxUnavailable(
                "On macOS nothing holds --memory, --pids, --cpu-time and --files.",
                "Leave them out, or use ulimit inside.",
            )
        rules = read_rules(policy)
        if needs_profile(policy):
            if not os.access(self._sandbox_exec, os.X_OK):
                raise SandboxUnavailable(
                    f"{self._sandbox_exec} is missing, so nothing can be confined.", "It is a part of macOS."
                )
            # what cannot be said is found out now, not at the first command
            make_profile(look(policy, rules, user_temporary(), 1).view)
        return SeatbeltConfinement(policy, rules, self._sandbox_exec)


class SeatbeltConfinement:
    """See `protocols.Confinement`."""

    def __init__(self, policy: SandboxPolicy, rules: Rules, sandbox_exec: str) -> None:
        self._policy = policy
        self._rules = rules
        self._sandbox_exec = sandbox_exec
        self._profiled = needs_profile(policy)
        self._temporary = ""
        self._listeners: Listeners | None = None
        self._tried: set[str] = set()

    @property
    def enforcement(self) -> Enforcement:
        """What the kernel holds. Seatbelt judges operations, not system calls: no call is filtered."""
        if not self._profiled:
            return Enforcement("none", "none", "none", "none")
        confined: Layer = "none" if self._policy.mode is Mode.DANGER_FULL_ACCESS else "kernel"
        return Enforcement(confined, "none" if self._policy.network == "full" else "kernel", confined, "none")

    @property
    def limits(self) -> dict[str, str]:
        """None: `prepare` refuses them."""
        return {}

    @property
    def notices(self) -> tuple[str, ...]:
        """What is weaker than it looks."""
        found = []
        if self._policy.explain:
            found.append("On macOS nothing tells what the sandbox refused (--explain-denials).")
        if self._policy.mode is Mode.DANGER_FULL_ACCESS and self._profiled:
            found.append(
                "The file system has no boundary: a service of this machine that answers on a unix socket "
                "can still reach the network for the command."
            )
        if self._policy.replaced:
            found.append(
                "No file can stand in the place of another on macOS: programs that take no variable for their "
                "certificates will not trust the inspection's authority."
            )
        if self._profiled and self._policy.local_binding and self._policy.network != "full":
            found.append("Every service of this machine that listens on localhost can be reached.")
        return tuple(found)

    def proxy_url(self) -> str:
        """Where the next command finds the proxy. Raises SandboxUnavailable if no port can be had."""
        if self._listeners is None:
            try:
                self._listeners = open_listeners()
            except OSError as error:
                raise SandboxUnavailable(f"The proxy cannot listen on localhost ({error.strerror}).") from error
        return self._listeners.url

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """`env` with its temporary folder the next command's own, below the user's."""
        inner = dict(env)
        if self._policy.mode not in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE):
            return inner
        inner["TMPDIR"] = self._own_temporary() + "/"
        inner["TMPPREFIX"] = f"{self._temporary}/zsh"
        for name in ("TMP", "TEMP", "TEMPDIR"):
            if name in inner:
                inner[name] = self._temporary
        return inner

    def spawn(
        self,
        command: Command,
        stdio: Stdio,
        *,
        handover: socket | None = None,
        run: str = "",
        policy_id: str = "",
    ) -> Process:
        """See `protocols.Confinement.spawn`."""
        failure = check_form(command)
        if failure is not None:
            return NotStarted(failed(failure))
        path, argv, found = command.argv[0], command.argv, None
        if self._profiled:
            port = None
            if self._policy.network == "proxied":
                self.proxy_url()
                port = self._listeners.port if self._listeners else None
            terminal = "" if stdio.terminal is None else os.ttyname(stdio.terminal)
            found = look(self._policy, self._rules, self._own_temporary(), port, terminal)
            failure = check_start(command, found.plan)
            if failure is not None:
                return NotStarted(failed(failure))
            profile = make_profile(found.view)
            self._try(profile)
            path, argv = self._sandbox_exec, ("sandbox-exec", *profile.arguments(), *command.argv)
        if self._listeners is not None:
            try:
                if handover is not None:
                    self._listeners.hand_over(handover, run, policy_id)
            except OSError as error:
                raise SandboxUnavailable(f"The proxy did not take its listeners ({error.strerror}).") from error
            finally:
                self._listeners.close()
                self._listeners = None
        env = {"PWD": command.cwd, **command.env} if "PWD" in command.env else dict(command.env)
        temporary, self._temporary = self._temporary, ""
        start = Start(
            path, tuple(argv), tuple(env.items()), command.cwd, stdio, temporary, found.sifted if found else ()
        )
        return ReapedProcess(start, lambda report: self._conclude(report, command))

    def start_ahead(self) -> None:
        """Nothing has to come up here."""

    def close(self) -> None:
        """Gives back what was made for a command that never came."""
        if self._listeners is not None:
            self._listeners.close()
            self._listeners = None
        if self._temporary:
            import shutil  # rare

            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = ""

    def _own_temporary(self) -> str:
        if not self._temporary:
            import tempfile

            try:
                self._temporary = os.path.realpath(tempfile.mkdtemp(prefix="doorward-", dir=user_temporary()))
            except OSError as error:
                raise SandboxUnavailable(f"No temporary folder can be made ({error.strerror}).") from error
        return self._temporary

    def _try(self, profile: Profile) -> None:
        """Starts /usr/bin/true under the profile: sandbox-exec's own failures have exit statuses that a command may
        have too. Once for each text; the parameters are only data."""
        if profile.text in self._tried:
            return
        reader, writer = os.pipe()
        try:
            argv = ("sandbox-exec", *profile.arguments(), "/usr/bin/true")
            process = ReapedProcess(Start(self._sandbox_exec, argv, (), "/", Stdio(-1, -1, writer)), _tried)
            os.close(writer)
            writer = -1
            process.release()
            text = os.read(reader, 4096).decode("utf-8", "replace")
            outcome = process.wait()
            process.close()
        finally:
            os.close(reader)
            if writer >= 0:
                os.close(writer)
        if outcome.exit_code != 0:
            raise unavailable(text)
        self._tried.add(profile.text)

    def _conclude(self, report: Report | None, command: Command) -> Outcome:
        if report is None:
            return failed(LaunchFailure("sandbox", "The process that looked after the command was killed."))
        undone = tuple(Undone(*entry) for entry in report["undone"])
        error = report["error"]
        if not error:
            return _ended(report["status"])._replace(undone=undone)
        if error["step"] == "exec" and not self._profiled:
            return failed(failure_of_exec(command.argv[0], error["errno"]))._replace(undone=undone)
        if error["step"] == "directory":
            failure = LaunchFailure(
                "directory", f"The working directory {command.cwd} cannot be entered ({os.strerror(error['errno'])})."
            )
        else:
            failure = LaunchFailure("sandbox", f"The sandbox did not start: {os.strerror(error['errno'])}.")
        return failed(failure)._replace(undone=undone)


def needs_profile(policy: SandboxPolicy) -> bool:
    """Whether anything is to be held back at all."""
    if policy.mode is Mode.UNCONFINED:
        return False
    return policy.mode is not Mode.DANGER_FULL_ACCESS or policy.network != "full"


def user_temporary() -> str:
    """The user's own temporary folder, 0700, below /var/folders (confstr(3) of macOS)."""
    try:
        found = os.confstr(_DARWIN_USER_TEMP_DIR)
    except (OSError, ValueError):
        found = None
    return os.path.realpath(found or os.environ.get("TMPDIR") or "/tmp")


def unavailable(text: str) -> SandboxUnavailable:
    """What sandbox-exec's own words mean (it writes `sandbox-exec: …` and exits 65 or 71, sysexits(3))."""
    said = text.strip().splitlines()[0] if text.strip() else "it said nothing"
    if "Operation not permitted" in text:
        return SandboxUnavailable(
            "A sandbox cannot be started inside another one, and this process is in one.",
            "Run doorward from a terminal outside it.",
        )
    return SandboxUnavailable(
        f"sandbox-exec does not take the profile ({said}).",
        "This is a fault of doorward's: please report it with the version of macOS.",
    )


def render(policy: SandboxPolicy) -> tuple[Profile, Look]:
    """The profile a run of `policy` would get, with stand-ins for what only a run has: its temporary folder and its
    port. What is to be writable need not exist here. Raises UnenforceableRule, SandboxUnavailable."""
    policy = policy._replace(mode=Mode(policy.mode))
    rules = read_rules(policy._replace(write=()))
    written: list[PathRule] = []
    for entry in policy.write:
        try:
            written += read_rules(policy._replace(write=(entry,), read_only=(), deny_read=())).rules
        except UnenforceableRule:
            path = os.path.realpath(os.path.join(rules.workspace, os.path.expanduser(entry)))
            if os.path.lexists(path) or policy.mode not in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE):
                raise
            written.append(PathRule(Kind.WRITE, entry, path))
    rules = rules._replace(rules=(*rules.rules, *written))
    found = look(policy, rules, "/private/var/folders/xx/yyyyyyyy/T/doorward-run", 49152)
    return make_profile(found.view), found


def _ended(status: int) -> Outcome:
    code = os.waitstatus_to_exitcode(status)
    return Outcome(128 - code, -code) if code < 0 else Outcome(code)


def _tried(report: Report | None) -> Outcome:
    if report is None or report["error"]:
        return Outcome(125)
    return _ended(report["status"])

"""The Linux door: bubblewrap, a seccomp filter, and a shim that outlives a killed supervisor."""

from __future__ import annotations

import os
import select
import time

from doorward.launcher import bubblewrap as bwrap
from doorward.launcher.bubblewrap import Bubblewrap
from doorward.launcher.command_check import check_form, check_start, failed
from doorward.launcher.interface import (
    PROXY_PORT,
    Command,
    Denied,
    Door,
    Enforcement,
    LaunchFailure,
    Mode,
    Outcome,
    SandboxPolicy,
    SandboxUnavailable,
    Stdio,
    Undone,
)
from doorward.launcher.launch import Launch
from doorward.launcher.mounts import Kind
from doorward.launcher.outcome import read_report
from doorward.launcher.plan import make_plan
from doorward.launcher.process import NeverStarted, ShimProcess
from doorward.launcher.rules import Rules, read_rules
from doorward.launcher.seccomp import filter_bytes
from doorward.launcher.seed import (
    CLONE_NEWNET,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    Seed,
    allowed,
    at_terminal,
    plant,
    plant_first,
)
from doorward.launcher.streams import check_streams
from doorward.launcher.survey import Survey, survey
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket  # which the supervisor takes, and `socket.socket` is one
    from collections.abc import Mapping

    from doorward.launcher.interface import Layer
    from doorward.launcher.planter import Planter
    from doorward.launcher.process import Report
    from doorward.launcher.protocols import Confinement, Process

# bubblewrap says its child's pid within milliseconds of its start.
SETUP_DEADLINE_S = 10.0
# For a second look at a start that failed.
_EXPLAIN_DEADLINE_S = 15.0


class Linux:
    """See `protocols.Backend`. `search_path` is where bubblewrap is looked for, PATH unless given."""

    def __init__(self, search_path: str | None = None, *, seed: Seed | None = None) -> None:
        """`seed` is a shim that was started ahead."""
        self._search_path = search_path
        self._seed = seed

    def start_ahead(self) -> None:
        """Forks the first run's shim now, so that it is ready when its policy is; see `plant_first`."""
        if self._seed is None:
            self._seed = plant_first()

    def close(self) -> None:
        """Ends a shim that was started ahead and that no confinement took."""
        if self._seed is not None:
            self._seed.discard()
            self._seed = None

    def prepare(self, policy: SandboxPolicy) -> Confinement:
        """Checks the policy and what it needs. Raises SandboxUnavailable, UnenforceableRule."""
        policy = policy._replace(mode=Mode(policy.mode))
        if policy.user is not None and os.geteuid() != 0:
            raise SandboxUnavailable(
                f"Only root can run a command as another user, {policy.user.name}.",
                f"Start doorward as root (sudo doorward run --user {policy.user.name} …), or as {policy.user.name}.",
            )
        rules = read_rules(policy)
        if policy.mode is Mode.UNCONFINED:
            return LinuxConfinement(policy, rules, None, b"", ())
        search_path = os.environ.get("PATH", os.defpath) if self._search_path is None else self._search_path
        writable = (rule.path for rule in rules.rules if rule.kind is Kind.WRITE and rule.path != "/")
        avoid = [rules.workspace, *writable]
        found = bwrap.find(search_path, avoid, policy.cache_dir)
        notices: list[str] = []
        program = b""
        if policy.mode is not Mode.DANGER_FULL_ACCESS or policy.network != "full":
            try:
                program = filter_bytes(policy.cache_dir)
            except SandboxUnavailable as error:
                if policy.require == "full":
                    raise
                notices.append(f"System calls are not filtered: {error.sentence}")
        seed, self._seed = self._seed, None
        confinement = LinuxConfinement(policy, rules, found, program, tuple(notices), seed)
        if policy.require == "best-effort":
            confinement.settle_for_what_holds()
        return confinement


class LinuxConfinement:
    """See `protocols.Confinement`."""

    def __init__(
        self,
        policy: SandboxPolicy,
        rules: Rules,
        found: Bubblewrap | None,
        program: bytes,
        notices: tuple[str, ...],
        seed: Seed | None = None,
    ) -> None:
        self._policy = policy
        self._rules = rules
        self._bubblewrap = found
        self._program = program
        self._scoped = False
        if policy.mode in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE) and policy.network == "full":
            from doorward.launcher.syscalls import can_scope  # rare, and 1 ms

            self._scoped = can_scope()
        self._notices = notices + _notices(policy, self._scoped)
        self._fresh_proc = True
        self._seed = seed
        self._planted = False
        self._planter: Planter | None = None
        uid = os.geteuid() if policy.user is None else policy.user.uid
        self._uid = uid
        confined = policy.mode in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE)
        own_network = found is not None and policy.network != "full"
        # root with the host's network and files and no limits keeps its powers: a user namespace would take
        # them. With a network of its own it must not be able to leave it.
        self._user = confined or own_network or uid != 0
        self._limited = confined or own_network
        self._own_network = own_network
        self._held: dict[str, str] = {}
        self._cgroup = ""
        if policy.limits.set_values():
            self._share_out_limits()
        self._watching = ""
        self._calls: tuple[tuple[int, int], ...] = ()
        if policy.explain and confined:
            self._watch_for_denials()

    @property
    def enforcement(self) -> Enforcement:
        """What the kernel holds in a run of this confinement."""
        if self._bubblewrap is None:
            return Enforcement("none", "none", "none", "none")
        filesystem: Layer = "kernel" if self._policy.mode is not Mode.DANGER_FULL_ACCESS else "none"
        return Enforcement(
            filesystem,
            "kernel" if self._own_network else "none",
            "kernel" if self._fresh_proc else "none",
            "kernel" if self._program else "none",
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """What is weaker than it looks."""
        return self._notices

    def proxy_url(self) -> str:
        """The same for every run, each of which has a network namespace of its own."""
        return f"http://127.0.0.1:{PROXY_PORT}"

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """`env` with its temporary directories inside the sandbox's private ones."""
        inner = dict(env)
        if self._policy.mode not in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE):
            return inner
        inner["TMPDIR"] = "/tmp"
        inner["TMPPREFIX"] = "/tmp/zsh"  # zsh writes here-documents there whatever TMPDIR says
        for name in ("TMP", "TEMP", "TEMPDIR"):
            if name in inner:
                inner[name] = "/tmp"
        if "XDG_RUNTIME_DIR" in inner:
            inner["XDG_RUNTIME_DIR"] = f"/run/user/{self._uid}"
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
        failure = check_form(command) or check_streams(stdio)
        if failure is not None:
            return NeverStarted(failed(failure))
        captured = handover is not None and self._policy.door.transparent
        seed = self._take_seed(captured=captured, terminal=stdio.terminal is not None)
        try:
            # while the shim makes its namespaces
            found = survey(self._policy, self._rules, uid=self._uid, fresh_proc=self._fresh_proc)
            failure = self._check_start(command, found)
            if failure is not None:
                seed.discard()
                return NeverStarted(failed(failure))
            launch = self._launch(found, command, stdio, handover=handover, run=run, policy_id=policy_id)
        except BaseException:
            seed.discard()
            raise
        return ShimProcess(seed, launch, lambda report: self._conclude(report, command, found))

    def start_ahead(self) -> None:
        """Makes the next run's shim now, so that its namespaces are there when the command is."""
        if self._seed is not None:
            return
        from doorward.launcher.planter import Planter  # for sessions of several commands

        self._planted = True
        wanted, user, terminal = self._namespaces(), self._policy.user, at_terminal()
        captured = self._policy.door.transparent
        try:
            self._planter = self._planter or Planter()
            self._seed = self._planter.plant(wanted, user, captured=captured, terminal=terminal)
        except OSError:
            self._seed = plant(wanted, user, captured=captured, terminal=terminal)

    def close(self) -> None:
        """Ends a shim that was started ahead and not used."""
        if self._seed is not None:
            self._seed.discard()
            self._seed = None
        if self._planter is not None:
            self._planter.close()
            self._planter = None

    @property
    def limits(self) -> dict[str, str]:
        """Each limit that is set, and what holds it: `cgroup`, `rlimit` or `doorward`."""
        return dict(self._held)

    def _share_out_limits(self) -> None:
        from doorward.launcher import share_limits  # for runs with limits only

        shared = share_limits.share(
            self._policy,
            kernel_uid=self._uid,
            own_users=bool(self._user and self._bubblewrap is not None and self._namespaces()),
        )
        self._held, self._cgroup = shared.held, shared.cgroup
        self._notices += shared.notices

    def _watch_for_denials(self) -> None:
        from doorward.launcher.denial_filter import watching_program  # for runs that are explained only

        if not self._namespaces():
            self._notices += ("What the sandbox refuses cannot be explained where only bubblewrap makes namespaces.",)
            return
        try:
            program = watching_program(self._policy.cache_dir, reads=bool(self._policy.deny_read))
        except SandboxUnavailable as error:
            self._notices += (f"What the sandbox refuses cannot be explained: {error.sentence}",)
            return
        self._watching, self._calls = program.code.hex(), tuple(program.calls.items())

    def settle_for_what_holds(self) -> None:
        """Tries a start, and goes without a fresh /proc where that is all that is missing."""
        command = Command(("/",), "/", {})
        looked = self._look_again(command)
        if looked.step == "proc" or "Can't mount proc" in looked.text:
            self._fresh_proc = False
            self._notices += (
                "The sandbox shows the /proc it was started in, since a fresh one cannot be mounted here: "
                "processes outside are visible inside (they still cannot be signalled).",
            )
            looked = self._look_again(command)
        failure = self._explain(looked, command)
        if failure.kind == "sandbox":
            raise SandboxUnavailable(failure.sentence, failure.remedy)

    # --- starting

    def _launch(
        self,
        found: Survey,
        command: Command,
        stdio: Stdio,
        *,
        handover: socket | None = None,
        run: str = "",
        policy_id: str = "",
    ) -> Launch:
        plan = make_plan(
            self._bubblewrap,
            found,
            command,
            stdio,
            self._policy.cache_dir,
            names=self._policy.door.transparent and handover is not None,
            user=self._user,
            limited=self._limited,
        )
        return Launch(
            plan=plan,
            bubblewrap=self._bubblewrap.path if self._bubblewrap else "",
            network=self._own_network,
            fresh_proc=self._fresh_proc,
            argv=() if plan.carrier else command.argv,
            cwd=command.cwd,
            env=() if self._bubblewrap else tuple(command.env.items()),
            program=self._program.hex(),
            run=run,
            policy_id=policy_id,
            deadline_s=SETUP_DEADLINE_S,
            cache_dir=self._policy.cache_dir,
            scoped=self._scoped,
            user=self._policy.user,
            limits=self._policy.limits,
            held=tuple(self._held.items()),
            cgroup=self._cgroup,
            watching=self._watching,
            calls=self._calls,
            door=self._policy.door if handover is not None else Door(),
            stdio=stdio,
            handover=-1 if handover is None else handover.fileno(),
        )

    def _check_start(self, command: Command, found: Survey) -> LaunchFailure | None:
        if self._policy.user is None:
            return check_start(command, found.plan)
        from doorward.launcher.other_user import check_start_as

        return check_start_as(self._policy.user, command, found.plan)

    def _take_seed(self, *, captured: bool = False, terminal: bool = False) -> Seed:
        if self._planted:
            # from the second start on a fork finds its modules loaded; before, it loads them while we plan
            from doorward.launcher import shim  # noqa: F401
        self._planted = True
        seed, self._seed = self._seed, None
        wanted = self._namespaces()
        if seed is not None and (
            (seed.namespaces, seed.user) != (wanted, self._policy.user)
            or (seed.captured and not captured)
            or (terminal and not seed.terminal)
        ):
            seed.discard()
            seed = None
        if seed is None:
            seed = plant(wanted, self._policy.user, captured=captured, terminal=terminal)
        return seed

    def _namespaces(self) -> int:
        if self._bubblewrap is None:
            return 0
        # bubblewrap looks its child up in /proc, so a pid namespace of ours needs a /proc of ours
        flags = CLONE_NEWPID if self._fresh_proc else 0
        if self._own_network:
            flags |= CLONE_NEWNET
        if self._user and (flags or self._limited):
            flags |= CLONE_NEWUSER
        return allowed(flags)

    # --- the end

    def _conclude(self, report: Report | None, command: Command, found: Survey) -> Outcome:
        if report is None:
            if self._cgroup:
                from doorward.launcher.cgroups import sweep

                sweep(self._cgroup)
            # what it looked after is now ours to put back
            return failed(LaunchFailure("sandbox", "The process that held the sandbox was killed."))._replace(
                undone=_put_back(found)
            )
        outcome = read_report(report, confined=self._bubblewrap is not None)
        if isinstance(outcome, Outcome):
            if self._held and (seen := report.get("measured")) is not None:
                from doorward.launcher.limits import Measured, limits_hit

                hit = limits_hit(self._policy.limits, Measured(*seen))
                outcome = outcome._replace(limits_hit=hit)
            if self._watching:
                denied = tuple(Denied(*each) for each in report.get("denied", ()))
                outcome = outcome._replace(denied=denied)
            return outcome
        looked = Looked(*outcome[:3]) if outcome.step else self._look_again(command)
        undone = tuple(Undone(*entry) for entry in report.get("undone", ()))
        planned = None if outcome.passed else found
        return failed(self._explain(looked, command, planned))._replace(undone=undone)

    def _look_again(self, command: Command) -> Looked:
        """Makes the same start once more with a program that can never be executed, and catches what
        bubblewrap says: in the run itself its stderr was the command's."""
        reader, writer = os.pipe()
        process: ShimProcess | None = None
        try:
            never = command._replace(argv=("/",))
            seed = self._take_seed()
            try:
                found = survey(self._policy, self._rules, uid=self._uid, fresh_proc=self._fresh_proc)
                launch = self._launch(found, never, Stdio(-1, -1, writer))
            except BaseException:
                seed.discard()
                raise
            process = ShimProcess(seed, launch, _no_outcome)
            os.close(writer)
            writer = -1
            process.release()
            text = _read_text(reader, _EXPLAIN_DEADLINE_S)
            process.kill()
            report = process.collect() or {}
        finally:
            if process is not None:
                process.close()
            os.close(reader)
            if writer >= 0:
                os.close(writer)
        error = report.get("error") or {}
        return Looked(error.get("step", ""), error.get("errno", 0), text)

    def _explain(self, looked: Looked, command: Command, planned: Survey | None = None) -> LaunchFailure:
        """What kept the command from starting. `planned`: what a sandbox that was never finished was to be."""
        from doorward.launcher.diagnosis import explain_step, explain_text, read_facts, went_away

        facts = read_facts()
        name = command.argv[0]
        path = self._bubblewrap.path if self._bubblewrap else name
        if looked.step:
            return explain_step(
                looked.step, looked.number, looked.text, facts, name=name, path=path, deadline_s=SETUP_DEADLINE_S
            )
        failure = explain_text(looked.text, facts)
        if failure is not None:
            return failure
        # the sandbox stands now, so the command could not be executed, or something was gone for a moment
        found = survey(self._policy, self._rules, uid=self._uid, fresh_proc=self._fresh_proc)
        failure = self._check_start(command, found)
        if failure is None and planned is not None:
            failure = went_away(planned.plan, planned.sockets)
        return failure or LaunchFailure(
            "not-executable", f"{name} could not be started: its format is not what the kernel takes."
        )


class Looked(NamedTuple):
    """What a second look at a failed start found: a failed step of ours, or bubblewrap's words."""

    step: str
    number: int
    text: str


def _no_outcome(report: Report | None) -> Outcome:
    return Outcome(0)


def _put_back(found: Survey) -> tuple[Undone, ...]:
    from doorward.launcher.undo import Keeper

    keeper = Keeper(found.watched)
    keeper.put_back(final=True)
    keeper.close()
    return keeper.report


def _read_text(reader: int, deadline_s: float) -> str:
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    deadline = time.monotonic() + deadline_s
    text = b""
    while poll.poll(max(0, (deadline - time.monotonic()) * 1000)):
        piece = os.read(reader, 4096)
        if not piece:
            break
        text = (text + piece)[:65536]
    return text.decode("utf-8", "replace")


def _notices(policy: SandboxPolicy, scoped: bool) -> tuple[str, ...]:
    if policy.mode is Mode.DANGER_FULL_ACCESS and policy.network != "full":
        return (
            "The file system has no boundary: a service of this machine that answers on a unix socket "
            "can still reach the network for the command.",
        )
    if policy.mode in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE) and policy.network == "full" and not scoped:
        return ("With the whole network open, abstract unix sockets of this machine can be reached as well.",)
    return ()

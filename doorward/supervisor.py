"""The supervisor of one session: starts the sandbox held, asks the gates, writes each record before it is seen.

The order of imports is part of the design: what the held sandbox needs comes first; the gates and the rollout are
imported while its namespaces are being made.
"""

from __future__ import annotations

import time

from doorward import exit_status
from doorward.errors import EngineError, UsageError
from doorward.inner_environment import InnerEnvironment, build
from doorward.launcher.interface import (
    Command,
    Enforcement,
    SandboxUnavailable,
    Stdio,
    UnenforceableRule,
)
from doorward.named_tuple import NamedTuple
from doorward.plan import Plan
from doorward.proxy_process import POLICY, ProxyProcess, payload_of
from doorward.sessions.home import Home, StoreError
from doorward.streams import Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from doorward.gates.action import Action
    from doorward.gates.verdict import Verdict
    from doorward.hint import Hint
    from doorward.host_asking import HostAsking
    from doorward.inspection_run import RunInspection
    from doorward.launcher.protocols import Backend, Confinement, Process
    from doorward.observation import Observation
    from doorward.permission import Permission
    from doorward.proxy_process import Told
    from doorward.second_run import Grants
    from doorward.session_log import SessionLog
    from doorward.sessions.output import OutputRecord, OutputRecorder, Stream
    from doorward.streams import Record
    from doorward.turn import Waited

_NOTHING_RAN = Enforcement("none", "none", "none", "none")


class Request(NamedTuple):
    """One command to run. `env` is the caller's environment, unfiltered; `timeout_s` None means no limit;
    `cancelled_by` is a descriptor whose far end closing kills the command; `last` says that no other follows;
    `kept_later` that `start_ahead` is called once the caller has the answer, and brings the turn to the disk."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    open_streams: Callable[[Record], Streams]
    timeout_s: float | None = None
    cancelled_by: int | None = None
    last: bool = False
    kept_later: bool = False


class _Recording:
    """The command's output on its way into the record. The recorder is made at the first byte, or at the end."""

    def __init__(self, home: Home, *, redact: bool) -> None:
        self._home = home
        self._redact = redact
        self._recorder: OutputRecorder | None = None

    def feed(self, stream: Stream, data: bytes) -> None:
        self._made().feed(stream, data)

    def finish(self) -> OutputRecord:
        try:
            return self._made().finish()
        except StoreError as error:
            raise EngineError(f"the command's output cannot be recorded: {error}", "free some space") from None

    def discard(self) -> None:
        if self._recorder is not None:
            self._recorder.discard()

    def _made(self) -> OutputRecorder:
        if self._recorder is None:
            from doorward.sessions.output import OutputRecorder

            self._recorder = OutputRecorder(self._home, redact=self._redact)
        return self._recorder


class Launch(NamedTuple):
    """A command that is set up and held before its first instruction."""

    run: str
    process: Process
    streams: Streams
    recording: _Recording
    inner: InnerEnvironment
    confinement: Confinement

    def abort(self) -> None:
        """Undo the set-up; safe at every stage, also when the turn's loop has cleaned up part of it."""
        self.process.kill()
        self.process.wait()
        self.process.close()
        self.recording.discard()
        self.streams.close()


class Supervisor:
    """Runs turns of one session, one after the other; the proxy, the plan and all imports serve every turn.

    Raises EngineError where the machine is broken (nothing of the command runs then), UsageError for rules that
    cannot be read; everything a door says is in the Observation.
    """

    def __init__(
        self,
        plan: Plan,
        proxy: ProxyProcess | None,
        backend: Backend,
        *,
        interactive: bool = False,
        inspection: RunInspection | None = None,
        approved: str | None = None,
    ) -> None:
        """`proxy` has been sent the plan's settings. `interactive`: a person at the terminal may be asked.
        `approved` is the secret of a yes that a person gave through an agent."""
        self._approved = approved
        self._plan = plan
        self._backend = backend
        self._interactive = interactive
        self._confinement: Confinement | None = None
        self._log: SessionLog | None = None
        self._permission: Permission | None = None
        self._proxy = proxy if plan.proxied else None
        self._proxy_ready = False
        self._inspection = inspection
        self._runs = 0
        self._over: Process | None = None  # the last command's, whose shim may still be ending
        self._redact = plan.configuration.text("replay.redact") == "write"
        self.notices: list[str] = list(plan.notices)
        """What a person should know, one sentence each."""
        if proxy is not None and self._proxy is None:
            proxy.close()

    @property
    def workspace(self) -> str:
        """The folder commands run in unless they name another."""
        return self._plan.sandbox.workspace

    def prepare(self) -> None:
        """Find out now what would otherwise come up with the first command. Raises UsageError, EngineError."""
        self._await_proxy()
        if self._proxy is not None:
            self._proxy.serve()
        self._confine()

    def start_ahead(self) -> None:
        """What a command's caller need not wait for: its turn on the disk, and the next command's sandbox. Raises
        EngineError for a turn that cannot be kept."""
        self._let_go()
        self._confine().start_ahead()
        if self._log is not None:
            self._log.to_disk()

    def run(self, request: Request) -> Observation:
        """One turn, from the gates to its observation; under `on-failure` a second one, if something was refused and
        somebody wants the command run again with exactly that granted."""
        if self._plan.configuration.text("approval_policy") != "on-failure":
            return self._turn(request)
        permission = self._permitting()
        permission.offers = True
        observation = self._turn(request._replace(last=False))
        permission.offers = False
        grants = permission.take_granted()
        return observation if grants is None else self._run_again(request, grants)

    def _run_again(self, request: Request, grants: Grants) -> Observation:
        """One more turn under what was granted, which holds for that turn alone."""
        from doorward.second_run import with_grants

        before = self._plan, self._confinement
        self._plan, self._confinement = with_grants(self._plan, grants), None
        try:
            self._configure()
            confinement = self._confine()
            try:
                self._permitting().judge_by(self._plan)
                return self._turn(request)
            finally:
                confinement.close()
        finally:
            self._plan, self._confinement = before
            self._permitting().judge_by(self._plan)
            if not request.last:
                self._configure()

    def _configure(self) -> None:
        """Send the proxy the plan's rules."""
        if self._proxy is not None:
            self._proxy.configure(self._plan.proxy_settings)
            self._proxy.await_ready()

    def _turn(self, request: Request) -> Observation:
        started = time.monotonic()
        self._let_go()
        # held before its first instruction; its namespaces come up in a process of its own while we go on
        launch = self._start(request)
        try:
            from doorward.gates.verdict import Effect
            from doorward.shell_action import shell_action

            action = shell_action(request.argv, request.cwd, request.env)
            permission = self._permitting()
            verdict = permission.by_the_gates(action, self.session_log)
            self._await_proxy()
            log = self.session_log()
            log.begin_turn(action, permission.context)
            verdict = permission.asked(log, action, verdict, request)
            log.verdict(action, verdict)
            if verdict.verdict is not Effect.ALLOW:
                launch.abort()
                return self._refused(log, action, request, verdict, started)
            log.exec(
                action,
                launch.inner.variables,
                permission.context,
                launch.confinement.enforcement._asdict(),
                withheld=launch.inner.withheld,
                limits=launch.confinement.limits,
                notices=launch.confinement.notices,
                recorded=bool(launch.streams.inlets),
                terminal=launch.streams.terminal is not None,
                redacted=self._redact,
                seal_to=self._plan.seal_to,
            )
            return self._attend(log, action, launch, request, verdict, started)
        except BaseException:
            launch.abort()
            raise

    def session_log(self) -> SessionLog:
        """The session's rollout, opened or made if it is not yet. Raises EngineError."""
        self._log = self._log or self._open_log()
        return self._log

    def _open_log(self) -> SessionLog:
        from doorward.session_log import SessionLog

        if self._plan.agent is not None:
            from doorward.agents.rollouts import claimed  # only for what an agent runs

            return claimed(self._plan)
        if self._plan.session is not None:
            return SessionLog.resume(self._plan.home, self._plan.session)
        return SessionLog.create(
            self._plan.home, cwd=self.workspace, name=self._plan.name, profile=self._plan.sandbox_profile
        )

    def close(self) -> None:
        """End the proxy, close the rollout, and end what was started ahead."""
        self._let_go()
        if self._permission is not None:
            self._permission.close()
            self._permission = None
        if self._confinement is not None:
            self._confinement.close()
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None
        if self._inspection is not None:
            self._inspection.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _start(self, request: Request) -> Launch:
        self._runs += 1
        run = str(self._runs)
        recording = _Recording(self._plan.home, redact=self._redact)
        streams: Streams | None = None
        try:
            confinement = self._confine()
            user, passed = self._plan.user, self._plan.configuration.strings("env.pass")
            env = self._without_guardians_key(request.env, passed)
            inner = build(
                env if user is None else user.variables(env, passed),
                inherit=self._plan.configuration.text("env.inherit"),
                passed=passed,
                proxy_url=confinement.proxy_url() if self._proxy is not None else None,
            )
            inner = inner._replace(variables=confinement.environment(inner.variables))
            if self._inspection is not None:
                inner = self._inspection.inside(inner)
            if self._proxy is not None and not self._plan.sandbox.door.transparent:
                from doorward.git_over_ssh import git_ssh_command  # where the proxy is the only way out

                if (command := git_ssh_command(inner.variables)) is not None:
                    inner = inner._replace(variables={**inner.variables, "GIT_SSH_COMMAND": command})
            if self._proxy is not None and self._plan.sandbox.door.on_demand:
                from doorward.granted_ports import publish  # for few runs only

                publish(self._plan.configuration, self._proxy.handover, run, POLICY)
            streams = request.open_streams(recording.feed)
            if user is not None:
                from doorward.other_user import give_streams

                terminal = () if streams.terminal is None else (streams.terminal.slave,)
                give_streams(user.identity, (*streams.ours, *terminal))
            process = confinement.spawn(
                Command(request.argv, request.cwd, inner.variables),
                Stdio(
                    streams.stdin,
                    streams.stdout,
                    streams.stderr,
                    streams.terminal.slave if streams.terminal is not None else None,
                ),
                handover=self._proxy.handover if self._proxy is not None else None,
                run=run,
                policy_id=POLICY,
            )
        except BaseException as error:
            if streams is not None:
                streams.close()
            raise _told(error) from None
        return Launch(run, process, streams, recording, inner, confinement)

    def _without_guardians_key(self, env: Mapping[str, str], passed: tuple[str, ...]) -> Mapping[str, str]:
        name = self._plan.configuration.optional_text("guardian.key_env")
        return env if name is None or name in passed else {key: value for key, value in env.items() if key != name}

    def _confine(self) -> Confinement:
        if self._confinement is None:
            if self._inspection is not None:
                self._inspection.await_files()  # they are mounted
            try:
                self._plan.home.ensure_approvals()  # what is not there cannot be hidden
            except StoreError as error:
                raise EngineError(f"the session cannot be recorded: {error}") from None
            try:
                self._confinement = self._backend.prepare(self._plan.sandbox)
            except (SandboxUnavailable, UnenforceableRule) as error:
                raise _told(error) from None
            self.notices += self._confinement.notices
        return self._confinement

    def _await_proxy(self) -> None:
        if self._proxy is not None and not self._proxy_ready:
            self._proxy.await_ready()
            self._proxy_ready = True
            self.notices += self._proxy.notices

    def _permitting(self) -> Permission:
        if self._permission is None:
            from doorward.permission import Permission  # while the sandbox comes up

            self._permission = Permission(
                self._plan,
                start=self._start,
                proxy=lambda: self._proxy,
                interactive=self._interactive,
                approved=self._approved,
            )
        return self._permission

    def _refused(
        self, log: SessionLog, action: Action, request: Request, verdict: Verdict, started: float
    ) -> Observation:
        from doorward.gates.refusal import refusal_of

        refusal = refusal_of(verdict)
        log.refusal(refusal)
        notes = self._permitting().ended(log, action, request, [refusal])
        return self._observe(
            log, verdict, exit_status.REFUSED, None, None, [refusal], _NOTHING_RAN, started, notes,
            kept_later=request.kept_later,
        )  # fmt: skip

    def _attend(
        self,
        log: SessionLog,
        action: Action,
        launch: Launch,
        request: Request,
        verdict: Verdict,
        started: float,
    ) -> Observation:
        """Let the command go, wait for it, and tell what came of it."""
        from doorward.turn import SignalInbox, TurnLoop, final_status

        refusals: list[Mapping[str, Any]] = []
        watched: list[Mapping[str, Any]] = []
        told: list[str] = []

        def kept(records: Sequence[Told]) -> None:
            for each in records:
                if each[0] != "network" or each[1] is not None:  # a name is no place yet
                    heard(each[0], payload_of(each))

        def heard(kind: str, payload: dict[str, Any]) -> None:
            if kind == "refusal":
                refusals.append(payload)
            elif kind == "network":
                observed = payload["decision"] == "allow" and payload["reason"] != "allowed"
                if observed and payload["protocol"] != "dns":  # likewise
                    watched.append(payload)
            else:
                if self._inspection is not None:
                    self._inspection.heard(payload)
                if payload["type"] == "capture_unavailable":
                    told.append(payload["message"])
                elif payload["type"] == "published":
                    from doorward.granted_ports import tell  # for few runs only

                    tell(payload)

        def prepare_to_tell() -> None:
            if refusals and request.last:
                import doorward.summary  # noqa: F401 - what the end of the run would wait for

        def ask_about_hosts() -> HostAsking:
            from doorward.host_asking import HostAsking  # only where the proxy has a question

            assert self._proxy is not None
            return HostAsking(self._permitting().approvals, log, self._proxy, action)

        loop = TurnLoop(
            launch.process,
            launch.streams,
            self._proxy,
            launch.run,
            log.of_proxy,
            cancelled_by=request.cancelled_by,
            ask_about_hosts=ask_about_hosts,
            kept=kept,
            between=prepare_to_tell,
        )
        terminal = launch.streams.terminal
        inbox = SignalInbox()
        try:
            launch.process.release()
            if self._proxy is not None:
                self._proxy.serve()
            launch.streams.hand_over()
            if terminal is not None:
                terminal.start()
            import doorward.observation  # noqa: F401 - now, while the sandbox comes up, and not when all wait for the end
            log.to_disk()  # likewise; what was allowed is found after a power cut, too

            waited = loop.wait(inbox, request.timeout_s)
        except StoreError as error:
            raise EngineError(f"the command's output cannot be recorded: {error}", "free some space") from None
        finally:
            inbox.close()
            if terminal is not None:
                terminal.close()
        if request.last and self._proxy is not None and not self._permitting().has_hooks:
            self._proxy.end()
        for undone in waited.outcome.undone:
            from doorward.sandbox_refusal import refusal_of_undone

            body = refusal_of_undone(undone)
            log.refusal(body)
            refusals.append(body)
        notes = [*told, *self._notes(waited)]
        if (failure := waited.outcome.failure) is not None and failure.kind == "sandbox":
            notes.append(failure.sentence)
            output = launch.recording.finish()
            self._observe(
                log, verdict, exit_status.ENGINE_FAILED, waited, output, refusals, _NOTHING_RAN, started, notes,
                kept_later=request.kept_later, success=False,
            )  # fmt: skip
            raise EngineError(failure.sentence, failure.remedy)
        status = final_status(waited)
        recorded = launch.recording.finish() if launch.streams.inlets else None
        if status != 0:
            for denied in waited.outcome.denied:
                from doorward.sandbox_refusal import refusal_of_denied

                body = refusal_of_denied(denied, self._plan.sandbox)
                log.refusal(body)
                refusals.append(body)
        if self._plan.proxy_settings.get("observe"):
            from doorward.run_notes import watched_notes

            notes += watched_notes(watched, log.session, refused=bool(refusals))
        held = launch.confinement.limits
        if waited.outcome.limits_hit or (status != 0 and held):
            from doorward.run_notes import limit_notes, quiet_limits  # for few runs only

            notes += limit_notes(waited.outcome.limits_hit)
            if status != 0:
                notes += quiet_limits(self._plan.sandbox.limits, held)
        hints: list[Hint] = []
        if status != 0:
            hints = self._hints(request, launch, waited, recorded, refusals, told)
            notes += [each.message for each in hints]
        notes += self._permitting().ended(log, action, request, refusals, status)
        observation = self._observe(
            log,
            verdict,
            status,
            waited,
            recorded,
            refusals,
            launch.confinement.enforcement,
            started,
            notes,
            hints,
            kept_later=request.kept_later,
        )
        # last: the shim, which has reported, takes its time to end
        self._over = launch.process
        if not request.kept_later:
            self._let_go()
        return observation

    def _let_go(self) -> None:
        """Of the last command's shim."""
        if self._over is not None:
            self._over.close()
            self._over = None

    def _hints(
        self,
        request: Request,
        launch: Launch,
        waited: Waited,
        recorded: OutputRecord | None,
        refusals: list[Mapping[str, Any]],
        told: list[str],
    ) -> list[Hint]:
        from doorward.hints import Ended, granted_loopback, hints_of, host_listening, uncaptured  # for few runs only

        plan = self._plan
        return hints_of(
            Ended(
                argv=request.argv,
                cwd=request.cwd,
                output=recorded.text if recorded is not None else "",
                refusals=refusals,
                withheld=launch.inner.withheld,
                inspected=self._inspection.hints() if self._inspection is not None else (),
                sandbox=plan.sandbox,
                proxy_url=None if self._proxy is None or waited.proxy_stopped else launch.confinement.proxy_url(),
                uncaptured=uncaptured(plan, told),
                loopback=granted_loopback(plan.configuration),
                for_agent=plan.agent is not None,
                listening=host_listening,
            )
        )

    def _notes(self, waited: Waited) -> list[str]:
        notes = []
        if waited.timed_out:
            notes.append("the command ran into its time limit and was ended")
        if waited.proxy_stopped:
            notes.append("the proxy process died; from then on the network was closed")
            if self._proxy is not None:
                self._proxy.close()
        if self._inspection is not None:
            notes += self._inspection.notes()
        if waited.outcome.failure is not None and waited.outcome.failure.kind != "sandbox":
            notes.append(waited.outcome.failure.sentence)
        return notes

    def _observe(
        self,
        log: SessionLog,
        verdict: Verdict,
        exit_code: int,
        waited: Waited | None,
        output: OutputRecord | None,
        refusals: list[Mapping[str, Any]],
        enforcement: Enforcement,
        started: float,
        notes: list[str],
        hints: Sequence[Hint] = (),
        *,
        kept_later: bool,
        success: bool = True,
    ) -> Observation:
        from doorward.observation import Observation

        duration = time.monotonic() - started
        limits_hit = [each._asdict() for each in waited.outcome.limits_hit] if waited is not None else []
        log.observe(
            exit_code=exit_code,
            signal=waited.outcome.signal if waited is not None else None,
            success=success,
            output=output,
            enforcement=enforcement._asdict(),
            duration_s=duration,
            notes=notes,
            limits_hit=limits_hit,
            hints=[each._asdict() for each in hints],
        )
        if not kept_later:
            log.to_disk()
        return Observation(
            session=log.session,
            turn=log.turn,
            success=success,
            exit_code=exit_code,
            output=output.text if output is not None else "",
            refusals=tuple(refusals),
            verdict=verdict.to_json(),
            enforcement=enforcement._asdict(),
            duration_s=round(duration, 3),
            notes=tuple(notes),
            limits_hit=tuple(limits_hit),
            hints=tuple(each._asdict() for each in hints),
        )


def _told(error: BaseException) -> BaseException:
    """The launcher's errors as the face's; any other as it is."""
    if isinstance(error, SandboxUnavailable):
        return EngineError(error.sentence, error.remedy)
    if isinstance(error, UnenforceableRule):
        return UsageError(f"doorward: {error.entry}: {error.sentence}; {error.remedy}".removesuffix("; "))
    return error

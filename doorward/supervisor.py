"""The supervisor of one session: asks the gates, starts the sandbox, and writes each record before it is seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from doorward import exit_status
from doorward.errors import EngineError, UsageError
from doorward.gates.action import Action
from doorward.gates.answer import Answer, settle
from doorward.gates.refusal import refusal_of
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Effect, Verdict
from doorward.inner_environment import InnerEnvironment, build
from doorward.launcher.interface import (
    Backend,
    Command,
    Confinement,
    Enforcement,
    Process,
    SandboxUnavailable,
    Stdio,
    UnenforceableRule,
)
from doorward.observation import Observation
from doorward.plan import PROXY_URL, Plan
from doorward.proxy_process import ProxyProcess
from doorward.sandbox_refusal import refusal_of_undone
from doorward.session_log import SessionLog
from doorward.sessions.home import StoreError
from doorward.sessions.output import OutputRecord, OutputRecorder
from doorward.streams import Record, Streams
from doorward.turn import SignalInbox, TurnLoop, Waited, final_status

_POLICY = "session"
"""The name of the one set of network rules a session has."""

_NOTHING_RAN = Enforcement("none", "none", "none", "none")

Ask = Callable[[Action, Verdict], Answer]
"""Asks whoever can answer."""


class Request(NamedTuple):
    """One command to run. `action.env` is the caller's environment, unfiltered; `timeout_s` None means no limit;
    `cancelled_by` is a descriptor whose far end closing kills the command."""

    action: Action
    open_streams: Callable[[Record], Streams]
    timeout_s: float | None = None
    cancelled_by: int | None = None


class _Launch(NamedTuple):
    """A command that is set up and held before its first instruction."""

    run: str
    process: Process
    streams: Streams
    recorder: OutputRecorder
    inner: InnerEnvironment
    confinement: Confinement

    def abort(self) -> None:
        """Undo the set-up; safe at every stage, also when the turn's loop has cleaned up part of it."""
        self.process.kill()
        self.process.wait()
        self.process.close()
        self.recorder.discard()
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
        open_log: Callable[[], SessionLog],
        *,
        ask: Ask | None = None,
    ) -> None:
        self._plan = plan
        self._backend = backend
        self._open_log = open_log
        self._ask = ask
        self._confinement: Confinement | None = None
        self._log: SessionLog | None = None
        self._proxy = proxy if plan.proxied else None
        self._proxy_ready = False
        self._runs = 0
        self.notices: list[str] = list(plan.notices)
        """What a person should know before the command starts, one sentence each."""
        self.withheld: tuple[str, ...] = ()
        """Names of the variables the last command did not get."""
        if proxy is not None and self._proxy is None:
            proxy.close()
        if self._proxy is not None:
            self._proxy.configure(_POLICY, plan.proxy_settings)

    @property
    def workspace(self) -> str:
        """The folder commands run in unless they name another."""
        return self._plan.sandbox.workspace

    def prepare(self) -> None:
        """Find out now what would otherwise come up with the first command. Raises UsageError, EngineError."""
        self._await_proxy()
        self._confine()

    def run(self, request: Request) -> Observation:
        """One turn, from the gates to its observation."""
        started = time.monotonic()
        verdict = resolve(self._plan.dial, request.action)
        launch: _Launch | None = None
        try:
            if verdict.verdict is Effect.ALLOW:
                # the namespace comes up in a process of its own while the records are written
                launch = self._start(request)
            self._await_proxy()
            log = self._log = self._log or self._open_log()
            log.begin_turn(request.action, self._plan.context)
            if verdict.verdict is Effect.ASK:
                verdict = self._asked(log, request.action, verdict)
            log.verdict(request.action, verdict)
            if verdict.verdict is not Effect.ALLOW:
                return self._refused(log, request, verdict, started)
            if launch is None:
                launch = self._start(request)
            log.exec(
                request.action,
                launch.inner.variables,
                self._plan.context,
                launch.confinement.enforcement._asdict(),
                recorded=bool(launch.streams.inlets),
                terminal=launch.streams.terminal is not None,
            )
            return self._attend(log, launch, request, verdict, started)
        except BaseException:
            if launch is not None:
                launch.abort()
            raise

    def close(self) -> None:
        """End the proxy and close the rollout."""
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def _start(self, request: Request) -> _Launch:
        action = request.action
        self._runs += 1
        run = str(self._runs)
        recorder = OutputRecorder(self._plan.home)
        streams: Streams | None = None
        try:
            confinement = self._confine()
            inner = build(
                action.env,
                inherit=self._plan.inherit,
                passed=self._plan.pass_env,
                proxy_url=PROXY_URL if self._proxy is not None else None,
            )
            inner = inner._replace(variables=confinement.environment(inner.variables))
            self.withheld = inner.withheld
            streams = request.open_streams(recorder.feed)
            process = confinement.spawn(
                Command(action.argv, action.cwd, inner.variables),
                Stdio(
                    streams.stdin,
                    streams.stdout,
                    streams.stderr,
                    streams.terminal.slave if streams.terminal is not None else None,
                ),
                handover=self._proxy.handover if self._proxy is not None else None,
                run=run,
                policy_id=_POLICY,
            )
        except BaseException as error:
            if streams is not None:
                streams.close()
            raise _told(error) from None
        return _Launch(run, process, streams, recorder, inner, confinement)

    def _confine(self) -> Confinement:
        if self._confinement is None:
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

    def _asked(self, log: SessionLog, action: Action, verdict: Verdict) -> Verdict:
        """The verdict after asking: who answered, or that nobody could, is its last reason."""
        if self._ask is None:
            return settle(verdict, Answer.NOBODY, "approvals")
        log.asked(action)
        answer = self._ask(action, verdict)
        log.answered(answer)
        return settle(verdict, answer, "terminal")

    def _refused(self, log: SessionLog, request: Request, verdict: Verdict, started: float) -> Observation:
        refusal = refusal_of(verdict)
        log.refusal(refusal)
        return self._observe(log, verdict, exit_status.REFUSED, None, None, [refusal], _NOTHING_RAN, started, [])

    def _attend(
        self, log: SessionLog, launch: _Launch, request: Request, verdict: Verdict, started: float
    ) -> Observation:
        """Let the command go, wait for it, and tell what came of it."""
        refusals: list[Mapping[str, Any]] = []

        def append(kind: str, payload: dict[str, Any]) -> None:
            if kind == "refusal":
                log.refusal(payload)
                refusals.append(payload)
            elif kind == "network":
                log.network(payload)
            else:
                log.event(payload)

        loop = TurnLoop(
            launch.process, launch.streams, self._proxy, launch.run, append, cancelled_by=request.cancelled_by
        )
        terminal = launch.streams.terminal
        inbox = SignalInbox()
        try:
            launch.process.release()
            launch.streams.hand_over()
            if terminal is not None:
                terminal.start()
            waited = loop.wait(inbox, request.timeout_s)
        except StoreError as error:
            raise EngineError(f"the command's output cannot be recorded: {error}", "free some space") from None
        finally:
            inbox.close()
            if terminal is not None:
                terminal.close()
            launch.process.close()
        for undone in waited.outcome.undone:
            body = refusal_of_undone(undone)
            log.refusal(body)
            refusals.append(body)
        notes = self._notes(waited)
        if (failure := waited.outcome.failure) is not None and failure.kind == "sandbox":
            notes.append(failure.sentence)
            output = self._recorded(launch)
            self._observe(
                log, verdict, exit_status.ENGINE_FAILED, waited, output, refusals, _NOTHING_RAN, started, notes,
                success=False,
            )  # fmt: skip
            raise EngineError(failure.sentence, failure.remedy)
        return self._observe(
            log,
            verdict,
            final_status(waited),
            waited,
            self._recorded(launch) if launch.streams.inlets else None,
            refusals,
            launch.confinement.enforcement,
            started,
            notes,
        )

    def _recorded(self, launch: _Launch) -> OutputRecord:
        try:
            return launch.recorder.finish()
        except StoreError as error:
            raise EngineError(f"the command's output cannot be recorded: {error}", "free some space") from None

    def _notes(self, waited: Waited) -> list[str]:
        notes = []
        if waited.timed_out:
            notes.append("the command ran into its time limit and was ended")
        if waited.proxy_stopped:
            notes.append("the proxy process died; from then on the network was closed")
            if self._proxy is not None:
                self._proxy.close()
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
        *,
        success: bool = True,
    ) -> Observation:
        duration = time.monotonic() - started
        log.observe(
            exit_code=exit_code,
            signal=waited.outcome.signal if waited is not None else None,
            success=success,
            output=output,
            enforcement=enforcement._asdict(),
            duration_s=duration,
            notes=notes,
        )
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
        )


def _told(error: BaseException) -> BaseException:
    """The launcher's errors as the face's; any other as it is."""
    if isinstance(error, SandboxUnavailable):
        return EngineError(error.sentence, error.remedy)
    if isinstance(error, UnenforceableRule):
        return UsageError(f"doorward: {error.entry}: {error.sentence}; {error.remedy}".removesuffix("; "))
    return error

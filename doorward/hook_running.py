"""Runs hooks in one session: each through the gates, inside the sandbox, with what it said as a record.

A `before_exec` hook can only tighten. One that may not run, fails, or is not done in time refuses the command: a guard
that is not there has not agreed. The others are told about and change nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve
from doorward.gates.tighten import tightened
from doorward.gates.verdict import Cause, Effect, Gate, Verdict
from doorward.gates.wording import plain
from doorward.hooks import AFTER_EXEC, BEFORE_EXEC, ON_REFUSAL, SESSION_START, Hook, hook_hash, hooks_of
from doorward.named_tuple import NamedTuple
from doorward.programs import which
from doorward.relay import Inlet, Outlet
from doorward.streams import Streams

if TYPE_CHECKING:
    from doorward.approvals import Approvals
    from doorward.plan import Plan
    from doorward.proxy_process import ProxyProcess, Told
    from doorward.session_log import SessionLog
    from doorward.supervisor import Launch, Request

_MOST_OUTPUT = 65536
_EFFECTS = {"allow": Effect.ALLOW, "ask": Effect.ASK, "deny": Effect.DENY}


class HookOutcome(NamedTuple):
    """How one hook ended. `problem` is empty where it ran to its end with exit status 0."""

    hook: Hook
    problem: str
    said: str
    """Its standard output, cut at 64 KiB."""
    remedy: str = ""
    cause: Cause = Cause.HOOK_FAILED


class Hooks:
    """Those of one session. `start` starts a command held, as the supervisor does with any other."""

    def __init__(
        self,
        plan: Plan,
        dial: Dial,
        approvals: Approvals,
        start: Callable[[Request], Launch],
        proxy: Callable[[], ProxyProcess | None],
    ) -> None:
        self.notes: list[str] = []
        """What a person should know about the hooks of this turn, one sentence each."""
        self._plan = plan
        self._dial = dial
        self._approvals = approvals
        self._start = start
        self._proxy = proxy

    def session_start(self, log: SessionLog, request: Request) -> None:
        """A new session has begun."""
        self._tell(log, SESSION_START, request, {"session": log.session})

    def before_exec(
        self, log: SessionLog, action: Action, verdict: Verdict, request: Request, *, approved: bool
    ) -> Verdict:
        """`verdict`, no deny, and what the hooks make of it. `approved`: a person has approved exactly this action, so
        that a hook's wish to ask is granted already."""
        document = {"argv": list(action.argv), "cwd": action.cwd, "verdict": verdict.to_json()}
        for hook in hooks_of(self._plan.configuration, BEFORE_EXEC):
            outcome = self._run(log, hook, document, request)
            effect, sentence = _decision(outcome)
            if effect is Effect.ASK and approved:
                effect, sentence = Effect.ALLOW, f"{sentence}; a person has approved exactly this"
            cause = outcome.cause
            if not outcome.problem:
                cause = Cause.HOOK_DENIED if effect is Effect.DENY else Cause.HOOK_ASKED
            verdict = tightened(verdict, effect, hook.switch, sentence, cause, outcome.remedy)
            if verdict.verdict is Effect.DENY:
                break
        return verdict

    def after_exec(self, log: SessionLog, action: Action, request: Request, exit_code: int, refused: int) -> None:
        """The command has ended."""
        document = {"argv": list(action.argv), "cwd": action.cwd, "exit_code": exit_code, "refusals": refused}
        self._tell(log, AFTER_EXEC, request, document)

    def on_refusal(
        self, log: SessionLog, action: Action, request: Request, refusals: list[Mapping[str, Any]]
    ) -> None:
        """Something was refused in this turn, before the command or while it ran."""
        document = {"argv": list(action.argv), "cwd": action.cwd, "refusals": [dict(each) for each in refusals]}
        self._tell(log, ON_REFUSAL, request, document)

    def _tell(self, log: SessionLog, event: str, request: Request, document: Mapping[str, Any]) -> None:
        for hook in hooks_of(self._plan.configuration, event):
            outcome = self._run(log, hook, document, request)
            if outcome.problem:
                self.notes.append(f"hook {event} ({hook.where}): {outcome.problem}")

    def _run(self, log: SessionLog, hook: Hook, document: Mapping[str, Any], request: Request) -> HookOutcome:
        folder = self._plan.sandbox.workspace
        digest = hook_hash(hook.command, folder, request.env)
        program = which(hook.command[0], request.env.get("PATH", os.defpath), folder)
        action = Action("hook", hook.command, folder, request.env, program=program, hook_hash=digest)
        verdict = self._judged(log, action, request)
        record = {"event": hook.event, "argv": list(hook.command), "where": hook.where, "hash": digest}
        if verdict.verdict is not Effect.ALLOW:
            log.event({"type": "hook_refused", **record, "verdict": verdict.to_json()})
            reason = verdict.deciding
            problem = f"{plain(hook.command[0])} may not run: {reason.sentence}"
            return HookOutcome(hook, problem, "", reason.remedy, reason.cause)
        log.event({"type": "hook_started", **record, "verdict": verdict.to_json()})
        text = json.dumps({"event": hook.event, "session": log.session, "turn": log.turn, **document})
        outcome, exit_code, output = self._confined(log, hook, text.encode("ascii") + b"\n", request)
        log.event({"type": "hook_ended", **record, "exit_code": exit_code, "output": output})
        return outcome

    def _judged(self, log: SessionLog, action: Action, request: Request) -> Verdict:
        """The gates on a hook, after asking where they ask, or where it is not trusted and somebody can say so."""
        verdict = resolve(self._dial, action)
        if verdict.verdict is Effect.DENY and verdict.gate is Gate.HOOK_TRUST:
            assert action.hook_hash is not None
            if self._approvals.trusts_hook(log, action, verdict, request.cancelled_by):
                trusting = self._dial._replace(trusted_hooks=self._dial.trusted_hooks | {action.hook_hash})
                verdict = resolve(trusting, action)
        if verdict.verdict is Effect.ASK:
            verdict = self._approvals.known(log, self._dial, action, verdict)
        if verdict.verdict is Effect.ASK:
            verdict = self._approvals.settled(log, self._dial, action, verdict, request.cancelled_by)
        return verdict

    def _confined(
        self, log: SessionLog, hook: Hook, text: bytes, request: Request
    ) -> tuple[HookOutcome, int, str]:
        """Run it inside the sandbox: the outcome, the exit code, and what it said on both streams."""
        from doorward.proxy_process import payload_of
        from doorward.supervisor import Request
        from doorward.turn import SignalInbox, TurnLoop, final_status

        heard = _Heard()
        stdin = _readable(text)
        try:
            launch = self._start(
                Request(hook.command, self._plan.sandbox.workspace, request.env, lambda _: heard.streams(stdin))
            )
        finally:
            os.close(stdin)

        def append(records: Sequence[Told]) -> None:
            for each in records:
                log.of_hook(each[0], hook.event, payload_of(each))

        proxy = self._proxy()
        loop = TurnLoop(
            launch.process, launch.streams, proxy, launch.run, append, cancelled_by=request.cancelled_by
        )
        inbox = SignalInbox()
        try:
            launch.process.release()
            if proxy is not None:
                proxy.serve()
            launch.streams.hand_over()
            waited = loop.wait(inbox, hook.timeout_s)
        except BaseException:
            launch.abort()
            raise
        finally:
            inbox.close()
        status = final_status(waited)
        launch.recording.discard()
        launch.process.close()
        name = plain(hook.command[0])
        if waited.timed_out:
            problem = f"{name} was not done within {hook.timeout_s:g} s"
        elif waited.outcome.failure is not None:
            problem = waited.outcome.failure.sentence
        else:
            problem = f"{name} ended with exit status {status}{heard.last_line()}" if status else ""
        said = heard.text["stdout"].decode("utf-8", "surrogateescape")
        return HookOutcome(hook, problem, said), status, heard.all.decode("utf-8", "surrogateescape")


class _Heard:
    """What a hook says, cut at 64 KiB a stream."""

    def __init__(self) -> None:
        self.text = {"stdout": b"", "stderr": b""}
        self.all = b""

    def feed(self, stream: str, data: bytes) -> None:
        self.text[stream] = (self.text[stream] + data)[:_MOST_OUTPUT]
        self.all = (self.all + data)[:_MOST_OUTPUT]

    def last_line(self) -> str:
        lines = self.all.decode("utf-8", "backslashreplace").strip().splitlines()
        return f": {plain(lines[-1])}" if lines else ""

    def streams(self, stdin: int) -> Streams:
        reader, writer = os.pipe()
        err_reader, err_writer = os.pipe()
        inlets = (
            Inlet("stdout", reader, Outlet(None), self.feed),
            Inlet("stderr", err_reader, Outlet(None), self.feed),
        )
        return Streams(stdin, writer, err_writer, inlets, (writer, err_writer))


def _readable(text: bytes) -> int:
    """A descriptor to read it from."""
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.seek(0)
        return os.dup(file.fileno())


def _decision(outcome: HookOutcome) -> tuple[Effect, str]:
    """What a `before_exec` hook wants, and a sentence for it."""
    name = f"the hook {plain(outcome.hook.command[0])}"
    if outcome.problem:
        return Effect.DENY, f"a before_exec hook refuses it: {outcome.problem}"
    said = outcome.said.strip()
    if not said.startswith("{"):
        return Effect.ALLOW, f"{name} has nothing against it"
    try:
        document = json.loads(said)
        effect, reason = _EFFECTS[document["decision"]], document.get("reason", "")
    except (ValueError, KeyError, TypeError, RecursionError):
        return Effect.DENY, f"{name} answered with something that is no decision: {plain(said)}"
    because = f": {plain(reason)}" if isinstance(reason, str) and reason else ""
    words = {Effect.ALLOW: "has nothing against it", Effect.ASK: "wants a person to be asked", Effect.DENY: "says no"}
    return effect, f"{name} {words[effect]}{because}"

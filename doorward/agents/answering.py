"""What an agent's hook is answered: the same gates as everywhere, recorded before the agent sees it.

A shell command that may run is answered with the same command through `doorward run`, in the agent session's own
rollout, where it is judged again, confined and recorded. What a tool of the agent's does by itself is judged by the
path it writes and the place it connects to; nothing confines it.
"""

from __future__ import annotations

import os
import sys

from doorward.agents.arrival import arrived, distrust, expect, is_distrusted, mark_of
from doorward.agents.event import Answer, Decision, Event, Moment
from doorward.agents.rollouts import Claim, first_rollout
from doorward.errors import EngineError
from doorward.gates.action import Action
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Cause, Effect, Gate, Reason, Verdict
from doorward.judgement import Judgement, context_for, dial_for
from doorward.opening import plan_for
from doorward.programs import which
from doorward.session_log import SessionLog
from doorward.sessions.home import Home, StoreError, default_home
from doorward.shell_action import shell_action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from doorward.gates.review import Review
    from doorward.plan import Plan

LONGEST_COMMAND = 120_000
"""Bytes. The agent hands the command to a shell as one word, and Linux takes none over 131,072 (MAX_ARG_STRLEN)."""

_PLANNING = "--ask-for-approval=untrusted"

_KEPT_TEXT = 2000
"""Characters of one argument of a tool that are recorded."""
_KEPT_OUTPUT = 16_384
"""Characters of a tool's output that are recorded."""


def answer(event: Event, options: Mapping[str, Any], given: Sequence[str], env: Mapping[str, str]) -> Answer:
    """The answer to `event`; its record is in the rollout when this returns.

    `options` are those of the hook (see `commands/run_options.opening_of`), `given` the same as words, which the
    command through `doorward run` gets too. Raises UsageError, EngineError: then nothing may pass.
    """
    if event.planning:
        # a yes of ours is one the agent does not ask about again: while it plans only what reads gets one
        options = {**options, "flags": {**options["flags"], "approval_policy": "untrusted"}}
        given = [*(word for word in given if not word.startswith("--ask-for-approval=")), _PLANNING]
    plan = plan_for(_with_session(event, options, env), env)
    claim = Claim(plan._replace(agent=event.reference))
    try:
        if event.moment is not Moment.BEFORE:
            return _heard(plan, claim.log, event)
        if event.use.command is not None:
            return _shell(event, plan, claim, given, env)
        if event.use.writes or event.use.place is not None:
            return _own_tool(event, plan, claim, env)
        _used(claim.log, event, Decision.PASS, None)
        return Answer(Decision.PASS)
    finally:
        claim.release()
        claim.log.close()


def _with_session(event: Event, options: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """The options of a run in the agent's session: the workspace is the one it began in."""
    try:
        home = Home(default_home(env))
    except StoreError as error:
        raise EngineError(str(error)) from None
    if first_rollout(home, event.reference) is not None:
        return {**options, "session": event.reference}
    if options.get("cwd") is not None:
        return dict(options)
    project = env.get("CLAUDE_PROJECT_DIR", "") if event.agent == "claude-code" else ""
    inside = project.startswith("/") and f"{os.path.realpath(event.cwd)}/".startswith(f"{os.path.realpath(project)}/")
    return {**options, "cwd": project if inside else event.cwd}


def _shell(event: Event, plan: Plan, claim: Claim, given: Sequence[str], env: Mapping[str, str]) -> Answer:
    command, log = event.use.command, claim.log
    assert command is not None
    argv = (_shell_program(env), "-c", command) if isinstance(command, str) else command
    mark = mark_of(event.reference, event.call)
    words = (*this_program(), "run", "--agent", mark, "--session", event.reference, *given)
    why = _not_through(plan, event, (*words, "--", *argv))
    if why:
        _used(log, event, Decision.DENY, None)
        return Answer(Decision.DENY, f"doorward: {why}")
    action = shell_action(argv, event.cwd, env)
    judgement = _judgement(plan)
    verdict = resolve(judgement.dial, action)
    decision, reason = Decision.ALLOW, ""
    secret: tuple[str, ...] = ()
    if verdict.verdict is Effect.ASK:
        from doorward.approvals import NOBODY, QUEUE, Approvals

        approvals = Approvals(plan.home, plan.configuration, env, interactive=False)
        verdict = approvals.known(log, judgement.dial, action, verdict)
        if verdict.verdict is Effect.ASK and event.can_ask:
            decision, reason = Decision.ASK, _told(verdict)
            secret = ("--approved", _asked(event, plan, log, judgement, action, verdict, approvals.timeout_s))
        elif verdict.verdict is Effect.ASK and approvals.channel == QUEUE:
            reason = "doorward asks through the queue of approvals"
        elif verdict.verdict is Effect.ASK:
            from doorward.gates.answer import Answer as Said
            from doorward.gates.answer import settle

            return _refused(log, judgement, action, settle(verdict, Said.NOBODY, NOBODY), _HOW_TO_ASK)
    if verdict.verdict is Effect.DENY:
        return _refused(log, judgement, action, verdict)
    _used(log, event, decision, verdict)
    try:
        expect(plan.home, mark)
    except StoreError as error:
        raise EngineError(str(error)) from None
    return Answer(decision, reason, (*words, *secret, "--", *argv))


def _not_through(plan: Plan, event: Event, through: Sequence[str]) -> str:
    """Why no command can be sent through doorward, or not this one; "" where it can."""
    from doorward.sessions.items import command_line

    if is_distrusted(plan.home, event.reference):
        return (
            f"{event.agent} does not run the command it is handed, and so not through doorward; no shell command is "
            "let through in this session. Another hook for the same tool can be the reason, or the agent's version"
        )
    if len(os.fsencode(command_line(through))) > LONGEST_COMMAND:
        return f"the command is longer than {LONGEST_COMMAND} bytes; put it into a script and run that"
    return ""


_HOW_TO_ASK = "with `approvals.queue = true` in $DOORWARD_HOME/config.toml a person can answer: doorward approvals"


def _own_tool(event: Event, plan: Plan, claim: Claim, env: Mapping[str, str]) -> Answer:
    """A tool that the agent runs itself."""
    use, log = event.use, claim.log
    place = () if use.place is None else (use.place,)
    subject = use.writes or tuple(f"{host}:{port}" for host, port in place)
    action = Action("shell", (event.tool, *subject), event.cwd, env, writes=use.writes, network_to=place)
    judgement = _judgement(plan, reviewed=True)
    # the agent itself writes it: on the machine's /tmp, and past everything that a sandbox keeps as it is
    roots = (judgement.dial.workspace, *judgement.dial.writable_roots)
    dial = judgement.dial._replace(
        private_temp=(), read_only=(*judgement.dial.read_only, *(_kept_as_they_are(roots) if use.writes else ()))
    )
    guardian = judgement.guardian
    if guardian is not None:
        guardian.recall(log.reviews)
    verdict = resolve(dial, action)
    for review in guardian.take_reviews() if guardian is not None else ():
        log.event(review)
    if use.place is not None and verdict.verdict is not Effect.DENY and plan.proxied:
        verdict = _held_to_the_rules(verdict, dial.decide_host(*use.place), *use.place)
    if verdict.verdict is Effect.ASK:
        from doorward.approvals import Approvals

        approvals = Approvals(plan.home, plan.configuration, env, interactive=False)
        verdict = approvals.known(log, dial, action, verdict)
        if verdict.verdict is Effect.ASK and event.can_ask:
            _used(log, event, Decision.ASK, verdict)
            return Answer(Decision.ASK, _told(verdict))
        if verdict.verdict is Effect.ASK:
            claim.release()  # somebody may take minutes to answer
            verdict = approvals.settled(log, dial, action, verdict)
            approvals.close()
    if verdict.verdict is Effect.DENY:
        return _refused(log, judgement, action, verdict)
    # no more than no opinion: the agent's own permissions count as they would without doorward
    _used(log, event, Decision.PASS, verdict)
    return Answer(Decision.PASS)


def _kept_as_they_are(roots: Sequence[str]) -> list[str]:
    """What the sandbox keeps from writing under `roots`, unless a root names it (launcher/protected.py)."""
    from doorward.launcher.git_directories import git_paths
    from doorward.launcher.protected import PROTECTED_NAMES

    found: list[str] = []
    for root in roots:
        git = git_paths(root)
        found += [f"{root}/{name}" for name in PROTECTED_NAMES]
        found += (f"{root}/.git/hooks", f"{root}/.git/config") if git is None else git.protect
    return [real for path in found if (real := os.path.realpath(path)) not in roots]


def _held_to_the_rules(verdict: Verdict, effect: str, host: str, port: int) -> Verdict:
    """No proxy stands behind the agent's own tools, so what the proxy would refuse is refused here."""
    if effect == "allow":
        # the host is in the allowlist; being listed is what makes a connection not risky
        return verdict
    shown = f"[{host}]" if ":" in host else host
    remedy = f"--allow {shown}" if port in (80, 443) else f"--allow {shown}:{port}"
    sentence = f"{shown}:{port} is not in the allowlist; {remedy} for the hook, or `doorward allowlist add`, opens it"
    reason = Reason(Gate.SANDBOX, "network.allow", Effect.DENY, sentence, Cause.HOST_NOT_ALLOWED, remedy)
    return Verdict(Effect.DENY, Gate.SANDBOX, (*verdict.reasons, reason))


def _judgement(plan: Plan, *, reviewed: bool = False) -> Judgement:
    """As `judgement_of`; a shell command is put to the reviewer by the run, once, and not by its hook too."""
    from doorward.gates.features import GUARDIAN

    if reviewed or not plan.configuration.features()[GUARDIAN]:
        from doorward.judgement import judgement_of

        return judgement_of(plan)
    from doorward.judgement import guardian_of

    reviewer = _left_to_the_run if guardian_of(plan) is not None else None
    return Judgement(dial_for(plan)._replace(reviewer=reviewer), context_for(plan), None)


def _left_to_the_run(action: Action, risks: Sequence[str]) -> Review:
    from doorward.gates.review import Review, ReviewStatus

    return Review(ReviewStatus.ALLOWED, "left to the run, which asks the reviewer")


def _asked(
    event: Event,
    plan: Plan,
    log: SessionLog,
    judgement: Judgement,
    action: Action,
    verdict: Verdict,
    timeout_s: float,
) -> str:
    """Write down that the agent's person is asked; the secret that brings a yes back."""
    import time

    from doorward.agents.one_time_yes import issue
    from doorward.question import asked_about, new_id
    from doorward.sessions.timestamps import rfc3339

    dial = judgement.dial
    question = asked_about(
        action,
        verdict,
        (dial.workspace, *dial.writable_roots, *dial.private_temp),
        id=new_id(),
        asked_at=rfc3339(time.time_ns()),
        timeout_s=timeout_s,
        session=log.session,
    )
    try:
        secret = issue(plan.home, dial, action, question.id)
    except StoreError as error:
        raise EngineError(str(error)) from None
    log.asked(question.document(), event.agent)
    return secret


def _refused(log: SessionLog, judgement: Judgement, action: Action, verdict: Verdict, how: str = "") -> Answer:
    """The turn of a command that does not run, as `doorward run` writes it."""
    from doorward import exit_status
    from doorward.gates.refusal import refusal_of

    log.begin_turn(action, judgement.context)
    log.verdict(action, verdict)
    log.refusal(refusal_of(verdict))
    log.observe(
        exit_code=exit_status.REFUSED,
        signal=None,
        success=True,
        output=None,
        enforcement={"filesystem": "none", "network": "none", "process": "none", "syscalls": "none"},
        duration_s=0.0,
        notes=[],
    )
    return Answer(Decision.DENY, "; ".join(filter(None, (_told(verdict), how))))


def _told(verdict: Verdict) -> str:
    """The sentence that decided, for the agent and its person."""
    from doorward.summary import printable

    reason = verdict.deciding
    text = f"doorward ({reason.gate}): {reason.sentence}"
    if reason.remedy and reason.remedy not in reason.sentence:
        text += f"; to change it: {reason.remedy}"
    return printable(text)


def _used(log: SessionLog, event: Event, decision: Decision, verdict: Verdict | None) -> None:
    """What the agent is about to be told, and of its own tools what they are about to do."""
    from doorward.start_json import dumps

    if event.use.command is None:
        arguments = dumps(_shortened(event.tool_input))
        log.record(
            "response_item",
            {"type": "function_call", "name": event.tool, "arguments": arguments, "call_id": event.call},
        )
    answered = {"type": "agent_hook", "agent": event.agent, "tool": event.tool, "call": event.call}
    log.record(
        "event_msg",
        {**answered, "decision": str(decision), "verdict": None if verdict is None else verdict.to_json()},
    )


def _heard(plan: Plan, log: SessionLog, event: Event) -> Answer:
    """What came of a tool, or what a person said. A command through `doorward run` has its observation already; one
    that never got there has gone round it."""
    if event.moment is Moment.PROMPT:
        log.record("event_msg", {"type": "user_message", "message": event.text, "images": []})
        return Answer(Decision.PASS)
    # one in the background may not have got there yet
    settled = event.call and not event.failed and not event.tool_input.get("run_in_background")
    went_round = settled and arrived(plan.home, mark_of(event.reference, event.call))
    ours = event.use.command is not None and not went_round
    output = "recorded by doorward run" if ours else _text(event.output)
    log.record("response_item", {"type": "function_call_output", "call_id": event.call, "output": output})
    if went_round:
        told = {"type": "agent_went_round", "agent": event.agent, "tool": event.tool, "call": event.call}
        log.record("event_msg", told)
        log.record("event_msg", {"type": "agent_message", "message": _WENT_ROUND})
        try:
            distrust(plan.home, event.reference)
        except StoreError as error:
            raise EngineError(str(error)) from None
    return Answer(Decision.DENY, _WENT_ROUND) if went_round else Answer(Decision.PASS)


_WENT_ROUND = (
    "doorward: this command did NOT go through doorward. The agent ran it as it was, confined by nothing, although it "
    "was handed another; from now on no shell command is let through in this session"
)


def _text(value: object) -> str:
    from doorward.start_json import dumps

    text = value if isinstance(value, str) else dumps(value)
    if len(text) > _KEPT_OUTPUT:
        half, left_out = _KEPT_OUTPUT // 2, len(text) - _KEPT_OUTPUT
        text = f"{text[:half]}\n[… {left_out} characters left out …]\n{text[-half:]}"
    return text


def _shortened(value: object) -> object:
    if isinstance(value, str):
        return value if len(value) <= _KEPT_TEXT else f"{value[:_KEPT_TEXT]}[… {len(value)} characters in all]"
    if isinstance(value, dict):
        return {str(key): _shortened(each) for key, each in value.items()}
    return [_shortened(each) for each in value] if isinstance(value, list) else value


def _shell_program(env: Mapping[str, str]) -> str:
    """The shell that both agents use, where it is there."""
    return "bash" if which("bash", env.get("PATH", os.defpath), "/") is not None else "sh"


def this_program() -> tuple[str, ...]:
    """The words that start this very doorward, wherever the agent's shell is."""
    script = os.path.abspath(sys.argv[0])
    if os.path.basename(script) == "doorward" and os.access(script, os.X_OK):
        return (script,)
    # -P: the agent's folder, which commands write to, is not where modules are looked for
    return (sys.executable, "-P", "-m", "doorward")

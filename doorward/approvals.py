"""Who is asked about what the gates and the proxy leave open, and what was granted for the rest of a session.

A question goes to the terminal, else to the pending queue, else to nobody; nobody means no. The question is in the
rollout before anybody sees it, and the answer before it holds. A yes to a command never opens the network, and the
reverse.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from doorward.ask import ask_on_terminal, can_ask
from doorward.configuration import Configuration
from doorward.gates.action import Action
from doorward.gates.answer import Answer, Reply, Scope, settle
from doorward.gates.approval_key import approval_key
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Verdict
from doorward.notifier import Notifier
from doorward.pending import Pending, Taking, wait_for
from doorward.question import Question, asked_about, new_id
from doorward.session_log import SessionLog
from doorward.sessions.home import Home
from doorward.sessions.timestamps import rfc3339

QUEUE = "approvals.queue"
TERMINAL = "terminal"
NOBODY = "approvals"
AGENT = "agent"
"""The agent that runs the command asked its own person."""

HostKey = tuple[str, int, str]
"""Host, port, protocol."""


class Approvals:
    """Those of one session. `interactive`: a person at the terminal may be asked."""

    def __init__(
        self,
        home: Home,
        configuration: Configuration,
        env: Mapping[str, str],
        *,
        interactive: bool,
        approved: str | None = None,
    ) -> None:
        """`approved` is the secret of a yes that a person gave through an agent (`agents/one_time_yes.py`)."""
        self._approved = approved
        self.home = home
        self.timeout_s = configuration.number("approvals.timeout")
        self.granted_hosts: set[HostKey] = set()
        self._interactive = interactive
        self._queue = configuration.switch(QUEUE)
        self._granted: set[str] = set()
        self._notes: list[str] = []
        self._told = 0
        self._notifier = Notifier(
            configuration.command("approvals.notify"), configuration.switch("approvals.desktop"), env
        )

    def take_notes(self) -> list[str]:
        """What a person should know since this was asked last: a notifier that does not work, a rule that could not be
        kept."""
        notes, self._notes = [*self._notes, *self._notifier.problems[self._told :]], []
        self._told = len(self._notifier.problems)
        return notes

    @property
    def channel(self) -> str:
        """Where a question would go now: TERMINAL, QUEUE, or NOBODY."""
        if self._interactive and can_ask():
            return TERMINAL
        return QUEUE if self._queue else NOBODY

    def with_grants(self, log: SessionLog, dial: Dial, action: Action) -> Dial:
        """`dial`, with the approval of exactly this action if one was given earlier in this session."""
        key = approval_key(dial, action)
        granted = key in self._granted or log.was_granted(key)
        return dial._replace(approvals=frozenset({key})) if granted else dial

    def known(self, log: SessionLog, dial: Dial, action: Action, verdict: Verdict) -> Verdict:
        """`verdict`, an ask, or the one that an approval given earlier in this session makes of it."""
        granted = self.with_grants(log, dial, action)
        return resolve(granted, action) if granted.approvals else verdict

    def settled(
        self, log: SessionLog, dial: Dial, action: Action, verdict: Verdict, cancelled_by: int | None = None
    ) -> Verdict:
        """`verdict`, an ask, with its answer: who gave it, or that nobody could, is its last reason."""
        if self._approved is not None:
            from doorward.agents.one_time_yes import redeem

            asked = redeem(self.home, self._approved, dial, action)
            self._approved = None  # good for one run
            if asked is not None:
                log.answered(asked, Reply(Answer.YES), AGENT)
                return settle(verdict, Answer.YES, AGENT)
        channel = self.channel
        if channel == NOBODY:
            return settle(verdict, Answer.NOBODY, NOBODY)
        question = asked_about(
            action,
            verdict,
            (dial.workspace, *dial.writable_roots, *dial.private_temp),
            id=new_id(),
            asked_at=rfc3339(time.time_ns()),
            timeout_s=self.timeout_s,
            session=log.session,
        )
        reply = self._reply(log, question, channel, approval_key(dial, action), cancelled_by)
        return settle(verdict, reply.answer, channel, reply.scope)

    def trusts_hook(self, log: SessionLog, action: Action, verdict: Verdict, cancelled_by: int | None) -> bool:
        """True if somebody says now, or has said in this session, that this hook may run as it is."""
        digest = str(action.hook_hash)
        if digest in self._granted:
            return True
        channel = self.channel
        if channel == NOBODY:
            return False
        question = Question(
            id=new_id(),
            kind="hook",
            argv=action.argv,
            cwd=action.cwd,
            gate=str(verdict.gate),
            asked_at=rfc3339(time.time_ns()),
            timeout_s=self.timeout_s,
            why=("it is not trusted, or not the way it is now",),
            rule=digest,
            rule_note="adds this hash to hooks.trusted: the hook is trusted as it is now, until it changes",
            session=log.session,
        )
        return self._reply(log, question, channel, digest, cancelled_by).answer is Answer.YES

    def runs_again(
        self, log: SessionLog, action: Action, why: tuple[str, ...], again: tuple[str, ...], cancelled_by: int | None
    ) -> bool:
        """True if somebody wants a command that was refused something run once more, with the options `again`."""
        channel = self.channel
        if channel == NOBODY:
            return False
        question = Question(
            id=new_id(),
            kind="shell",
            argv=action.argv,
            cwd=action.cwd,
            gate="approval",
            asked_at=rfc3339(time.time_ns()),
            timeout_s=self.timeout_s,
            why=why,
            rule_note="what is granted for running it again is granted for that alone",
            session=log.session,
            again=again,
        )
        return self._reply(log, question, channel, "", cancelled_by).answer is Answer.YES

    def _reply(
        self, log: SessionLog, question: Question, channel: str, key: str, cancelled_by: int | None
    ) -> Reply:
        """Ask, and write question and answer down."""
        log.asked(question.document(), channel)
        try:
            if channel != TERMINAL:
                return self._from_queue(log, question, key, cancelled_by)
            reply = ask_on_terminal(question, self.home)
        except KeyboardInterrupt:
            log.answered(question.id, Reply(Answer.NOBODY), channel)
            raise
        why = self.take(log, question, reply, channel, key)
        if why:
            reply = reply._replace(scope=Scope.ONCE)
            self._notes.append(why)
        return reply

    def _from_queue(self, log: SessionLog, question: Question, key: str, cancelled_by: int | None) -> Reply:
        pending = self.open(question, lambda reply: self.take(log, question, reply, QUEUE, key))
        try:
            reply = wait_for(pending, question.timeout_s, cancelled_by)
        finally:
            pending.close()
        if reply is None:
            reply = Reply(Answer.NOBODY)
            log.answered(question.id, reply, QUEUE)
        return reply

    def open(self, question: Question, take: Taking) -> Pending:
        """Put a question into the queue and tell whoever wants to be told."""
        pending = Pending(self.home, question, take)
        self._notifier.tell(question)
        return pending

    def take(self, log: SessionLog, question: Question, reply: Reply, channel: str, key: str = "") -> str:
        """Write an answer down and remember what it grants. Returns "" or why it cannot be taken.

        `key` is that of the action, "" for a connection, which is remembered by whoever asked about it.
        """
        if reply.answer is Answer.YES and reply.scope is not Scope.ONCE and question.again:
            return f"{question.rule_note}; allow it once"
        if reply.answer is Answer.YES and reply.scope is Scope.ALWAYS:
            if not question.rule:
                return question.rule_note
            from doorward.approval_memory import keep_command, keep_hook, keep_host

            keep = {"network": keep_host, "hook": keep_hook}.get(question.kind, keep_command)
            if why := keep(self.home, question.rule):
                if channel == TERMINAL:
                    log.answered(question.id, reply._replace(scope=Scope.ONCE), channel)
                return why
        lasts = reply.answer is Answer.YES and reply.scope is not Scope.ONCE
        log.answered(question.id, reply, channel, key if lasts else "", question.rule)
        if lasts and key:
            self._granted.add(key)
        return ""

    def close(self) -> None:
        """The session is over."""
        self._notifier.close()


def network_question(
    message: Mapping[str, Any], action: Action, session: str, approvals: Approvals
) -> Question:
    """The question of the proxy's message about a connection of `action`."""
    host, port = str(message["host"]), int(message["port"])
    rule = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Question(
        id=new_id(),
        kind="network",
        argv=action.argv,
        cwd=action.cwd,
        gate="network",
        asked_at=rfc3339(time.time_ns()),
        timeout_s=approvals.timeout_s,
        why=(str(message["message"]),),
        rule=rule,
        rule_note="adds this rule to network.allow in config.toml: from then on every run may reach that place",
        session=session,
        host=host,
        port=port,
        protocol=str(message["protocol"]),
    )

"""What says yes or no to a session's commands before they start: the gates, the guardian, hooks, and a person.

And what is asked and told afterwards: hooks that watch, and the one question of `on-failure`.
"""

from __future__ import annotations

import os

from doorward.gates.resolver import resolve
from doorward.gates.verdict import Effect
from doorward.judgement import context_for, dial_for, judgement_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from doorward.approvals import Approvals
    from doorward.gates.action import Action
    from doorward.gates.verdict import Verdict
    from doorward.hook_running import Hooks
    from doorward.plan import Plan
    from doorward.proxy_process import ProxyProcess
    from doorward.second_run import Grants
    from doorward.session_log import SessionLog, TurnContext
    from doorward.supervisor import Launch, Request


class Permission:
    """Of one session. `start` starts a command held and `proxy` is the session's, both for hooks; `interactive`: a
    person at the terminal may be asked; `approved` is the secret of a yes that a person gave through an agent."""

    def __init__(
        self,
        plan: Plan,
        *,
        start: Callable[[Request], Launch],
        proxy: Callable[[], ProxyProcess | None],
        interactive: bool,
        approved: str | None,
    ) -> None:
        self.offers = False
        """What is refused now may be granted for a second run, if somebody wants that."""
        self.has_hooks = plan.configuration.has_hooks()
        self._plan = plan
        self._start = start
        self._proxy = proxy
        self._interactive = interactive
        self._approved = approved
        self._judgement = judgement_of(plan)
        self._approvals: Approvals | None = None
        self._hooks: Hooks | None = None
        self._granted: Grants | None = None

    @property
    def context(self) -> TurnContext:
        """What the rollout says about the rules of a turn."""
        return self._judgement.context

    @property
    def approvals(self) -> Approvals:
        """Who is asked, and what was granted."""
        if self._approvals is None:
            from doorward.approvals import Approvals  # only where somebody is asked

            self._approvals = Approvals(
                self._plan.home,
                self._plan.configuration,
                os.environ,
                interactive=self._interactive,
                approved=self._approved,
            )
        return self._approvals

    def by_the_gates(self, action: Action, session_log: Callable[[], SessionLog]) -> Verdict:
        """What the gates say, the reviewer among them. `session_log` opens the rollout, which is needed so early only
        where there is a reviewer."""
        dial, _, guardian = self._judgement
        if guardian is not None:
            # what a person has approved is not put to the reviewer
            log = session_log()
            guardian.recall(log.reviews)
            dial = self.approvals.with_grants(log, dial, action)
        return resolve(dial, action)

    def asked(self, log: SessionLog, action: Action, verdict: Verdict, request: Request) -> Verdict:
        """`verdict` after hooks have had their say, and somebody has been asked where it asks: an allow or a deny."""
        dial, _, guardian = self._judgement
        for review in guardian.take_reviews() if guardian is not None else ():
            log.event(review)
        if self.has_hooks:
            hooks = self._hooking()
            hooks.notes.clear()
            if log.is_new:
                hooks.session_start(log, request)
        if verdict.verdict is Effect.ASK:
            verdict = self.approvals.known(log, dial, action, verdict)
        if self.has_hooks and verdict.verdict is not Effect.DENY:
            approved = bool(self.approvals.with_grants(log, dial, action).approvals)
            verdict = self._hooking().before_exec(log, action, verdict, request, approved=approved)
        if verdict.verdict is Effect.ASK:
            verdict = self.approvals.settled(log, dial, action, verdict, request.cancelled_by)
        return verdict

    def ended(
        self,
        log: SessionLog,
        action: Action,
        request: Request,
        refusals: Sequence[Mapping[str, Any]],
        exit_code: int | None = None,
    ) -> list[str]:
        """The command has ended with `exit_code`, or did not start. Notes for a person, one sentence each."""
        notes: list[str] = []
        if self.has_hooks:
            hooks = self._hooking()
            if exit_code is not None:
                hooks.after_exec(log, action, request, exit_code, len(refusals))
            if refusals:
                hooks.on_refusal(log, action, request, [*refusals])
            notes += hooks.notes
        if self.offers and refusals:
            self._offer(log, action, request, refusals)
        if self._approvals is not None:
            notes += self._approvals.take_notes()
        return notes

    def take_granted(self) -> Grants | None:
        """What somebody wants the command run again with."""
        granted, self._granted = self._granted, None
        return granted

    def judge_by(self, plan: Plan) -> None:
        """From now on what `plan` says holds; the reviewer stays the session's own."""
        guardian = self._judgement.guardian
        dial = dial_for(plan)._replace(reviewer=guardian)
        self._judgement = self._judgement._replace(dial=dial, context=context_for(plan))

    def close(self) -> None:
        """The session is over."""
        if self._approvals is not None:
            self._approvals.close()
            self._approvals = None

    def _offer(
        self, log: SessionLog, action: Action, request: Request, refusals: Sequence[Mapping[str, Any]]
    ) -> None:
        """Ask the one question that `on-failure` knows, while the turn is still open."""
        from doorward.second_run import grants_for

        grants = grants_for(refusals)
        if grants is not None and self.approvals.runs_again(
            log, action, grants.why, grants.options, request.cancelled_by
        ):
            self._granted = grants

    def _hooking(self) -> Hooks:
        if self._hooks is None:
            from doorward.hook_running import Hooks  # only where somebody has one

            self._hooks = Hooks(self._plan, self._judgement.dial, self.approvals, self._start, self._proxy)
        return self._hooks

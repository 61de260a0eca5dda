"""The reviewer of risky actions: which one is configured, what it is told, and when it is not asked any more."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from doorward.configuration import Configuration
from doorward.gates.action import Action
from doorward.gates.circuit_breaker import CircuitBreaker, stopped
from doorward.gates.review import Review, ReviewStatus
from doorward.guardian_command import ask_command
from doorward.sessions.home import Home

Reviewer = Callable[[Action, Sequence[str]], Review]

_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from doorward.guardian_endpoint import main; sys.exit(main())"
)


class Guardian:
    """One session's reviewer, with the circuit breaker in front of it. Called as the gates call it."""

    def __init__(self, by: str, ask: Reviewer) -> None:
        """`by` is the setting that names the reviewer."""
        self._by = by
        self._ask = ask
        self._breaker = CircuitBreaker()
        self._recalled = False
        self.reviews: list[dict[str, Any]] = []
        """What took place since somebody last took these, as records."""

    def __call__(self, action: Action, risks: Sequence[str]) -> Review:
        why = self._breaker.open
        review = stopped(why, self._by) if why else self._ask(action, risks)
        if not why:
            self._breaker.record(review.status)
        self.reviews.append(
            {"type": "review", "by": self._by, "status": str(review.status), "reason": review.reason, "risks": [*risks]}
        )
        return review

    def recall(self, recorded: Callable[[], Sequence[str]]) -> None:
        """Count the reviews that earlier processes recorded in this session. Once."""
        if not self._recalled:
            self._recalled = True
            for status in recorded():
                if status in list(ReviewStatus) and status != ReviewStatus.STOPPED:
                    self._breaker.record(ReviewStatus(status))

    def take_reviews(self) -> list[dict[str, Any]]:
        """The records that are not in the rollout yet."""
        taken, self.reviews = self.reviews, []
        return taken


def guardian_for(
    configuration: Configuration, home: Home, env: Mapping[str, str], settings: Mapping[str, object]
) -> Guardian | None:
    """The configured reviewer, or None: a person is asked. `settings` are the network rules."""
    seconds = configuration.number("guardian.timeout")
    permissions = {
        "sandbox_mode": configuration.text("sandbox_mode"),
        "approval_policy": configuration.text("approval_policy"),
    }
    if configuration.switch("guardian.rater"):
        from doorward.gates.risk_rater import rate

        return Guardian("guardian.rater", rate)
    if command := configuration.command("guardian.command"):

        def by_command(action: Action, risks: Sequence[str]) -> Review:
            return ask_command(command, document_of(action, risks, permissions), seconds, env, home.path)

        return Guardian("guardian.command", by_command)
    endpoint = configuration.optional_text("guardian.endpoint")
    if endpoint is None:
        return None
    model, key_env = configuration.text("guardian.model"), configuration.optional_text("guardian.key_env")

    def by_endpoint(action: Action, risks: Sequence[str]) -> Review:
        document = {
            "endpoint": endpoint,
            "model": model,
            "key": None if key_env is None else env.get(key_env, ""),
            "key_env": key_env,
            "settings": dict(settings),
            "timeout_s": seconds,
            "action": document_of(action, risks, permissions),
        }
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        # a process of its own: whatever the endpoint does, it ends in time
        argv = (sys.executable, "-P", "-c", _BOOT, root)
        return ask_command(argv, document, seconds, env, home.path)._replace(by="guardian.endpoint")

    return Guardian("guardian.endpoint", by_endpoint)


def document_of(action: Action, risks: Sequence[str], permissions: Mapping[str, str]) -> dict[str, Any]:
    """The action as a reviewer reads it."""
    return {
        "kind": str(action.kind),
        "argv": list(action.argv),
        "cwd": action.cwd,
        "writes": list(action.writes),
        "network_to": [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in action.network_to],
        "needs_feature": action.needs_feature,
        "risks": list(risks),
        **permissions,
    }

"""A question that waits for a person: what is asked, and how it is written down for others to find."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from doorward.gates.action import Action
from doorward.gates.verdict import Effect, Verdict
from doorward.named_tuple import NamedTuple

ID_BYTES = 5
"""Of randomness in an id: ten hex digits, few enough to be typed."""


class Question(NamedTuple):
    """`kind` is "shell", "hook" or "network". `gate` is who asks; `why` are sentences for a person. `rule` is what
    "always" would write, "" where it is not offered; `rule_note` says what that would do, or why not. `host`, `port`
    and `protocol` are those of a connection. `asked_at` is RFC 3339, `timeout_s` how long somebody may answer."""

    id: str
    kind: Literal["shell", "hook", "network"]
    argv: tuple[str, ...]
    cwd: str
    gate: str
    asked_at: str
    timeout_s: float
    why: tuple[str, ...]
    rule: str = ""
    rule_note: str = ""
    session: str = ""
    host: str | None = None
    port: int | None = None
    protocol: str | None = None
    again: tuple[str, ...] = ()
    """Of a command that has run already: the options it would be run again with."""

    def row(self) -> dict[str, Any]:
        """The keys of `approvals list --json`; a connection has its host, port and protocol besides."""
        row: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
            "argv": list(self.argv),
            "cwd": self.cwd,
            "gate": self.gate,
            "asked_at": self.asked_at,
        }
        if self.kind == "network":
            row |= {"host": self.host, "port": self.port, "protocol": self.protocol}
        return row

    def document(self) -> dict[str, Any]:
        """Everything."""
        rest = {"timeout_s": self.timeout_s, "why": list(self.why), "rule": self.rule or None}
        return self.row() | rest | {"rule_note": self.rule_note, "session": self.session, "again": list(self.again)}

    @property
    def subject(self) -> str:
        """What it is about, on one line."""
        from doorward.sessions.items import command_line

        if self.kind == "network":
            host = f"[{self.host}]" if self.host and ":" in self.host else self.host
            return f"{host}:{self.port} ({self.protocol})"
        return command_line(self.argv)


def question_from(document: Mapping[str, Any]) -> Question:
    """The question of its document. Raises KeyError, TypeError, ValueError for what is none."""
    if document["kind"] not in ("shell", "hook", "network"):
        raise ValueError("no kind of question")
    return Question(
        id=str(document["id"]),
        kind=document["kind"],
        argv=tuple(str(word) for word in document["argv"]),
        cwd=str(document["cwd"]),
        gate=str(document["gate"]),
        asked_at=str(document["asked_at"]),
        timeout_s=float(document["timeout_s"]),
        why=tuple(str(sentence) for sentence in document["why"]),
        rule=str(document["rule"] or ""),
        rule_note=str(document["rule_note"]),
        session=str(document["session"]),
        host=document.get("host"),
        port=document.get("port"),
        protocol=document.get("protocol"),
        again=tuple(str(option) for option in document["again"]),
    )


def new_id() -> str:
    """An id that no other question has."""
    return os.urandom(ID_BYTES).hex()


def asked_about(action: Action, verdict: Verdict, planted: tuple[str, ...], **fields: Any) -> Question:
    """The question of a verdict that asks. `fields` are the rest: id, asked_at, timeout_s, session."""
    from doorward.gates.approval_rule import Offer, offered_rule

    offer = offered_rule(action.argv, planted)
    if action.kind == "hook":
        offer = Offer("", "a hook is trusted by its content, not by a rule; allow it for this session")
    why = tuple(reason.sentence for reason in verdict.reasons if reason.effect is Effect.ASK)
    return Question(
        kind="hook" if action.kind == "hook" else "shell",
        argv=action.argv,
        cwd=action.cwd,
        gate=str(verdict.gate),
        why=tuple(dict.fromkeys(why)),
        rule=offer.rule,
        rule_note=offer.sentence,
        **fields,
    )

"""One session's rollout as the supervisor writes it: turns, and each record of a turn in its place."""

from __future__ import annotations

from doorward.errors import EngineError
from doorward.gates.action import Action
from doorward.gates.verdict import Verdict
from doorward.named_tuple import NamedTuple
from doorward.sessions import items
from doorward.sessions.environment import environment_record, fingerprint_key, key_id
from doorward.sessions.home import Home, StoreError
from doorward.sessions.output import OutputRecord
from doorward.sessions.rollout import Rollout
from doorward.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from doorward.gates.answer import Reply
    from doorward.sessions.line import Line


class TurnContext(NamedTuple):
    """What the rollout says about the rules a turn ran under. `digest` names the whole sandbox policy."""

    approval_policy: str
    sandbox_policy: Mapping[str, Any]
    settings: Mapping[str, Any]
    digest: str


class SessionLog:
    """Writes turns to one rollout. Every method raises EngineError when a record could not be written, and then
    nothing of what it describes may be let through."""

    def __init__(self, home: Home, rollout: Rollout) -> None:
        self.home = home
        self._rollout = rollout
        self._refusals: list[int] = []
        self._resumed = False
        self._grants: set[str] | None = None
        self.turn = 0

    @classmethod
    def create(cls, home: Home, *, cwd: str, name: str | None, profile: Mapping[str, Any]) -> SessionLog:
        """A new session, its sandbox pinned to `profile`. Raises EngineError."""
        try:
            meta = {"cli_version": VERSION, "sandbox_profile": profile}
            return cls(home, Rollout.create(home, cwd=cwd, name=name, meta=meta))
        except StoreError as error:
            raise _broken(error) from None

    @classmethod
    def resume(cls, home: Home, path: str) -> SessionLog:
        """An existing session, to append to. Raises EngineError, also when another process is writing it."""
        try:
            log = cls(home, Rollout.open(home, path))
        except StoreError as error:
            raise _broken(error) from None
        log._resumed = True
        return log

    @classmethod
    def going_on(cls, home: Home, rollout: Rollout) -> SessionLog:
        """A session whose rollout was opened already."""
        log = cls(home, rollout)
        # an agent's hook makes the session before anything runs in it
        log._resumed = rollout.turns > 0
        return log

    @property
    def session(self) -> str:
        """The session's UUID."""
        return self._rollout.id

    @property
    def is_new(self) -> bool:
        """True while the session's first turn has not begun, or is the present one."""
        return not self._resumed and self.turn <= 1

    @property
    def notices(self) -> tuple[str, ...]:
        """What was found at the end of a resumed rollout."""
        return self._rollout.notices

    def begin_turn(self, action: Action, context: TurnContext) -> int:
        """The next turn's first records. Returns its number."""
        self.turn = self._rollout.turns + 1
        self._refusals = []
        for item in items.turn_start(
            self.session,
            self.turn,
            argv=action.argv,
            cwd=action.cwd,
            approval_policy=context.approval_policy,
            sandbox_policy=context.sandbox_policy,
            settings=context.settings,
            version=VERSION,
        ):
            self._append(item)
        return self.turn

    def asked(self, question: Mapping[str, Any], channel: str) -> None:
        """A question goes out to a person, by way of `channel`."""
        self.event({"type": "approval_asked", "channel": channel, **question})

    def answered(self, question: str, reply: Reply, channel: str, granted: str = "", rule: str = "") -> None:
        """The answer to it. On the disk before it takes effect: an allow must survive whatever it allows.

        `question` is the id; `granted` the approval key that a yes for longer than once is kept under.
        """
        payload: dict[str, Any] = {"type": "approval_answered", "id": question, "answer": str(reply.answer)}
        payload |= {"channel": channel}
        if reply.answer == "yes":
            payload["scope"] = str(reply.scope)
        if reply.scope == "always":
            payload["rule"] = rule
        if granted:
            payload["grant"] = self._grant(granted)
        self.event(payload)
        self.to_disk()

    def reviews(self) -> list[str]:
        """How the reviews that earlier processes recorded in this session ended, in order."""
        if not self._resumed:
            return []
        from doorward.sessions.line import Line
        from doorward.sessions.reading import read_lines

        payloads = [line.payload for line in read_lines(self._rollout.path) if isinstance(line, Line)]
        return [str(payload.get("status")) for payload in payloads if payload.get("type") == "review"]

    def was_granted(self, key: str) -> bool:
        """True if an approval for longer than once was given under this key earlier in this very session."""
        if not self._resumed:
            return False
        from doorward.sessions.line import Line
        from doorward.sessions.reading import read_lines

        if self._grants is None:
            lines = (line for line in read_lines(self._rollout.path) if isinstance(line, Line))
            self._grants = {
                str(line.payload["grant"])
                for line in lines
                if line.payload.get("type") == "approval_answered" and "grant" in line.payload
            }
        return bool(self._grants) and self._grant(key) in self._grants

    def _grant(self, key: str) -> str:
        """What stands for a grant in the record: only this home, for this session and this action, can make it, so
        that a rollout from elsewhere grants nothing."""
        import hmac  # only where somebody was asked

        try:
            secret = fingerprint_key(self.home)
        except StoreError as error:
            raise _broken(error) from None
        text = f"doorward approval\0{self.session}\0{key}".encode()
        return hmac.new(secret, text, "sha256").hexdigest()

    def verdict(self, action: Action, verdict: Verdict) -> None:
        """What the gates said."""
        self._append(
            items.verdict(
                self.turn,
                verdict.to_json(),
                argv=action.argv,
                cwd=action.cwd,
                kind=action.kind,
                writes=action.writes,
                network_to=action.network_to,
                needs_feature=action.needs_feature,
            )
        )

    def exec(
        self,
        action: Action,
        variables: Mapping[str, str],
        context: TurnContext,
        enforcement: Mapping[str, str],
        *,
        withheld: Sequence[str] = (),
        limits: Mapping[str, str] | None = None,
        notices: Sequence[str] = (),
        recorded: bool,
        terminal: bool,
        redacted: bool = False,
        seal_to: str | None = None,
    ) -> None:
        """What is about to start, with the environment it sees."""
        sealed = None
        try:
            key = fingerprint_key(self.home)
            if seal_to is not None:
                from doorward.sessions.sealing import sealed as seal  # where it was asked for only

                sealed = seal(variables, seal_to)
        except StoreError as error:
            raise _broken(error) from None
        self._append(
            items.exec(
                self.turn,
                argv=action.argv,
                cwd=action.cwd,
                policy_digest=context.digest,
                enforcement=enforcement,
                environment=environment_record(variables, key),
                fingerprint_key=key_id(key),
                withheld=withheld,
                limits=limits,
                notices=notices,
                output="not-recorded" if not recorded else "redacted" if redacted else "recorded",
                terminal=terminal,
                sealed=sealed,
            )
        )

    def refusal(self, body: Mapping[str, Any]) -> None:
        """One refusal, of whichever door."""
        self._refusals.append(self._append(items.refusal(self.turn, body)))

    def of_proxy(self, records: Sequence[tuple[str, Mapping[str, Any] | None, str]]) -> None:
        """What the proxy says, in order: a `network`, a `refusal`, or an event; each with its payload as JSON, if that
        may stand in the rollout, else "". The payload is None where it is known, undecoded, to say nothing of a turn.
        """
        turn = self.turn
        made = [items.of_proxy(turn, kind, payload, text) for kind, payload, text in records]
        try:
            ordinal = self._rollout.append_encoded(made)
        except StoreError as error:
            raise _broken(error) from None
        for kind, _, _ in made:
            if kind == "refusal":
                self._refusals.append(ordinal)
            ordinal += 1

    @property
    def path(self) -> str:
        """Where the rollout is."""
        return self._rollout.path

    def record(self, type: str, payload: Mapping[str, Any]) -> None:
        """A record of the caller's own, outside any turn."""
        self._append((type, dict(payload)))

    def of_hook(self, kind: str, event: str, payload: Mapping[str, Any]) -> None:
        """A record of the proxy about a hook's own connections; its refusals are not the command's."""
        if kind == "network":
            self._append(items.network(self.turn, {"hook": event, **payload}))
        elif kind == "refusal":
            self._append(items.refusal(self.turn, {**payload, "hook": event}))
        else:
            self.event({**payload, "hook": event})

    def event(self, payload: Mapping[str, Any]) -> None:
        """Anything else that is kept, as an `event_msg`."""
        # what an agent's hook asks or reviews comes before its turn
        self._append(items.event(self.turn, payload) if self.turn else ("event_msg", dict(payload)))

    def observe(
        self,
        *,
        exit_code: int,
        signal: int | None,
        success: bool,
        output: OutputRecord | None,
        enforcement: Mapping[str, str],
        duration_s: float,
        notes: list[str],
        limits_hit: Sequence[Mapping[str, Any]] = (),
        hints: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """What the caller is about to get, and the end of the turn; on the disk when this returns."""
        self._append(
            items.observation(
                self.turn,
                exit_code=exit_code,
                success=success,
                signal=signal,
                output=output.to_json() if output is not None else None,
                refusals=self._refusals,
                enforcement=enforcement,
                duration_s=duration_s,
                notes=notes,
                limits_hit=limits_hit,
                hints=hints,
            )
        )
        self._append(items.turn_end(self.session, self.turn, duration_s=duration_s))

    def to_disk(self) -> None:
        """Returns when what was recorded so far survives a power cut. Raises EngineError."""
        try:
            self._rollout.sync()
        except StoreError as error:
            raise _broken(error) from None

    def close(self) -> None:
        """Release the rollout."""
        self._rollout.close()

    def _append(self, item: items.Item) -> int:
        return self._append_together((item,))[0].ordinal or 0

    def _append_together(self, made: Sequence[items.Item]) -> list[Line]:
        try:
            return self._rollout.append_together(made)
        except StoreError as error:
            raise _broken(error) from None


def _broken(error: StoreError) -> EngineError:
    return EngineError(f"the session cannot be recorded: {error}", "nothing runs that is not recorded")

"""What the network door answers: a decision is data, the same value on the wire, in the rollout and on the screen."""

from enum import StrEnum
from typing import NamedTuple

from doorward.allowlists.host import Host
from doorward.allowlists.rule import Rule


class Effect(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Reason(StrEnum):
    ALLOWED = "allowed"
    NOT_ALLOWED = "not_allowed"  # no rule names the host
    NOT_ALLOWED_LOCAL = "not_allowed_local"  # a local address that no rule opens
    PORT_NOT_ALLOWED = "port_not_allowed"  # a rule names the host, none this port
    DENIED = "denied"  # a deny rule matches
    METHOD_NOT_ALLOWED = "method_not_allowed"
    PATH_NOT_ALLOWED = "path_not_allowed"
    MITM_REQUIRED = "mitm_required"
    NAME_MISMATCH = "name_mismatch"  # target, Host and TLS name do not agree
    SCHEME_NOT_ALLOWED = "scheme_not_allowed"
    PROXY_LOOP = "proxy_loop"
    NOT_ANSWERED = "not_answered"  # asked, and nobody said yes


class Source(StrEnum):
    BASELINE_POLICY = "baseline_policy"  # the rules and the address guard
    MODE_GUARD = "mode_guard"
    DECIDER = "decider"  # a person or program that was asked
    PROXY_STATE = "proxy_state"


class Decision(NamedTuple):
    """`rule` is the rule that decided, or that came nearest (port_not_allowed); None where none did.

    `message` is one plain sentence. `hint` is the exact option or command that would allow the request, "" where none
    would; `entry` is the bare rule entry in it, which parse_rule reads and which then allows.
    """

    effect: Effect
    reason: Reason
    source: Source
    rule: Rule | None
    host: Host
    port: int
    message: str
    hint: str
    entry: str = ""

    def refused(self, reason: Reason, source: Source, message: str) -> "Decision":
        """A deny for what only the proxy can see: mismatching names, its own address, silence of the decider."""
        keep = reason is Reason.NOT_ANSWERED  # an allow rule helps only where the rules were the obstacle
        return self._replace(
            effect=Effect.DENY,
            reason=reason,
            source=source,
            message=message,
            hint=self.hint if keep else "",
            entry=self.entry if keep else "",
        )

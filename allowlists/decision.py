"""What the network door answers: a decision is data, the same value on the wire, in the rollout and on the screen."""

from __future__ import annotations

from doorward.allowlists.host import Host
from doorward.allowlists.rule import Rule
from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


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
    CREDENTIAL_LEAK = "credential_leak"  # a secret, or what stands for one, on its way to a host it is not for
    NOT_ANSWERED = "not_answered"  # asked, and nobody said yes


class Source(StrEnum):
    BASELINE_POLICY = "baseline_policy"  # the rules and the address guard
    MODE_GUARD = "mode_guard"
    DECIDER = "decider"  # a person or program that was asked
    PROXY_STATE = "proxy_state"


class Words(NamedTuple):
    """What a decision says. `message` is one plain sentence. `hint` is the exact option or command that would allow the
    request, "" where none would; `entry` is the bare rule entry in it, which parse_rule reads and which then allows."""

    message: str
    hint: str = ""
    entry: str = ""


class Unsaid:
    """Words that are found when somebody asks for them, once: most decisions are acted upon and never read."""

    __slots__ = ("_about", "_find", "_words")

    def __init__(self, find: Callable[..., Words], *about: object) -> None:
        self._find = find
        self._about = about
        self._words: Words | None = None

    def words(self) -> Words:
        if self._words is None:
            self._words = self._find(*self._about)
        return self._words

    def about(self, host: Host, other: Host) -> Unsaid:
        """The same about another host."""
        return Unsaid(self._find, *[other if each is host else each for each in self._about])

    def __eq__(self, other: object) -> bool:
        return self.words() == (other.words() if isinstance(other, Unsaid) else other)

    def __hash__(self) -> int:
        return hash(self.words())

    def __repr__(self) -> str:
        return repr(self.words())


class _Facts(NamedTuple):
    effect: Effect
    reason: Reason
    source: Source
    rule: Rule | None
    host: Host
    port: int
    said: Words | Unsaid


class Decision(_Facts):
    """`rule` is the rule that decided, or that came nearest (port_not_allowed); None where none did."""

    __slots__ = ()

    def __new__(
        cls,
        effect: Effect,
        reason: Reason,
        source: Source,
        rule: Rule | None,
        host: Host,
        port: int,
        message: str,
        hint: str = "",
        entry: str = "",
    ) -> Decision:
        return cls._make((effect, reason, source, rule, host, port, Words(message, hint, entry)))

    @property
    def words(self) -> Words:
        """All that it says."""
        said = self.said
        return said.words() if isinstance(said, Unsaid) else said

    @property
    def message(self) -> str:
        """One plain sentence."""
        return self.words.message

    @property
    def hint(self) -> str:
        """The exact option or command that would allow the request, "" where none would."""
        return self.words.hint

    @property
    def entry(self) -> str:
        """The bare rule entry in the hint; "" where there is none."""
        return self.words.entry

    def at_port(self, port: int, message: str | None = None) -> Decision:
        """The same about another port; with `message` in another sentence."""
        said = self.said if message is None else Words(message, self.words.hint, self.words.entry)
        # not _replace: each new name that is looked up goes this way, and it costs five times as much
        return tuple.__new__(Decision, (self.effect, self.reason, self.source, self.rule, self.host, port, said))

    def refused(self, reason: Reason, source: Source, message: str) -> Decision:
        """A deny for what only the proxy can see: mismatching names, its own address, silence of the decider."""
        keep = reason is Reason.NOT_ANSWERED  # an allow rule helps only where the rules were the obstacle
        said = self.words._replace(message=message) if keep else Words(message)
        return self._replace(effect=Effect.DENY, reason=reason, source=source, said=said)

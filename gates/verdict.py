"""What the gates answer: a verdict, and the reason every gate gave for it."""

from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum


class Effect(StrEnum):
    """What one gate did to the action. A whole verdict is one of allow, ask and deny."""

    PASS = "pass"
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    LEFT_TO_KERNEL = "left-to-kernel"
    LEFT_TO_PROXY = "left-to-proxy"


class Gate(StrEnum):
    """The gates in their order (DESIGN.md §4); guardian and trust are the fuses."""

    HOOK_TRUST = "hook-trust"
    FEATURE = "feature"
    POLICY = "policy"
    BYPASS = "bypass"
    SANDBOX = "sandbox"
    APPROVAL = "approval"
    GUARDIAN = "guardian"
    TRUST = "trust"
    HOOK = "hook"
    """Not one of the resolver's: what a `before_exec` hook adds, which can only tighten."""


class Cause(StrEnum):
    """Why a gate did not simply let the action pass: the machine's form of the sentence."""

    NONE = "none"
    HOOK_NOT_TRUSTED = "hook_not_trusted"
    HOOK_DENIED = "hook_denied"
    HOOK_ASKED = "hook_asked"
    HOOK_FAILED = "hook_failed"
    FEATURE_OFF = "feature_off"
    FORBIDDEN = "forbidden"
    READ_ONLY = "read_only"
    WRITE_OUTSIDE = "write_outside"
    WRITE_PROTECTED = "write_protected"
    NETWORK_OFF = "network_off"
    HOST_NOT_ALLOWED = "not_allowed"
    POLICY_PROMPT = "policy_prompt"
    NOT_READ_ONLY = "not_read_only"
    RISKY = "risky"
    PROJECT_UNTRUSTED = "project_untrusted"
    REVIEWER_DENIED = "reviewer_denied"
    REVIEWER_TIMED_OUT = "reviewer_timed_out"
    REVIEWER_UNREADABLE = "reviewer_unreadable"
    REVIEWER_FAILED = "reviewer_failed"
    REVIEWER_STOPPED = "reviewer_stopped"
    PERSON_DENIED = "person_denied"
    NOT_ANSWERED = "not_answered"


class Reason(NamedTuple):
    """What one gate says. `switch` is the setting that decided, spelled so that it can be found (and for settings,
    given to `-c`); `sentence` is for a person. `remedy` is the option or command that would change a deny or an
    ask ("" where none does), `rule` the policy rule that matched.
    """

    gate: Gate
    switch: str
    effect: Effect
    sentence: str
    cause: Cause = Cause.NONE
    remedy: str = ""
    rule: str | None = None

    def to_json(self) -> dict[str, str]:
        """The four keys of DESIGN.md §4, in order."""
        return {
            "gate": str(self.gate),
            "switch": self.switch,
            "effect": str(self.effect),
            "sentence": self.sentence,
        }


class Verdict(NamedTuple):
    """`verdict` is Effect.ALLOW, ASK or DENY; `gate` the gate that decided; `reasons` in the order of the gates."""

    verdict: Effect
    gate: Gate
    reasons: tuple[Reason, ...]

    @property
    def deciding(self) -> Reason:
        """The reason that decided: the last one of the deciding gate with the verdict's own effect."""
        for reason in reversed(self.reasons):
            if reason.gate is self.gate and reason.effect is self.verdict:
                return reason
        raise ValueError("a verdict without the reason that decided it")

    def to_json(self) -> dict[str, object]:
        """The document of DESIGN.md §4."""
        return {
            "verdict": str(self.verdict),
            "gate": str(self.gate),
            "reasons": [reason.to_json() for reason in self.reasons],
        }

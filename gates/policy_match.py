"""What the policy rules say of one action: every rule that matched, and the strictest of them."""

from collections.abc import Iterable

from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum


class PolicyDecision(StrEnum):
    """The decisions of a rule, spelled as Codex spells them; loosest first."""

    ALLOW = "allow"
    PROMPT = "prompt"
    FORBIDDEN = "forbidden"


class PolicyMatch(NamedTuple):
    """One rule that matched. `rule` is its text, `where` its file and line.

    `command` is the part of the action it matched, "" for the whole. `doubt` says why it is not certain that the rule
    means this action ("" where it is): such a match asks, whatever the rule's own decision. `covers` numbers the parts
    an allow speaks for; None: all of them. `note` is what the rule does not reach.
    """

    decision: PolicyDecision
    rule: str
    where: str
    justification: str = ""
    command: str = ""
    doubt: str = ""
    covers: frozenset[int] | None = None
    note: str = ""


_STRICTNESS = {decision: rank for rank, decision in enumerate(PolicyDecision)}


def strictest(matches: Iterable[PolicyMatch]) -> PolicyMatch | None:
    """The match that counts. Equals are told apart by their text, so that the order of the rules never shows."""
    return max(matches, key=lambda match: (_STRICTNESS[match.decision], *match[1:6]), default=None)

"""The exec policy as data: prefix rules by program, what counts as a program of that name, and rules for hosts.

The semantics of matching are those of Codex's execpolicy (its README, "Matching semantics"): a rule matches a command
whose first words are the rule's; a program given by a path falls back to the rules for its base name where no rule
names the path as it is written, and, if a `host_executable` speaks of that name, only for the paths it lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os.path import join, normpath

from doorward.gates.command_part import Word
from doorward.gates.policy_match import PolicyDecision
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PrefixRule(NamedTuple):
    """One rule for commands that begin with `first` and then one of the alternatives at each place of `rest`.

    `justification` is "" where there is none; `file` and `line` (from 1) say where the rule stands.
    """

    first: str
    rest: Sequence[Sequence[str]]
    decision: str
    justification: str
    file: str
    line: int

    @property
    def where(self) -> str:
        """`FILE:LINE`."""
        return f"{self.file}:{self.line}"

    @property
    def text(self) -> str:
        """The rule as it could be written in a file."""
        pattern = ", ".join((_quoted(self.first), *(_alternatives(token) for token in self.rest)))
        return f'prefix_rule(pattern=[{pattern}], decision="{self.decision}")'


class NetworkRule(NamedTuple):
    """One rule for a host. `protocol` is http, https, socks5_tcp or socks5_udp; `decision` that of a prefix rule."""

    host: str
    protocol: str
    decision: str
    justification: str
    file: str
    line: int

    @property
    def where(self) -> str:
        """`FILE:LINE`."""
        return f"{self.file}:{self.line}"


class RuleMatch(NamedTuple):
    """One rule that matches a command; `resolved_program` is the absolute path that fell back to its base name."""

    rule: PrefixRule
    resolved_program: str | None = None


class Policy(NamedTuple):
    """All rules of all files, in the order they were read. `programs` maps a rule's first word to its rules, each a
    `PrefixRule` or a sequence of its fields (as the cache holds them: made into rules only where they match)."""

    programs: Mapping[str, Sequence[Sequence[Any]]]
    host_executables: Mapping[str, Sequence[str]] = {}
    network: Sequence[NetworkRule] = ()

    def matches(self, argv: Sequence[str], *, resolve_in: str | None = None) -> tuple[RuleMatch, ...]:
        """Every rule that matches `argv`, in order; nothing is unwrapped. With `resolve_in`, a folder that relative
        paths are taken from, a path falls back to its base name (see the module)."""
        if not argv:
            return ()
        program = argv[0]
        found = tuple(RuleMatch(rule) for rule in self._matching(program, argv[1:]))
        if found or resolve_in is None or "/" not in program:
            return found
        path = normpath(join(resolve_in, program))
        name = path.rpartition("/")[2]
        listed = self.host_executables.get(name)
        if not name or (listed is not None and path not in listed):
            return ()
        return tuple(RuleMatch(rule, path) for rule in self._matching(name, argv[1:]))

    def rules_for(self, program: str) -> list[PrefixRule]:
        """The rules whose first word is `program`."""
        return [PrefixRule._make(fields) for fields in self.programs.get(program, ())]

    def _matching(self, program: str, arguments: Sequence[str]) -> list[PrefixRule]:
        return [
            PrefixRule._make(fields)
            for fields in self.programs.get(program, ())
            if begins_with(arguments, fields[1]) is True
        ]


def begins_with(words: Sequence[Word], rest: Sequence[Sequence[str]]) -> bool | None:
    """True if `words` begin with one of the alternatives at each place of `rest`, False if they do not, None where
    unknown words leave both open."""
    certain: bool | None = True
    for place, alternatives in enumerate(rest):
        if place >= len(words):
            return False
        word = words[place]
        if word is ...:
            return None
        if word is None:
            certain = None
        elif word not in alternatives:
            return False
    return certain


def policy_of(
    prefix: Iterable[PrefixRule], hosts: Mapping[str, Sequence[str]], network: Iterable[NetworkRule]
) -> Policy:
    """A policy from rules in the order they were read."""
    programs: dict[str, list[PrefixRule]] = {}
    for rule in prefix:
        programs.setdefault(rule.first, []).append(rule)
    return Policy(programs, dict(hosts), tuple(network))


def to_plain(policy: Policy) -> dict[str, Any]:
    """`policy` as JSON holds it."""
    return {
        "programs": {name: [list(rule) for rule in rules] for name, rules in policy.programs.items()},
        "host_executables": {name: list(paths) for name, paths in policy.host_executables.items()},
        "network": [list(rule) for rule in policy.network],
    }


def from_plain(document: Mapping[str, Any]) -> Policy:
    """The policy that `to_plain` gave. Raises KeyError or TypeError for another document."""
    return Policy(
        document["programs"],
        document["host_executables"],
        tuple(NetworkRule._make(fields) for fields in document["network"]),
    )


def codex_document(argv: Sequence[str], matches: Sequence[RuleMatch]) -> dict[str, Any]:
    """What `codex execpolicy check` prints of `argv`: its keys in its order (codex-execpolicy README)."""
    document: dict[str, Any] = {"matchedRules": [{"prefixRuleMatch": _codex_match(argv, match)} for match in matches]}
    if matches:
        order = list(PolicyDecision)
        document["decision"] = str(max((PolicyDecision(match.rule.decision) for match in matches), key=order.index))
    return document


def _codex_match(argv: Sequence[str], match: RuleMatch) -> dict[str, Any]:
    rule = match.rule
    return {
        "matchedPrefix": [rule.first, *argv[1 : len(rule.rest) + 1]],
        "decision": rule.decision,
        **({"resolvedProgram": match.resolved_program} if match.resolved_program is not None else {}),
        **({"justification": rule.justification} if rule.justification else {}),
    }


def _quoted(text: str) -> str:
    import json  # a rule is shown only where it matched

    return json.dumps(text)


def _alternatives(token: Sequence[str]) -> str:
    shown = ", ".join(_quoted(each) for each in token)
    return shown if len(token) == 1 else f"[{shown}]"

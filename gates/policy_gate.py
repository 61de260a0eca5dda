"""The exec policy as the resolver asks it: what the rules say of an action, unwrapped and taken apart.

- Every part is judged: `a && b` is as strict as the stricter of the two.
- A rule that tightens (`forbidden`, `prompt`) matches by base name, wherever the program lies, through wrappers,
  through a script's first line, and past a program's own options (`git -C x push`).
- Where unknown words leave open whether such a rule means a part, a person is asked.
- A rule that allows counts only for words that are certain and for the program its name says: one that PATH finds
  outside every folder the sandboxed side can write to, or a path that `host_executable` lists. It counts for a wrapped
  command only if the rule names the command and not just the wrapper.
- An action is allowed by rules only if every part is; of any other the parts without a rule are judged by what is known
  of them, as if they stood alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from doorward.gates.action import Action
from doorward.gates.command_knowledge import after_own_options, is_known_harmless
from doorward.gates.command_part import Part, Word, base_name, shown
from doorward.gates.known_commands import BUILTINS
from doorward.gates.places import inside
from doorward.gates.policy_match import PolicyDecision, PolicyMatch
from doorward.gates.policy_rules import Policy, PrefixRule, begins_with
from doorward.gates.script_file import interpreter_line
from doorward.gates.unfolding import Surroundings, remembering, unfold, unfold_words
from doorward.gates.wording import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from doorward.gates.command_knowledge import Locate

_SYSTEM: Final = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/")
_LONGEST: Final = 256
"""Words of a part that are searched for a rule's words; behind them nothing is claimed but a doubt."""


class PolicyGate:
    """Callable for `Dial.policy`. `planted` are folders the sandboxed side can write to (canonical); `locate` finds a
    program (name, PATH, cwd), `canonical` resolves links."""

    def __init__(
        self,
        policy: Policy,
        planted: Sequence[str],
        locate: Locate,
        canonical: Callable[[str], str],
    ) -> None:
        self.policy = policy
        self.planted = planted
        self.locate = locate
        self.canonical = canonical
        # rules that tighten, by the base name of their program; the few that name a path are found under it too
        tightening: dict[str, list[PrefixRule]] = {}
        for first, rows in policy.programs.items():
            kept = [rule for rule in map(PrefixRule._make, rows) if rule.decision != PolicyDecision.ALLOW]
            if kept:
                tightening.setdefault(first.rpartition("/")[2], []).extend(kept)
        self.tightening = {name: _Rules(rules) for name, rules in tightening.items()}
        self.strictest = max(
            (rule for rules in tightening.values() for rule in rules),
            key=lambda rule: (rule.decision == PolicyDecision.FORBIDDEN, rule.where, rule.first),
            default=None,
        )
        self._allowing: dict[str, _Rules] = {}

    def __call__(self, action: Action) -> tuple[PolicyMatch, ...]:
        """The matches that count for `action`, at most one of them an allow."""
        return _Judging(self, action).matches()

    def allowing(self, first: str) -> _Rules | None:
        """The rules with this first word that allow."""
        found = self._allowing.get(first)
        if found is None:
            rows = self.policy.programs.get(first)
            if rows is None:
                return None
            rules = [rule for rule in map(PrefixRule._make, rows) if rule.decision == PolicyDecision.ALLOW]
            found = self._allowing[first] = _Rules(rules)
        return found


class _Rules:
    """The rules of one program, by the word that follows it."""

    def __init__(self, rules: Sequence[PrefixRule]) -> None:
        self._all = rules
        self._alone = [rule for rule in rules if not rule.rest]
        self._by_next: dict[str, list[PrefixRule]] = {}
        for rule in rules:
            for word in rule.rest[0] if rule.rest else ():
                self._by_next.setdefault(word, []).append(rule)

    def candidates(self, arguments: Sequence[Word]) -> Sequence[PrefixRule]:
        """Those that can match a command with these arguments."""
        if not arguments:
            return self._alone
        following = arguments[0]
        if not isinstance(following, str):
            return self._all
        found = self._by_next.get(following)
        return self._alone if found is None else [*self._alone, *found]


class _Judging:
    """One action while its rules are looked for."""

    def __init__(self, gate: PolicyGate, action: Action) -> None:
        self._gate = gate
        self._action = action
        self._parts = unfold(action)
        self._locate = remembering(action, gate.locate)
        self._planted: dict[str, bool] = {}

    def matches(self) -> tuple[PolicyMatch, ...]:
        return (*self._tightened(), *self._allowed())

    # --- rules that tighten --------------------------------------------------------------------------------------

    def _tightened(self) -> list[PolicyMatch]:
        if not self._gate.tightening:
            return []
        found: dict[tuple[str, str, str], PolicyMatch] = {}
        seen: set[tuple[Word, ...]] = set()
        whole = len(self._parts) == 1 and not self._parts[0].outer
        for part in self._parts:
            for words in (part.words, *(layer.words for layer in part.outer), *self._script_file(part)):
                if words in seen and isinstance(words[0] if words else "", str):
                    continue  # a script's own layer is around each of its parts
                seen.add(words)
                for match in self._tightened_by(part, words, "" if whole else shown(words)):
                    found.setdefault((match.decision, match.where, match.command), match)
        return list(found.values())

    def _script_file(self, part: Part) -> list[tuple[Word, ...]]:
        """The commands that run a script given by its path: its interpreter, what that is wrapped in (P-AP-16)."""
        program = part.words[0] if part.words else None
        if not isinstance(program, str) or "/" not in program:
            return []
        path = program if program.startswith("/") else f"{self._action.cwd}/{program}"
        line = interpreter_line(path)
        if not line:
            return []
        ran = unfold_words((*line, path, *part.words[1:]), Surroundings(env=part.env, depth=1))
        return [words for each in ran for words in (each.words, *(layer.words for layer in each.outer))]

    def _tightened_by(self, part: Part, words: Sequence[Word], command: str) -> list[PolicyMatch]:
        if not words:
            return []
        program = words[0]
        if not isinstance(program, str):
            rule = self._gate.strictest
            why = part.doubt or "which program runs is known only when it does"
            return [] if rule is None else [_doubtful(rule, "", why)]
        found: list[PolicyMatch] = []
        name = base_name(program)
        rules = self._gate.tightening.get(name)
        if rules is not None:
            arguments = words[1:]
            own = after_own_options(name, arguments)
            for given in (arguments,) if own is None or len(own) == len(arguments) else (arguments, own):
                for rule in rules.candidates(given):
                    if "/" in rule.first and not self._is_path(part, program, rule.first):
                        continue
                    answer = begins_with(given, rule.rest)
                    if answer is True:
                        found.append(_match(rule, command, self._by_name_only(part, program)))
                    elif answer is None:
                        found.append(_doubtful(rule, command, "not all of its words are known before it runs"))
        if not found and not is_known_harmless(name):
            found = self._carried(name, words, command)
        return found

    def _carried(self, name: str, words: Sequence[Word], command: str) -> list[PolicyMatch]:
        """A program that nothing is known of may run what it is given: `./retry git push`."""
        found = []
        start = 1
        own = after_own_options(name, words[1:])
        if own is not None:
            start = len(words) - len(own) + 1  # behind a sub-command, which is the program's own word
        for place in range(start, min(len(words), _LONGEST)):
            word = words[place]
            rules = self._gate.tightening.get(base_name(word)) if isinstance(word, str) else None
            if rules is None:
                continue
            rest = words[place + 1 : place + 1 + _LONGEST]
            for rule in rules.candidates(rest):
                if begins_with(rest, rule.rest) is True:
                    found.append(_doubtful(rule, command, f"{plain(name)} is given these words and may run them"))
        return found

    def _by_name_only(self, part: Part, program: str) -> str:
        """What a person should know of a program with many names (P-AP-17)."""
        path = program if "/" in program else self._located(part, program)
        if path is None:
            return ""
        name, real = (
            base_name(path),
            base_name(self._gate.canonical(f"{self._action.cwd}/{path}" if path[0] != "/" else path)),
        )
        if name == real:
            return ""
        return f"by its name only: {plain(name)} is {plain(real)}, which can have other names"

    def _is_path(self, part: Part, program: str, wanted: str) -> bool:
        """True if `program` is the very file that a rule names by its path."""
        path = program if "/" in program else self._located(part, program)
        return path is not None and self._gate.canonical(path) == self._gate.canonical(wanted)

    # --- rules that allow ----------------------------------------------------------------------------------------

    def _allowed(self) -> tuple[PolicyMatch, ...]:
        covered: dict[int, PrefixRule] = {}
        judged: dict[tuple[object, ...], PrefixRule | None] = {}
        for number, part in enumerate(self._parts):
            key = part.key
            if key not in judged:
                judged[key] = self._allowing(part)
            if (rule := judged[key]) is not None:
                covered[number] = rule
        if not covered:
            return ()
        rules = [rule for _, rule in sorted({rule.where: rule for rule in covered.values()}.items())]
        return (
            PolicyMatch(
                PolicyDecision.ALLOW,
                "; ".join(rule.text for rule in rules),
                ", ".join(rule.where for rule in rules),
                rules[0].justification if len(rules) == 1 else "",
                covers=None if len(covered) == len(self._parts) else frozenset(covered),
            ),
        )

    def _allowing(self, part: Part) -> PrefixRule | None:
        if not part.words:
            return None
        tries = ((part.words, 1), *((layer.words, layer.inner + 1) for layer in part.outer))
        for words, least in tries[1:] if part.doubt else tries:
            rule = self._allowing_words(part, words, least)
            if rule is not None:
                return rule if all(self._is_genuine(part, layer.words[0]) for layer in part.outer) else None
        return None

    def _allowing_words(self, part: Part, words: Sequence[Word], least: int) -> PrefixRule | None:
        program = words[0] if words else None
        if not isinstance(program, str):
            return None
        for first in dict.fromkeys((program, base_name(program))):
            rules = self._gate.allowing(first)
            for rule in rules.candidates(words[1:]) if rules is not None else ():
                if len(rule.rest) + 1 >= least and begins_with(words[1:], rule.rest) is True:
                    if first != program:
                        return rule if self._falls_back(part, program, first) else None
                    return rule if "/" in program or self._is_genuine(part, program) else None
        return None

    def _falls_back(self, part: Part, program: str, name: str) -> bool:
        """May the path `program` stand for the bare `name` of a rule?"""
        if not program.startswith("/") or self._is_planted(program):
            return False
        listed = self._gate.policy.host_executables.get(name)
        if listed is not None:
            return program in listed
        return program.startswith(_SYSTEM) or program == self._located(part, name)

    def _is_genuine(self, part: Part, program: Word) -> bool:
        """Is `program` the one its name says: where PATH finds it nothing inside the sandbox can have put it."""
        if not isinstance(program, str):
            return False
        path = program if program.startswith("/") else None if "/" in program else self._located(part, program)
        if path is None:
            return program in BUILTINS
        listed = self._gate.policy.host_executables.get(base_name(program))
        return not self._is_planted(path) and (listed is None or path in listed)

    def _is_planted(self, path: str) -> bool:
        known = self._planted.get(path)
        if known is None:
            names = {path, self._gate.canonical(path)}
            known = any(inside(each, folder) for each in names for folder in self._gate.planted)
            self._planted[path] = known
        return known

    def _located(self, part: Part, name: str) -> str | None:
        action = self._action
        path = part.env.get("PATH", action.env.get("PATH", ""))
        if action.argv and name == action.argv[0] and action.program is not None and "PATH" not in part.env:
            return action.program
        return self._locate(name, path, action.cwd)


def _match(rule: PrefixRule, command: str, note: str) -> PolicyMatch:
    decision = PolicyDecision(rule.decision)
    return PolicyMatch(decision, rule.text, rule.where, rule.justification, command, note=note)


def _doubtful(rule: PrefixRule, command: str, doubt: str) -> PolicyMatch:
    return PolicyMatch(PolicyDecision.PROMPT, rule.text, rule.where, rule.justification, command, doubt)

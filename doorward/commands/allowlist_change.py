"""`doorward allowlist add` and `remove`: rules in a configuration file, checked before anything is written."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from doorward.allowlists.hint import file_option
from doorward.allowlists.presets import PRESETS, preset_name
from doorward.allowlists.rule import MalformedRule, MalformedRules, Origin, Rule, parse_rule, rule_entry, table_text
from doorward.allowlists.ruleset import RuleSet
from doorward.commands.allowlist import JSON, options_of, printable_lines, tell
from doorward.commands.allowlist_file import RuleFile, chosen_file, folder_for, rules_in_effect
from doorward.configuration_file import UnusableFile
from doorward.configuration_lines import lines_of
from doorward.errors import UsageError
from doorward.options import Option, Parsed
from doorward.summary import printable
from doorward.toml_edit import Entry, Uneditable, change_file, entries_of, with_added, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.allowlists.rule import RuleEffect

NOT_THERE = 1
"""Exit status of a `remove` of what is not there."""

_OPTIONS = (
    Option("deny", "the rules of network.deny, not those of network.allow"),
    Option("project", "the project's own .doorward/config.toml, not $DOORWARD_HOME/config.toml"),
    Option("profile", "the profile's file", "NAME"),
    Option("cd", "the project is there", "DIR", "C"),
    JSON,
)
_TYPED = Origin("flag", "doorward allowlist add")


def add(args: list[str]) -> int:
    """Write rules into a file."""
    examples = ("doorward allowlist add '*.example.com' db.corp:5432", "doorward allowlist add --deny ads.example.com")
    parsed = options_of("add", "RULE…", _OPTIONS, args, examples)
    effect = _effect(parsed)
    wanted = _checked(_words("add", parsed), effect)
    file = chosen_file(parsed)
    new = [rule for word in wanted.values() if (rule := _parsed(word, effect)) is not None]
    known = rules_in_effect(parsed, file, new)
    added: dict[str, str] = {}
    already: dict[str, str] = {}
    notices: list[str] = []

    def change(text: str) -> str:
        there = {_meaning(entry, effect): place for place, entry in enumerate(entries_of(text, "network", effect))}
        lines = lines_of(text)
        for meaning, word in wanted.items():
            if meaning in there:
                already[word] = f"{file.path}:{lines['network', effect, there[meaning]]}"
            else:
                added[meaning] = word
        if not added:
            return text
        changed = with_added(text, "network", effect, [_toml(word) for word in added.values()])
        file.check(changed, effect)
        notices.extend(_notices(known, added.values(), effect))
        return changed

    with folder_for(file):
        _change(file, change)
    tell(tuple(notices))
    if file.unread and added:
        tell((file.unread,))
    if parsed.has("json"):
        words = {"added": list(added.values()), "already": list(already)}
        sys.stdout.write(json.dumps({"file": file.path, "key": f"network.{effect}", **words}) + "\n")
    else:
        _say(f"added to network.{effect} of {file.path}: {word}" for word in added.values())
        _say(f"there already ({where}): {word}" for word, where in already.items())
    return 0


def remove(args: list[str]) -> int:
    """Take rules out of a file: all of them, or none and exit status 1 if one is not there."""
    examples = ("doorward allowlist remove '*.example.com'", "doorward allowlist remove --deny ads.example.com")
    parsed = options_of("remove", "RULE…", _OPTIONS, args, examples)
    effect = _effect(parsed)
    words = _words("remove", parsed)
    file = chosen_file(parsed)
    missing: list[str] = []
    explained: list[str] = []

    def change(text: str) -> str:
        entries = entries_of(text, "network", effect)
        meanings = [_meaning(entry, effect) for entry in entries]
        wanted = {_meaning(word, effect) for word in words}
        missing.extend(word for word in words if _meaning(word, effect) not in meanings)
        if missing:
            explained.extend(_explained(word, effect, file, text) for word in missing)
            return text
        return without(text, "network", effect, [at for at, meaning in enumerate(meanings) if meaning in wanted])

    if os.path.lexists(file.path):
        _change(file, change)
    else:
        missing, explained = list(words), [f"there is no {file.path}"]
    if missing:
        missing_from_elsewhere = _elsewhere(parsed, file, missing, effect)
        tell((*explained, *missing_from_elsewhere, "nothing was removed"))
    removed = [] if missing else list(words)
    if parsed.has("json"):
        document = {"file": file.path, "key": f"network.{effect}", "removed": removed, "missing": missing}
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        _say(f"removed from network.{effect} of {file.path}: {word}" for word in removed)
    return NOT_THERE if missing else 0


def _effect(parsed: Parsed) -> RuleEffect:
    return "deny" if parsed.has("deny") else "allow"


def _words(action: str, parsed: Parsed) -> tuple[str, ...]:
    if not parsed.words:
        raise UsageError(f"doorward allowlist {action}: name at least one rule")
    return tuple(dict.fromkeys(parsed.words))


def _checked(words: Sequence[str], effect: RuleEffect) -> dict[str, str]:
    """The words by what they mean. Raises UsageError with everything that is wrong with any of them."""
    wanted: dict[str, str] = {}
    problems: list[MalformedRule] = []
    for position, word in enumerate(words, 1):
        try:
            _parsed(word, effect)
        except MalformedRule as problem:
            problem.position = position
            problems.append(problem)
        else:
            wanted.setdefault(_meaning(word, effect), word)
    if problems:
        raise UsageError(printable_lines(f"doorward: {MalformedRules(problems)}"))
    return wanted


def _parsed(word: str, effect: RuleEffect) -> Rule | None:
    """The rule; None for a preset. Raises MalformedRule."""
    preset = preset_name(word)
    if preset is None:
        return parse_rule(word, effect, _TYPED)
    if effect == "deny":
        raise MalformedRule(word, "only an allow takes a preset", origin=_TYPED)
    if preset.startswith("git-fetch:"):
        from doorward.allowlists.presets import PresetUnavailable
        from doorward.allowlists.read_only import git_fetch

        try:
            git_fetch(preset.partition(":")[2])
        except PresetUnavailable as error:
            raise MalformedRule(word, str(error), origin=_TYPED) from None
        return None
    if preset.removesuffix("+shared") not in PRESETS:
        import difflib  # only for the error text

        near = difflib.get_close_matches(preset, PRESETS, n=1)
        known = ", ".join(f"@{name}" for name in PRESETS)
        problem = f"there is no such preset; there are {known}"
        raise MalformedRule(word, problem, origin=_TYPED, suggestion=f"@{near[0]}" if near else None)
    return None


def _meaning(entry: Any, effect: RuleEffect) -> str:
    """One text for one meaning, whatever the spelling; the text itself of what is no rule, which can be removed too."""
    try:
        return (
            entry if isinstance(entry, str) and entry.startswith("@") else rule_entry(parse_rule(entry, effect, _TYPED))
        )
    except MalformedRule:
        return _text(entry)
    except (TypeError, AttributeError):  # a number or the like, which the configuration refuses too
        return repr(entry)


def _text(entry: Any) -> str:
    return table_text(entry) if isinstance(entry, dict) else str(entry)


def _toml(word: str) -> Entry:
    if not word.startswith("{"):
        return word
    table = tomllib.loads(f"rule = {word}")["rule"]
    assert isinstance(table, dict)  # the rule was parsed
    return table


def _notices(known: Sequence[Rule], words: Iterable[str], effect: RuleEffect) -> list[str]:
    """What a person should hear about the new rules among those in effect: wide ones, dead ones. Raises UsageError
    where they do not go together."""
    new = [rule for word in words if (rule := _parsed(word, effect)) is not None]
    try:
        before, after = (
            RuleSet.build(
                [rule for rule in rules if rule.effect == "allow"], [rule for rule in rules if rule.effect == "deny"]
            )
            for rules in (known, [*known, *new])
        )
    except MalformedRule as error:
        raise UsageError(printable_lines(f"doorward: {error}")) from None
    return [notice for notice in after.notices if notice not in before.notices]


def _change(file: RuleFile, change: Callable[[str], str]) -> None:
    try:
        change_file(file.path, change)
    except Uneditable as error:
        raise UsageError(printable(f"doorward: {file.path}: {error}")) from None
    except UnusableFile as error:
        raise UsageError(f"doorward: {error.problem}") from None


def _explained(word: str, effect: RuleEffect, file: RuleFile, text: str) -> str:
    """Why a rule cannot be removed, and what is there instead."""
    here = [_text(entry) for entry in entries_of(text, "network", effect)]
    sentence = f"network.{effect} of {file.path} has no {word}"
    other: RuleEffect = "allow" if effect == "deny" else "deny"
    if _meaning(word, other) in {_meaning(entry, other) for entry in entries_of(text, "network", other)}:
        return f"{sentence}; it is in network.{other}: {'leave out' if effect == 'deny' else 'add'} --deny"
    import difflib  # only for the error text

    near = difflib.get_close_matches(word, here, n=1, cutoff=0.5)
    if near:
        return f"{sentence}; the nearest there is {near[0]}"
    return (
        f"{sentence}; it has {', '.join(here[:5])}{', …' if len(here) > 5 else ''}"
        if here
        else f"{sentence}, nor any other rule"
    )


def _elsewhere(parsed: Parsed, file: RuleFile, words: Iterable[str], effect: RuleEffect) -> list[str]:
    """The other files that hold what was to be removed from this one."""
    try:
        known = rules_in_effect(parsed, file)
    except UsageError:
        return []  # a configuration that cannot be read says so when it is used
    found = []
    for word in words:
        for rule in known:
            if rule.effect == effect and rule_entry(rule) == _meaning(word, effect):
                option = file_option(rule.origin)
                how = "" if option is None else f" (doorward allowlist remove{option}{' --deny' * (effect == 'deny')})"
                found.append(f"{word} is in {rule.origin.where}{how}")
    return found


def _say(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))

"""`doorward allowlist`: the network rules in effect, and what they say about one place."""

from __future__ import annotations

import json
import os
import sys

from doorward import exit_status
from doorward.allowlists.decision import Decision, Effect
from doorward.allowlists.host import MalformedHost, parse_host_port
from doorward.allowlists.ruleset import RuleSet
from doorward.commands.run_options import POLICY_OPTIONS, opening_of
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.summary import printable

_OPTIONS = (
    *(option for option in POLICY_OPTIONS if option.name in ("allow", "deny", "config", "profile", "cd")),
    Option("json", "one JSON document"),
)
_ACTIONS = {
    "show": "the rules in effect, each with where it comes from",
    "test": "what the rules say about HOST[:PORT]: exit status 0 allow, 10 ask, 20 deny, 2 malformed",
    "presets": "the @names that --allow takes",
}
_DEFAULT_PORT = 443
_STATUS = {Effect.ALLOW: exit_status.ALLOW, Effect.ASK: exit_status.ASK, Effect.DENY: exit_status.DENY}


def main(args: list[str]) -> int:
    """Run one of the actions."""
    try:
        parsed = parse("allowlist", _OPTIONS, args)
    except HelpWanted:
        parsed = None
    if parsed is None or not parsed.words or parsed.words[0] not in _ACTIONS:
        text = help_text(
            "doorward allowlist ACTION [options]",
            "The network rules.",
            _OPTIONS,
            ("doorward allowlist show --allow @pip", "doorward allowlist test --allow example.com example.com:8443"),
        )
        text += "\nactions:\n" + "".join(f"  {name:<9} {what}\n" for name, what in _ACTIONS.items())
        (sys.stdout if parsed is None else sys.stderr).write(text)
        return 0 if parsed is None else exit_status.USAGE
    action, *words = parsed.words
    if action == "presets":
        return _presets(parsed)
    rules = _rules(parsed)
    return _show(rules, parsed) if action == "show" else _test(rules, words, parsed)


def _rules(parsed: Parsed) -> RuleSet:
    from doorward.allowlists.rule import MalformedRule
    from doorward.allowlists.settings import rule_set_from_settings
    from doorward.opening import settings_for

    settings, notices = settings_for(opening_of("allowlist", parsed), os.environ)
    for notice in notices:
        sys.stderr.write(printable(f"doorward: {notice}") + "\n")
    try:
        rules = rule_set_from_settings(settings)
    except MalformedRule as error:
        raise UsageError(f"doorward: {error}") from None
    for notice in rules.notices:
        sys.stderr.write(printable(f"doorward: {notice}") + "\n")
    return rules


def _show(rules: RuleSet, parsed: Parsed) -> int:
    rows = [
        {
            "effect": rule.effect,
            "rule": rule.text,
            "source": rule.origin.source,
            "where": rule.origin.where,
            "addresses": [str(network) for network in rule.addresses],
        }
        for rule in (*rules.deny, *rules.allow)
    ]
    if parsed.has("json"):
        sys.stdout.write(json.dumps(rows) + "\n")
        return 0
    width = max((len(str(row["rule"])) for row in rows), default=0)
    for row in rows:
        opened = f"  opens {', '.join(row['addresses'])}" if row["addresses"] else ""
        sys.stdout.write(printable(f"{row['effect']:<6} {row['rule']:<{width}}  {row['where']}{opened}") + "\n")
    if not rows:
        sys.stdout.write("no rules: nothing can be reached\n")
    return 0


def _test(rules: RuleSet, words: list[str], parsed: Parsed) -> int:
    if len(words) != 1:
        raise UsageError("doorward allowlist test: name one HOST[:PORT]")
    try:
        decision = rules.decide(*parse_host_port(words[0], _DEFAULT_PORT))
    except MalformedHost as error:
        raise UsageError(f"doorward allowlist test: {words[0]!r}: {error}") from None
    if parsed.has("json"):
        sys.stdout.write(json.dumps(_decision_document(decision)) + "\n")
    else:
        lines = [f"{decision.effect}: {decision.message}"]
        if decision.hint:
            lines.append(f"to allow it: {decision.hint}")
        sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
    return _STATUS[decision.effect]


def _decision_document(decision: Decision) -> dict[str, object]:
    from doorward.allowlists.host import host_text

    return {
        "host": host_text(decision.host),
        "port": decision.port,
        "decision": str(decision.effect),
        "reason": str(decision.reason),
        "source": str(decision.source),
        "rule": decision.rule.text if decision.rule is not None else None,
        "message": decision.message,
        "hint": decision.hint or None,
    }


def _presets(parsed: Parsed) -> int:
    from doorward.allowlists.presets import PRESETS

    if parsed.has("json"):
        sys.stdout.write(json.dumps([{"name": f"@{name}", "what": what} for name, what in PRESETS.items()]) + "\n")
    else:
        sys.stdout.write("".join(f"@{name:<8} {what}\n" for name, what in PRESETS.items()))
    return 0

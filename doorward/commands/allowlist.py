"""`doorward allowlist`: the network rules in effect, what they say about one place, and how they are changed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from doorward import exit_status
from doorward.allowlists.rule import Rule
from doorward.commands.run_options import POLICY_OPTIONS, opening_of
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.proxy.policy import Policy
from doorward.summary import printable

ACTIONS = {
    "show": "the rules in effect, each with where it comes from",
    "test": "what the rules say about HOST[:PORT]: exit status 0 allow, 10 ask, 20 deny, 2 malformed",
    "add": "write rules into a configuration file; comments and order stay",
    "remove": "take rules out of it",
    "learn": "the smallest rules for what sessions reached, against the rules in force",
    "presets": "the @names that --allow takes; with --expand what each stands for on this machine",
}
JSON = Option("json", "one JSON document")
RULE_OPTIONS = tuple(option for option in POLICY_OPTIONS if option.name in ("allow", "deny", "config", "profile", "cd"))
_SHOW = (*RULE_OPTIONS, JSON)
_PRESETS = (Option("expand", "ask the tools, and print the rules each @name stands for here"), JSON)
_EXAMPLES = (
    "doorward allowlist show --allow @pip",
    "doorward allowlist test --allow example.com example.com:8443",
    "doorward allowlist add '*.example.com' db.corp:5432",
)


def main(args: list[str]) -> int:
    """Run one of the actions."""
    action, rest = (args[0], args[1:]) if args else ("", [])
    if action in ("-h", "--help", "help"):
        sys.stdout.write(_usage())
        return 0
    if action not in ACTIONS:
        sys.stderr.write(_nearest(action) + _usage())
        return exit_status.USAGE
    try:
        if action == "show":
            return show(rest)
        if action == "test":
            from doorward.commands.allowlist_question import test

            return test(rest)
        if action == "presets":
            return presets(rest)
        if action == "learn":
            from doorward.commands import allowlist_learn

            return allowlist_learn.main(rest)
        from doorward.commands.allowlist_change import add, remove  # they alone pay for an editor of TOML

        return add(rest) if action == "add" else remove(rest)
    except HelpWanted as wanted:
        sys.stdout.write(str(wanted))
        return 0


def options_of(
    action: str, words: str, table: tuple[Option, ...], args: list[str], examples: tuple[str, ...] = ()
) -> Parsed:
    """The options of one action. Raises UsageError; HelpWanted with the help as its text."""
    try:
        return parse(f"allowlist {action}", table, args)
    except HelpWanted:
        usage = f"doorward allowlist {action}{f' {words}' if words else ''} [options]"
        raise HelpWanted(
            help_text(usage, f"{ACTIONS[action][0].upper()}{ACTIONS[action][1:]}.", table, examples)
        ) from None


def policy_of(parsed: Parsed) -> tuple[Policy, Mapping[str, object]]:
    """The policy of these options, as the proxy of a run would have it, and its settings. Raises UsageError."""
    from doorward.allowlists.rule import MalformedRule
    from doorward.opening import settings_for
    from doorward.proxy.limits import MalformedLimit
    from doorward.proxy.parent import MalformedParent
    from doorward.proxy.policy import policy_from_settings

    settings, notices = settings_for(opening_of("allowlist", parsed), os.environ)
    tell(notices)
    try:
        policy = policy_from_settings(settings)
    except (MalformedRule, MalformedLimit, MalformedParent) as error:
        raise UsageError(printable_lines(f"doorward: {error}")) from None
    tell(policy.notices)
    return policy, settings


def tell(notices: tuple[str, ...]) -> None:
    """Sentences for a person, on stderr."""
    sys.stderr.write("".join(printable(f"doorward: {notice}") + "\n" for notice in notices))


def printable_lines(text: str) -> str:
    """Text of several lines with what would drive a terminal as escapes."""
    return "\n".join(map(printable, text.split("\n")))


def show(args: list[str]) -> int:
    """Print the rules in effect."""
    parsed = options_of("show", "", _SHOW, args, (_EXAMPLES[0],))
    if parsed.words:
        raise UsageError("doorward allowlist show: takes no words; `doorward allowlist test HOST` asks about one place")
    policy, settings = policy_of(parsed)
    rows = [*map(_row, (*policy.rules.deny, *policy.rules.allow)), *_pins(settings)]
    rows.append({"effect": "deny", "rule": "*", "source": "builtin", "where": "built-in: whatever no rule allows"})
    if parsed.has("json"):
        sys.stdout.write(json.dumps(rows) + "\n")
        return 0
    width = max(len(str(row["rule"])) for row in rows)
    for row in rows:
        sys.stdout.write(printable(f"{row['effect']:<6} {row['rule']!s:<{width}}  {row['where']}") + "\n")
    return 0


def _row(rule: Rule) -> dict[str, object]:
    return {
        "effect": rule.effect,
        "rule": rule.text,
        "source": rule.origin.source,
        "where": rule.origin.where,
        "ports": [list(span) for span in rule.ports],
        "methods": list(rule.methods),
        **({} if rule.conditions is None else rule.conditions.table()),
        **({"credential": rule.credential} if rule.credential else {}),
        "addresses": [str(network) for network in rule.addresses],
        "tls": rule.tls,
    }


def _pins(settings: Mapping[str, object]) -> list[dict[str, object]]:
    """What names are pinned to: it is the resolution, and opens those addresses for the name."""
    found: list[dict[str, object]] = []
    for key, source, where in (("pins", "preset", "preset"), ("hosts", "file", "network.hosts")):
        table = settings[key]
        assert isinstance(table, dict)
        for name, listed in table.items():
            addresses = [listed] if isinstance(listed, str) else list(listed)
            rule = f"{name} = {', '.join(addresses)}"
            found.append({"effect": "pin", "rule": rule, "source": source, "where": where, "addresses": addresses})
    return found


def presets(args: list[str]) -> int:
    """Print the presets."""
    from doorward.allowlists.presets import PRESETS

    examples = ("doorward allowlist presets --expand @pip",)
    parsed = options_of("presets", "[@NAME…]", _PRESETS, args, examples)
    for word in parsed.words:
        if word.removeprefix("@").partition(":")[0].removesuffix("+shared") not in PRESETS:
            known = ", ".join(f"@{name}" for name in PRESETS)
            raise UsageError(f"doorward allowlist presets: there is no preset {word!r}; there are {known}")
    chosen = [word.removeprefix("@") for word in parsed.words] or list(PRESETS)
    expanding = parsed.has("expand")
    rows: list[dict[str, Any]] = [
        {"name": f"@{name}", "what": PRESETS[name.partition(":")[0].removesuffix("+shared")]}
        | (_expanded(name) if expanding and name != "git-fetch" else {})
        for name in dict.fromkeys(chosen)
    ]
    if parsed.has("json"):
        sys.stdout.write(json.dumps(rows) + "\n")
        return 0
    for row in rows:
        lines = [f"{row['name']:<13} {row['what']}"]
        lines += [f"  {each['rule']}  {each['why']}" for each in row.get("rules", ())]
        lines += [f"  {name} is pinned to {', '.join(listed)}" for name, listed in row.get("pins", {}).items()]
        lines += [f"  {row['unavailable']}"] if "unavailable" in row else []
        sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
        tell(tuple(row.get("notices", ())))
    return 0


def _expanded(name: str) -> dict[str, object]:
    """What the preset stands for here; a tool that is not here is no error of this command."""
    from doorward.allowlists.rule import table_text
    from doorward.preset_store import pinned
    from doorward.sessions.home import Home, default_home

    if sys.stderr.isatty():
        sys.stderr.write(f"doorward: asking for what @{name} stands for here\n")
    try:
        preset = pinned(name, Home(default_home(os.environ)), os.environ, os.environ.get("PATH", ""))
    except UsageError as error:
        return {"rules": [], "pins": {}, "notices": [], "unavailable": str(error).removeprefix("doorward: ")}
    return {
        "rules": [
            {"rule": rule if isinstance(rule, str) else table_text(rule), "why": why} for rule, why in preset.entries
        ],
        "pins": {host: list(addresses) for host, addresses in preset.pins.items()},
        "notices": list(preset.notices),
    }


def _usage() -> str:
    lines = ["The network rules.", "", *(f"  {example}" for example in _EXAMPLES), ""]
    lines += ["usage: doorward allowlist ACTION [options]", ""]
    lines += [f"  {name:<9} {what}" for name, what in ACTIONS.items()]
    return (
        "\n".join(lines) + "\n\n`doorward allowlist ACTION --help` tells the rest; docs/rules.md explains the rules.\n"
    )


def _nearest(action: str) -> str:
    if not action:
        return ""
    import difflib  # only for the error text

    near = difflib.get_close_matches(action, ACTIONS, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return printable(f"doorward allowlist: there is no action {action!r}{meant}") + "\n"

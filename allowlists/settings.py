"""A rule set from the JSON form in which a configuration travels between processes.

    {"allow": [{"rule": TEXT or TABLE, "source": S, "where": W}, …], "deny": […], "prompt": […],
     "hosts": {NAME: ADDRESS}, "pins": {NAME: [ADDRESS, …]}, "can_ask": false, "limited": false}

Other keys belong to other readers and are left alone.
"""

from __future__ import annotations

from doorward.allowlists.rule import MalformedRule, MalformedRules, Origin, Rule, parse_rule
from doorward.allowlists.ruleset import RuleSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from doorward.allowlists.rule import Entry, RuleEffect


class MalformedSettings(ValueError):
    """The form is not the one above: a fault of the program that sent it, not of a person's rules."""


def rule_set_from_settings(settings: Mapping[str, object], own_addresses: Iterable[bytes] = ()) -> RuleSet:
    """Raises MalformedRules with every bad entry, its origin and position; MalformedSettings for a wrong form."""
    problems: list[MalformedRule] = []
    allow = _rules(settings, "allow", problems, "allow")
    deny = _rules(settings, "deny", problems, "deny")
    # written like a deny: it means the host on every port
    prompt = _rules(settings, "prompt", problems, "deny")
    hosts = _mapping(settings, "hosts")
    pins = _mapping(settings, "pins")
    if not all(isinstance(address, str) for address in hosts.values()):
        raise MalformedSettings("hosts maps each name to one address, as text")
    can_ask = settings.get("can_ask", False)
    limited = settings.get("limited", False)
    if not isinstance(can_ask, bool) or not isinstance(limited, bool):
        raise MalformedSettings("can_ask and limited are true or false")
    addresses = {name: _texts(listed) for name, listed in pins.items()}
    try:
        built = RuleSet.build(
            allow,
            deny,
            hosts={name: str(address) for name, address in hosts.items()},
            pins=addresses,
            can_ask=can_ask,
            own_addresses=own_addresses,
            limited=limited,
            prompt=prompt,
        )
    except MalformedRules as error:
        raise MalformedRules((*problems, *error.problems)) from None
    if problems:
        raise MalformedRules(problems)
    return built


def _rules(
    settings: Mapping[str, object], key: str, problems: list[MalformedRule], effect: RuleEffect
) -> list[Rule]:
    listed = settings.get(key, [])
    if not isinstance(listed, list):
        raise MalformedSettings(f"{key} is a list")
    rules: list[Rule] = []
    for position, row in enumerate(listed, 1):
        entry, origin = _row(row, key)
        try:
            rules.append(parse_rule(entry, effect, origin))
        except MalformedRule as problem:
            problem.position = position
            problems.append(problem)
    return rules


def _row(row: object, effect: str) -> tuple[Entry, Origin]:
    if isinstance(row, dict) and row.keys() == {"rule", "source", "where"}:
        rule, source, where = row["rule"], row["source"], row["where"]
        if isinstance(rule, str | dict) and isinstance(source, str) and isinstance(where, str):
            return rule, Origin(source, where)
    raise MalformedSettings(f"each {effect} entry has rule, source and where")


def _mapping(settings: Mapping[str, object], key: str) -> dict[str, object]:
    value = settings.get(key, {})
    if not isinstance(value, dict):
        raise MalformedSettings(f"{key} is an object")
    return value


def _texts(listed: object) -> list[str]:
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise MalformedSettings("pins maps each name to a list of addresses, as text")
    return listed

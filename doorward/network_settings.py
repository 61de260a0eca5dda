"""The network rules of a configuration in the form the proxy is sent, presets expanded."""

from __future__ import annotations

from doorward.configuration import Configuration
from doorward.sessions.home import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from doorward.gates.policy_rules import Policy

_LIMITING = frozenset(("methods", "paths", "query", "headers", "graphql", "credential"))
"""Keys of a rule by which it allows some requests only, or puts something into them."""


def network_settings(
    configuration: Configuration, home: Home, env: Mapping[str, str], policy: Policy | None = None
) -> tuple[dict[str, object], tuple[str, ...]]:
    """The settings document (allowlists/settings.py reads it) and notices for a person; `policy` adds its rules for
    hosts. Raises UsageError."""
    pins: dict[str, list[str]] = {}
    notices: list[str] = []
    rules: dict[str, list[dict[str, object]]] = {"allow": [], "deny": []}
    for effect, rows in rules.items():
        for entry, origin in configuration.entries(f"network.{effect}"):
            if not (isinstance(entry, str) and entry.startswith("@")):
                rows.append({"rule": entry, "source": origin.source, "where": origin.where})
                continue
            from doorward.preset_store import pinned  # only a preset pays for it

            preset = pinned(entry[1:], home, env, env.get("PATH", ""))
            rows += [
                {"rule": rule, "source": "preset", "where": f"{entry} ({why}; {origin.where})"}
                for rule, why in preset.entries
            ]
            pins |= {name: list(addresses) for name, addresses in preset.pins.items()}
            notices += preset.notices
    if policy is not None and policy.network:
        from doorward.policy_loading import network_rows

        for effect, added in network_rows(policy).items():
            rules.setdefault(effect, []).extend(added)
    if configuration.value("network.observe"):
        notices.append("observing: what no rule allows passes and is recorded; deny rules and the local guard hold")
    follow: list[str] = []
    if configuration.value("network.loopback") or configuration.value("network.publish"):
        from doorward.granted_ports import follows, loopback_rules  # for few runs only

        rules["allow"] += loopback_rules(configuration)
        follow = follows(configuration)
    return {
        "allow": rules["allow"],
        "deny": rules["deny"],
        **({"prompt": rules["prompt"]} if rules.get("prompt") else {}),
        "hosts": dict(configuration.table("network.hosts")),
        "pins": pins,
        "can_ask": False,
        "limited": configuration.optional_text("network.mode") == "limited",
        "observe": configuration.value("network.observe"),
        "limits": dict(configuration.table("network.limits")),
        "follow": follow,
        "upstream_proxy": configuration.optional_text("network.upstream_proxy"),
        "upstream_resolves": list(configuration.strings("network.upstream_resolves")),
    }, tuple(notices)


def asks_for_inspection(configuration: Configuration, settings: Mapping[str, Any]) -> bool:
    """Whether it is worth a closer look; costs next to nothing."""
    if settings.get("limited") or configuration.value("inspect.all"):
        return True
    if any(name.startswith("credentials.") for name in (*configuration.values, *configuration.rows)):
        return True
    for row in settings.get("allow", ()):
        rule = row["rule"]
        if not isinstance(rule, str):
            if not _LIMITING.isdisjoint(rule):
                return True
        elif rule.startswith("{"):
            return True
    return False


def host_decider(settings: Mapping[str, object]) -> Callable[[str, int], str]:
    """The allowlist as the gates ask it, by name alone: "allow", "ask" or "deny" for a declared connection.

    The rules are only read when something is declared: the proxy reads them anyway, in its own process.
    """

    def decide(host: str, port: int) -> str:
        from doorward.allowlists.host import MalformedHost, parse_host
        from doorward.allowlists.settings import rule_set_from_settings

        try:
            return str(rule_set_from_settings(settings).decide(parse_host(host), port).effect)
        except MalformedHost:
            return "deny"

    return decide

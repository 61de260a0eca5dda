"""Presets of a tool's own settings where it has some, else of a dated list: `preset_hosts.toml`.

`@NAME` opens what is configured, or listed; `@NAME+shared` also the hosts where strangers keep content of their own.
"""

import tomllib
from functools import cache
from importlib import resources
from urllib.parse import urlsplit

from doorward.allowlists.host import MalformedHost, authority_text, parse_rule_host, parse_rule_host_port
from doorward.allowlists.preset_configured import ASKING, Asked
from doorward.allowlists.presets import (
    Fingerprint,
    PresetExpansion,
    PresetHost,
    PresetUnavailable,
    Tools,
    may_be_preset,
)
from doorward.named_tuple import NamedTuple

SHARED = "+shared"
_PORTS = {"http": 80, "https": 443}
_NOT_LISTED = Asked((), False)


class Listed(NamedTuple):
    """One table of the list: hosts with why each is there, the day it was checked (ISO 8601), against what."""

    checked: str
    source: str
    hosts: dict[str, str]
    shared: dict[str, str]


@cache
def listed() -> dict[str, Listed]:
    """The whole list, by preset."""
    # beside this file, in whatever form the package is installed
    with resources.files("doorward.allowlists").joinpath("preset_hosts.toml").open("rb") as file:
        tables = tomllib.load(file)
    return {
        name: Listed(str(table["checked"]), table["source"], table["hosts"], table["shared"])
        for name, table in tables.items()
    }


def expand(name: str, tools: Tools) -> PresetExpansion:
    """The hosts of `name`, which may end in "+shared". Raises PresetUnavailable where there is nothing to open."""
    base = name.removesuffix(SHARED)
    known = listed().get(base)
    asked = (ASKING[base](tools) if base in ASKING else None) or _NOT_LISTED
    hosts: dict[str, PresetHost] = {}
    notices = list(asked.notices)
    for url, why in asked.urls:
        found = _of_url(url, why)
        if found is not None:
            hosts.setdefault(found.entry, found)
        elif not url.startswith(("/", "file:", "cdrom:", "copy:")):
            notices.append(f"{_shown(url)} ({why}) is left out: it names no host that a preset opens")
    if known is not None:
        instead = asked.instead and (hosts or base == "git")
        for entry, why in {} if instead else known.hosts.items():
            _add(hosts, entry, f"{why}; listed {known.checked}")
        if name != base:
            for entry, why in known.shared.items():
                _add(hosts, entry, f"{why}; listed {known.checked}")
        elif known.shared and not instead:
            notices.append(
                f"@{base} leaves out {', '.join(known.shared)}, where others keep content of their own; "
                f"@{base}{SHARED} opens them too"
            )
    elif name != base:
        notices.append(f"@{base} knows no shared hosts; @{name} is @{base}")
    if not hosts:
        raise _nothing(base)
    return PresetExpansion(
        name, tuple(hosts.values()), tuple(notices), Fingerprint(asked.programs, asked.files, asked.variables)
    )


def _nothing(base: str) -> PresetUnavailable:
    if base == "git":
        return PresetUnavailable(
            "the person's git settings name no host",
            "write @git-fetch:HOST/OWNER/REPO to read from one place, or @git+shared for the public forges, "
            "where anybody with a token can push",
        )
    return PresetUnavailable(
        f"{base} is not configured here, and what it reaches is not known", "name the hosts with --allow"
    )


def _of_url(url: str, why: str) -> PresetHost | None:
    try:
        parts = urlsplit(url.removeprefix("sparse+").removeprefix("git+").removeprefix("registry+"))
        port = parts.port or _PORTS[parts.scheme]
        name = parts.hostname or ""
        host = parse_rule_host(f"[{name}]" if ":" in name else name)
    except (ValueError, KeyError, MalformedHost):
        return None
    return PresetHost(host, port, why, True) if may_be_preset(host, configured=True) else None


def _add(hosts: dict[str, PresetHost], entry: str, why: str) -> None:
    host, port = parse_rule_host_port(entry, 443)
    hosts.setdefault(authority_text(host, port), PresetHost(host, port, why, False))


def _shown(url: str) -> str:
    """Without user-info, which may be a credential."""
    before, at, after = url.rpartition("@")
    return f"{before[: before.find('//') + 2]}{after}" if at else url

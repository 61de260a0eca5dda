"""@npm: the registries npm is configured for, those of scopes included.

`npm config list --json` gives every setting with its origin resolved: command line, environment, files, built-in.
"""

import json
from urllib.parse import urlsplit

from doorward.allowlists.host import MalformedHost, authority_text, parse_rule_host
from doorward.allowlists.presets import (
    Fingerprint,
    PresetExpansion,
    PresetHost,
    PresetUnavailable,
    Tools,
    may_be_preset,
)

_PORTS = {"http": 80, "https": 443}
_VARIABLES = ("npm_config_*", "NPM_CONFIG_*", "HOME", "PREFIX")
_FILES = ("userconfig", "globalconfig")


def expand(tools: Tools) -> PresetExpansion:
    """Raises PresetUnavailable when npm is missing or names no registry."""
    output = tools.run(["npm", "config", "list", "--json"])
    if output is None:
        raise PresetUnavailable("npm is not found or does not run", "install npm, or name the hosts with --allow")
    try:
        settings = json.loads(output)
        found = {
            key: value
            for key, value in settings.items()
            if isinstance(value, str) and (key == "registry" or (key.startswith("@") and key.endswith(":registry")))
        }
    except (ValueError, AttributeError):
        raise PresetUnavailable("npm's settings cannot be read", "name the hosts with --allow") from None
    hosts: dict[str, PresetHost] = {}
    notices = []
    for key, url in found.items():
        why = "the registry npm is configured for" if key == "registry" else f"the registry of {key.partition(':')[0]}"
        host = _host(url, why)
        if host is None:
            notices.append(f"npm's setting {key} is left out: it names no host a preset opens")
        else:
            hosts.setdefault(authority_text(host.host, host.port), host)
    if not hosts:
        raise PresetUnavailable("npm names no registry that a preset opens", "name the hosts with --allow")
    files = tuple(settings[name] for name in _FILES if isinstance(settings.get(name), str))
    return PresetExpansion("npm", tuple(hosts.values()), tuple(notices), Fingerprint(("npm",), files, _VARIABLES))


def _host(url: str, why: str) -> PresetHost | None:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        name = parts.hostname or ""
        host = parse_rule_host(f"[{name}]" if ":" in name else name)
    except (ValueError, KeyError, MalformedHost):
        return None
    return PresetHost(host, port, why, True) if may_be_preset(host, configured=True) else None

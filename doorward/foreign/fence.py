"""Settings of fence (`fence.json`, `fence.jsonc`), as its documentation describes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from doorward.foreign.equivalent import Equivalent, listed, name_rest, subtable
from doorward.foreign.srt import take_files, take_network

_NETWORK = ("allowLocalOutbound", "allowLocalOutboundPorts", "upstreamProxy", "defaultAction")
_FILES = ("allowExecute", "defaultDenyRead", "strictDenyRead", "wslInterop")


def equivalent_of(settings: Mapping[str, Any]) -> Equivalent:
    """What the settings come to."""
    found = Equivalent()
    if settings.get("extends"):
        found.no(
            f"extends: {settings['extends']}",
            "what it inherits is not read; import what `fence config show` prints, which holds everything",
        )
    network = subtable(settings, "network", "", found)
    if "*" in listed(network, "allowedDomains", "network", found):
        found.notices.append("allowedDomains has *: here the proxy and every deny rule still hold")
    take_network({key: value for key, value in network.items() if key not in _NETWORK}, "network", found)
    ports = [str(port) for port in listed(network, "allowLocalOutboundPorts", "network", found)]
    if ports:
        found.no("network.allowLocalOutboundPorts", f"give it to each run: --allow-loopback {','.join(ports)}")
    elif network.get("allowLocalOutbound"):
        found.no("network.allowLocalOutbound", "name the ports: --allow-loopback PORT")
    if network.get("defaultAction") == "proxy":
        found.no("network.defaultAction", "what no rule allows is refused; there is no second proxy for it")
    files = subtable(settings, "filesystem", "", found)
    take_files({key: value for key, value in files.items() if key not in _FILES}, "filesystem", found)
    for key in _FILES:
        if files.get(key):
            found.no(f"filesystem.{key}", "everything but what filesystem.deny_read hides can be read and executed")
    command = subtable(settings, "command", "", found)
    for decision, key in (("forbidden", "deny"), ("allow", "allow")):
        for entry in listed(command, key, "command", found):
            _command(entry, decision, f"command.{key}", found)
    name_rest(command, ("deny", "allow", "useDefaults"), "command", found)
    if settings.get("ssh"):
        found.no("ssh", "the inside of ssh cannot be seen; allow its hosts by name and port, as in git.example:22")
    name_rest(settings, ("extends", "network", "filesystem", "command", "ssh", "$schema"), "", found)
    return found


def _command(entry: object, decision: str, where: str, found: Equivalent) -> None:
    try:
        words = shlex.split(entry) if isinstance(entry, str) else []
    except ValueError:
        words = []
    if words:
        found.prefix_rule(words, decision)
    else:
        found.no(f"{where}: {entry}", "is no command")

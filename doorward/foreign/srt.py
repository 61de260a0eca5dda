"""Settings of Anthropic's sandbox-runtime (`~/.srt-settings.json`), versions up to 0.0.83.

Reads are open but for `denyRead` there as here; writes are closed but for `allowWrite`, which here comes to the
workspace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doorward.foreign.equivalent import Equivalent, listed, name_rest, subtable


def equivalent_of(settings: Mapping[str, Any]) -> Equivalent:
    """What the settings come to."""
    found = Equivalent()
    take_network(subtable(settings, "network", "", found), "network", found)
    take_files(subtable(settings, "filesystem", "", found), "filesystem", found)
    credentials = subtable(settings, "credentials", "", found)
    for entry in listed(credentials, "files", "credentials", found):
        found.path("filesystem.deny_read", entry, "credentials.files")
    for entry in listed(credentials, "envVars", "credentials", found):
        name = entry.get("name") if isinstance(entry, Mapping) else entry
        found.no(f"credentials.envVars: {name}", "what looks like a credential is withheld without being named")
    if settings.get("enableWeakerNestedSandbox"):
        found.no("enableWeakerNestedSandbox", "a weaker sandbox is never silently accepted; see --require best-effort")
    name_rest(
        settings,
        ("network", "filesystem", "credentials", "enableWeakerNestedSandbox", "$schema"),
        "",
        found,
    )
    return found


def take_network(network: Mapping[str, Any], where: str, found: Equivalent) -> None:
    """The part about hosts, which other tools have taken over."""
    for entry in listed(network, "allowedDomains", where, found):
        found.host("allow", entry, f"{where}.allowedDomains")
    for entry in listed(network, "deniedDomains", where, found):
        found.host("deny", entry, f"{where}.deniedDomains")
    for entry in listed(network, "deniedResolvedAddresses", where, found):
        found.host("deny", entry, f"{where}.deniedResolvedAddresses")
    for entry in listed(network, "allowUnixSockets", where, found):
        found.path("filesystem.allow_unix", entry, f"{where}.allowUnixSockets")
    if network.get("allowAllUnixSockets"):
        found.no(f"{where}.allowAllUnixSockets", "sockets are granted one by one: filesystem.allow_unix")
    if network.get("allowLocalBinding"):
        found.notices.append(
            "allowLocalBinding: servers and clients of one run always reach each other; for ports of this machine see "
            "--allow-loopback and --publish"
        )
        found.set("macos.local_binding", True)
    parent = subtable(network, "parentProxy", where, found)
    url = parent.get("https") or parent.get("http")
    if isinstance(url, str):
        found.set("network.upstream_proxy", url)
    if parent.get("noProxy"):
        found.no(f"{where}.parentProxy.noProxy", "there is no list of hosts that go past the parent proxy")
    for key in ("httpProxyPort", "socksProxyPort"):
        if network.get(key):
            found.no(f"{where}.{key}", "the proxy's port inside the sandbox is fixed")
    known = {
        *("allowedDomains", "deniedDomains", "deniedResolvedAddresses", "allowUnixSockets", "allowAllUnixSockets"),
        *("allowLocalBinding", "parentProxy", "httpProxyPort", "socksProxyPort", "strictAllowlist"),
    }
    name_rest(network, known, where, found)
    if found.arrays["network.allow"]:
        found.notices.append("a host without a port is allowed on 80 and 443; name other ports, as in db.example:5432")


def take_files(files: Mapping[str, Any], where: str, found: Equivalent) -> None:
    """The part about paths."""
    for entry in listed(files, "allowWrite", where, found):
        if entry not in (".", "./", "/tmp"):  # the workspace, and a private /tmp, are writable anyway
            found.path("filesystem.write", entry, f"{where}.allowWrite")
    for entry in listed(files, "denyWrite", where, found):
        found.path("filesystem.read_only", entry, f"{where}.denyWrite")
    for entry in listed(files, "denyRead", where, found):
        found.path("filesystem.deny_read", entry, f"{where}.denyRead")
    for entry in listed(files, "allowRead", where, found):
        shown = entry if isinstance(entry, str) else "an entry"
        found.no(f"{where}.allowRead: {shown}", "what lies in a hidden folder cannot be shown again by a setting")
    if files.get("allowGitConfig"):
        found.no(f"{where}.allowGitConfig", "git's settings stay protected; grant a file by name: filesystem.write")
    if files.get("disabled"):
        found.set("sandbox_mode", "danger-full-access")
    name_rest(
        files, ("allowWrite", "denyWrite", "denyRead", "allowRead", "allowGitConfig", "disabled"), where, found
    )

"""Profiles of nono (JSON, as `nono-profile.schema.json` describes them)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doorward.foreign.equivalent import Equivalent, listed, name_rest, subtable

_DOMAINS = ("allow_domain", "proxy_allow", "allow_proxy")
_PORTS = ("open_port", "port_allow", "allow_port")
_WRITE = ("allow", "write", "allow_file", "write_file")
_SOCKETS = ("unix_socket", "unix_socket_bind")


def equivalent_of(settings: Mapping[str, Any]) -> Equivalent:
    """What the profile comes to."""
    found = Equivalent()
    if settings.get("extends"):
        found.no(f"extends: {settings['extends']}", "what it inherits is not read; import the resolved profile")
    _files(subtable(settings, "filesystem", "", found), found)
    _network(subtable(settings, "network", "", found), found)
    access = subtable(settings, "workdir", "", found).get("access")
    if access in ("none", "read"):
        found.set("sandbox_mode", "read-only")
    environment = subtable(settings, "environment", "", found)
    for entry in listed(environment, "allow_vars", "environment", found):
        found.no(f"environment.allow_vars: {entry}", "variables are withheld by what they look like; see env.inherit")
    for key in ("env_credentials", "secrets"):
        for account in subtable(settings, key, "", found):
            found.no(f"{key}: {account}", "write it as a table under [credentials], so that the command never holds it")
    if settings.get("hooks") or settings.get("session_hooks"):
        found.no("hooks", "write them as hooks of doorward, which run inside the sandbox")
    taken = ("extends", "filesystem", "network", "workdir", "environment", "env_credentials", "secrets", "hooks")
    name_rest(settings, (*taken, "session_hooks", "meta", "$schema", "interactive"), "", found)
    return found


def _files(files: Mapping[str, Any], found: Equivalent) -> None:
    for key in _WRITE:
        for entry in listed(files, key, "filesystem", found):
            found.path("filesystem.write", _conditional(entry, f"filesystem.{key}", found), f"filesystem.{key}")
    for entry in listed(files, "deny", "filesystem", found):
        found.path("filesystem.deny_read", _conditional(entry, "filesystem.deny", found), "filesystem.deny")
    for key in _SOCKETS:
        for entry in listed(files, key, "filesystem", found):
            found.path("filesystem.allow_unix", _conditional(entry, f"filesystem.{key}", found), f"filesystem.{key}")
    if files.get("read") or files.get("read_file"):
        found.notices.append("read and read_file need nothing: what filesystem.deny_read does not hide can be read")
    if files.get("write") or files.get("write_file"):
        found.notices.append("write and write_file open paths for reading as well")
    taken = (*_WRITE, *_SOCKETS, "deny", "read", "read_file", "suppress_save_prompt", "ignore")
    name_rest(files, taken, "filesystem", found)


def _network(network: Mapping[str, Any], found: Equivalent) -> None:
    domains = [entry for key in _DOMAINS for entry in listed(network, key, "network", found)]
    for entry in domains:
        if isinstance(entry, Mapping):
            found.no(f"network.allow_domain: {entry.get('domain', entry)}", "write its endpoints as methods and paths")
        else:
            found.host("allow", entry, "network.allow_domain")
    for entry in listed(network, "deny_domain", "network", found):
        found.host("deny", entry, "network.deny_domain")
    if network.get("block"):
        found.set("network.mode", "off")
    elif not domains and not network.get("network_profile"):
        found.notices.append("the profile leaves the network open; here nothing is reached until a rule allows it")
    ports = [str(port) for key in _PORTS for port in listed(network, key, "network", found)]
    if ports:
        found.no("network.open_port", f"give it to each run: --allow-loopback {','.join(ports)}")
    listening = [str(port) for port in listed(network, "listen_port", "network", found)]
    if listening:
        found.no("network.listen_port", f"give it to each run: --publish {','.join(listening)}")
    upstream = network.get("upstream_proxy") or network.get("external_proxy")
    if isinstance(upstream, str):
        found.set("network.upstream_proxy", upstream if "://" in upstream else f"http://{upstream}")
    if network.get("no_proxy"):
        found.no("network.no_proxy", "there is no list of hosts that go past the proxy")
    taken = (*_DOMAINS, *_PORTS, "deny_domain", "block", "listen_port", "upstream_proxy", "external_proxy", "no_proxy")
    name_rest(network, taken, "network", found)


def _conditional(entry: object, where: str, found: Equivalent) -> object:
    if isinstance(entry, Mapping) and "when" in entry:
        found.no(f"{where}: {entry.get('path')}", f"it holds only when {entry['when']}; it was taken without that")
    return entry

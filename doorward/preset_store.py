"""Presets as a run needs them: expanded once, kept while nothing they depend on changes, pinned anew each time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from doorward.allowlists.host import Address, Name, host_text, parse_host
from doorward.allowlists.presets import Fingerprint, PresetExpansion, PresetHost, PresetUnavailable, expand, pins_for
from doorward.errors import UsageError
from doorward.named_tuple import NamedTuple
from doorward.programs import which
from doorward.sessions.home import Home, private_folder
from doorward.sessions.unnamed_file import UnnamedFile

_KEPT_S = 7 * 24 * 3600
"""How long an expansion is believed although nothing seems to have changed: file hosts do move."""

_FORMAT = 1


class PinnedPreset(NamedTuple):
    """`entries` are allow rules with why they are there; `pins` the addresses each name has now."""

    entries: tuple[tuple[str | Mapping[str, object], str], ...]
    pins: Mapping[str, tuple[str, ...]]
    notices: tuple[str, ...]


def pinned(name: str, home: Home, env: Mapping[str, str], path: str) -> PinnedPreset:
    """Expand `@name`, from the cache where it still holds, and pin its names to the addresses they have now.

    `path` is the PATH tools are looked for in. Raises UsageError with the remedy where it cannot be expanded.
    """
    base = name
    try:
        if "-" in name:
            from doorward.allowlists.read_only import BASES, GIT_FETCH, git_fetch

            if name.partition(":")[0] == GIT_FETCH:
                return PinnedPreset(git_fetch(name.partition(":")[2]), {}, ())
            base = BASES.get(name, name)
        expansion = _cached(base, home, env, path)
        if expansion is None:
            from doorward.tools import HostTools  # only where the cache does not serve

            expansion = expand(base, HostTools(path))
            _store(home, expansion, env, path)
    except PresetUnavailable as error:
        raise UsageError(f"doorward: @{name}: {error}") from None
    pins: dict[str, tuple[str, ...]] = {}
    entries: tuple[tuple[str | Mapping[str, object], str], ...]
    if base == name:
        entries = tuple((host.entry, host.why) for host in expansion.hosts)
    else:
        from doorward.allowlists.read_only import reading_from

        entries = reading_from(name, expansion.hosts)
    for host in expansion.hosts:
        if isinstance(host.host, Name):
            pins[host.host.text] = tuple(str(ip) for ip in pins_for(host, _resolve(host.host.text)))
    return PinnedPreset(entries, {name: listed for name, listed in pins.items() if listed}, expansion.notices)


def _resolve(name: str) -> list[Any]:
    """The addresses the machine's resolver gives; none for a name it does not know (the dial will say so)."""
    import ipaddress
    import socket

    try:
        found = socket.getaddrinfo(f"{name}.", None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(ipaddress.ip_address(each[4][0]) for each in found))


def _path_of(home: Home, name: str) -> str:
    return f"{home.cache}/preset-{name}.json"


def _state(inputs: Fingerprint, env: Mapping[str, str], path: str) -> str:
    """A digest of everything the expansion depends on, as it is now. Values are hashed: some hold credentials."""
    parts: list[object] = [_FORMAT]
    for program in inputs.programs:
        parts.append((program, which(program, path)))
    for file in inputs.files:
        try:
            found = os.stat(os.path.expanduser(file))
            parts.append((file, found.st_mtime_ns, found.st_size, found.st_ino))
        except OSError:
            parts.append((file, None))
    for variable in inputs.variables:
        if variable.endswith("*"):
            parts.append(sorted((name, env[name]) for name in env if name.startswith(variable[:-1])))
        else:
            parts.append((variable, env.get(variable)))
    return sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _cached(name: str, home: Home, env: Mapping[str, str], path: str) -> PresetExpansion | None:
    try:
        with open(_path_of(home, name), encoding="utf-8") as file:
            kept = json.load(file)
        inputs = Fingerprint(*(tuple(listed) for listed in kept["inputs"]))
        if kept["expanded_at"] + _KEPT_S < time.time() or kept["state"] != _state(inputs, env, path):
            return None
        hosts = tuple(
            PresetHost(parse_host(host), port, why, configured) for host, port, why, configured in kept["hosts"]
        )
        return PresetExpansion(name, hosts, tuple(kept["notices"]), inputs)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # a cache that cannot be read is no cache


def _store(home: Home, expansion: PresetExpansion, env: Mapping[str, str], path: str) -> None:
    document = {
        "expanded_at": time.time(),
        "inputs": expansion.fingerprint_inputs,
        "state": _state(expansion.fingerprint_inputs, env, path),
        "hosts": [
            (f"[{host_text(each.host)}]" if isinstance(each.host, Address) and each.host.ip.version == 6
             else host_text(each.host), each.port, each.why, each.configured)
            for each in expansion.hosts
        ],
        "notices": expansion.notices,
    }  # fmt: skip
    home.ensure()
    private_folder(home.cache)
    target = _path_of(home, expansion.name)
    try:
        os.unlink(target)
    except FileNotFoundError:
        pass
    fresh = UnnamedFile(home.cache)
    fresh.write(json.dumps(document).encode("ascii"))
    fresh.publish(target)  # where another run was faster its file serves as well

"""The peers of `doorward run`: where to find them and how to start them so that they do the same job.

- `codex sandbox` (npm @openai/codex): its native executable, never the npm shim in front of it (that adds a node
  start of over 100 ms). Once as it comes, without network; once with its proxy on, which takes the feature
  `network_proxy` and a permission profile with `network.enabled` and at least one domain. CODEX_HOME must lie outside
  the temporary directory: codex starts its sandbox through a link to itself that it makes there
  (`codex-linux-sandbox`), and below /tmp it makes none and then fails.
- `srt` (npm @anthropic-ai/sandbox-runtime): its cli.js under node, with a settings file that allows one domain. It
  needs bubblewrap, socat and ripgrep on PATH; codex brings a ripgrep, which is used if the machine has none.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from timing import DidNotWork

CODEX_CONFIG = """\
default_permissions = "bench"

[features]
network_proxy = {proxy}

[permissions.bench]
extends = ":workspace"
"""
CODEX_DOMAINS = """
[permissions.bench.network]
enabled = true

[permissions.bench.network.domains]
"allowed.test" = "allow"
"""
SRT_SETTINGS = {
    "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
}


class Start(NamedTuple):
    """How a peer is started: the command goes after `prefix`."""

    prefix: tuple[str, ...]
    env: Mapping[str, str]


def codex(folder: str | None, scratch: str, env: Mapping[str, str], *, proxy: bool) -> Start:
    """`codex sandbox`, with its proxy on or as it comes. Raises DidNotWork if codex is not there."""
    native = _codex_executable(folder)
    home = os.path.join(scratch, "codex-proxy" if proxy else "codex")
    os.mkdir(home, 0o700)
    with open(os.path.join(home, "config.toml"), "w", encoding="utf-8") as file:
        file.write(CODEX_CONFIG.format(proxy=str(proxy).lower()) + (CODEX_DOMAINS if proxy else ""))
    return Start((native, "sandbox", "-P", "bench", "--"), {**env, "CODEX_HOME": home})


def srt(
    folder: str | None, scratch: str, env: Mapping[str, str], *, domains: Sequence[str] = ("allowed.test",)
) -> Start:
    """`srt` with these domains allowed. Raises DidNotWork if it, or node, is not there."""
    script = _installed(folder, "srt", "@anthropic-ai/sandbox-runtime/dist/cli.js")
    node = shutil.which("node")
    if node is None:
        raise DidNotWork("node not found on PATH")
    settings = os.path.join(scratch, "srt-settings.json")
    with open(settings, "w", encoding="utf-8") as file:
        json.dump({**SRT_SETTINGS, "network": {"allowedDomains": [*domains], "deniedDomains": []}}, file)
    path = env.get("PATH", os.defpath)
    if shutil.which("rg", path=path) is None and (bundled := _native_codex_files(folder, "codex-path")):
        path = f"{path}{os.pathsep}{bundled}"
    return Start((node, script, "--settings", settings, "--"), {**env, "PATH": path})


def _codex_executable(folder: str | None) -> str:
    if native := _native_codex_files(folder, os.path.join("bin", "codex")):
        return native
    found = os.path.realpath(_installed(folder, "codex", "@openai/codex/bin/codex.js"))
    with open(found, "rb") as file:
        if file.read(4) == b"\x7fELF":
            return found
    # The npm shim: its platform's package lies beside it or in its own node_modules.
    package = os.path.dirname(os.path.dirname(found))
    for beside in (os.path.dirname(package), os.path.join(package, "node_modules", "@openai")):
        for native in sorted(glob.glob(os.path.join(glob.escape(beside), "codex-linux-*/vendor/*/bin/codex"))):
            return native
    raise DidNotWork("codex is installed without its native executable")


def _native_codex_files(folder: str | None, below: str) -> str | None:
    if folder is None:
        return None
    pattern = os.path.join(glob.escape(folder), "node_modules/@openai/codex-linux-*/vendor/*", below)
    return next(iter(sorted(glob.glob(pattern))), None)


def _installed(folder: str | None, command: str, module: str) -> str:
    if folder is not None:
        path = os.path.join(folder, "node_modules", module)
        if not os.path.exists(path):
            raise DidNotWork(f"no node_modules/{module} in the folder given with --peers")
        return path
    found = shutil.which(command)
    if found is None:
        raise DidNotWork(f"{command} not found on PATH; --peers names a folder that holds its node_modules")
    return os.path.realpath(found)

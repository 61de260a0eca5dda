"""Hooks: commands of somebody's configuration that run at set moments, and the hash by which one is trusted.

The hash covers the words of the command and the content of every file they name, the system's own programs left out:
what has changed is not what was trusted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256

from doorward.configuration import Configuration
from doorward.gates.known_commands import SYSTEM_FOLDERS
from doorward.named_tuple import NamedTuple
from doorward.programs import which

SESSION_START = "session_start"
BEFORE_EXEC = "before_exec"
AFTER_EXEC = "after_exec"
ON_REFUSAL = "on_refusal"
EVENTS = (SESSION_START, BEFORE_EXEC, AFTER_EXEC, ON_REFUSAL)

_MOST_BYTES = 64 << 20
_SYSTEM = (*SYSTEM_FOLDERS, "/usr/lib", "/lib", "/lib64", "/usr/libexec", "/usr/share")


class Hook(NamedTuple):
    """One hook. `where` names its place in the configuration."""

    event: str
    command: tuple[str, ...]
    timeout_s: float
    where: str

    @property
    def switch(self) -> str:
        """How a reason names it."""
        return f"hooks.{self.event}"


def hooks_of(configuration: Configuration, event: str) -> tuple[Hook, ...]:
    """Those for one moment, in the order of the layers."""
    return tuple(
        Hook(event, tuple(entry.value["command"]), float(entry.value["timeout"]), entry.origin.where)
        for entry in configuration.entries(f"hooks.{event}")
    )


def hook_files(command: tuple[str, ...], folder: str, env: Mapping[str, str]) -> list[str]:
    """The files whose content counts: what the words name from `folder`, and the program where PATH finds it."""
    found = []
    for position, word in enumerate(command):
        path = os.path.join(folder, word)
        if position == 0 and "/" not in word:
            path = which(word, env.get("PATH", os.defpath), folder) or path
        path = os.path.realpath(path)
        if os.path.isfile(path) and not path.startswith(tuple(f"{each}/" for each in _SYSTEM)):
            found.append(path)
    return list(dict.fromkeys(found))


def hook_hash(command: tuple[str, ...], folder: str, env: Mapping[str, str]) -> str:
    """`sha256:` and the hash of the hook as it is now."""
    files = [(path, _digest(path)) for path in hook_files(command, folder, env)]
    text = json.dumps([list(command), files], separators=(",", ":"))
    return f"sha256:{sha256(text.encode('ascii')).hexdigest()}"


def _digest(path: str) -> str:
    digest = sha256()
    try:
        with open(path, "rb") as file:
            digest.update(file.read(_MOST_BYTES))
            digest.update(str(os.fstat(file.fileno()).st_size).encode())
    except OSError as error:
        return f"unreadable: {error.errno}"
    return digest.hexdigest()

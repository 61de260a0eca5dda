"""Finds the files that git's settings include: one that lies in the workspace is believed like the settings themselves.

Every include counts, whatever the condition of an `includeIf`: a command could bring it about.
"""

from __future__ import annotations

import os
import stat

_CONFIG = 1 << 20
# As many as git follows (git-config(1), Includes: "include depth").
_DEPTH = 10


def included(config: str) -> list[str]:
    """The resolved paths of what the configuration file `config` includes, and of what those include in turn."""
    found: dict[str, None] = {}
    pending = [(config, 0)]
    while pending:
        path, depth = pending.pop()
        directory = os.path.dirname(os.path.realpath(path))
        for value in _paths(_read(path)):
            # resolved as git does it: from the folder of the file that says so
            target = os.path.realpath(os.path.join(directory, os.path.expanduser(value)))
            if target not in found and depth < _DEPTH:
                found[target] = None
                pending.append((target, depth + 1))
    return list(found)


def _paths(text: str) -> list[str]:
    """The values of `path` in the sections `include` and `includeIf` (git-config(1), Syntax)."""
    found: list[str] = []
    inside = False
    for line in text.replace("\\\n", "").split("\n"):
        line = line.strip()
        if line.startswith("["):
            inside = line[1:].lstrip().lower().startswith("include")
            line = line.rpartition("]")[2].strip()  # a setting may follow on the same line
        name, _, value = line.partition("=")
        if inside and name.strip().lower() == "path":
            value = value.strip()
            if value.startswith('"'):
                value = value[1:].partition('"')[0]
            else:
                value = value.partition(" #")[0].partition(" ;")[0].strip()
            found.append(value)
    return found


def _read(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return os.fsdecode(os.read(handle, _CONFIG))
    except OSError:
        return ""
    finally:
        os.close(handle)

"""Which rules files count for a run: the person's own, the trusted project's, and Codex's where that is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from doorward.configuration import Configuration
from doorward.sessions.home import Home

SUFFIX = ".rules"


def rule_folders(configuration: Configuration, home: Home, env: Mapping[str, str]) -> tuple[str, ...]:
    """The folders whose `*.rules` are read, whether they exist or not; a project's only where it is trusted."""
    root = configuration.project_root if configuration.project_trust == "trusted" else ""
    folders = [home.rules]
    if root:
        folders.append(f"{root}/.doorward/rules")
    if configuration.value("policy.import_codex"):
        folders.append(f"{env.get('CODEX_HOME') or os.path.join(env.get('HOME', '/'), '.codex')}/rules")
        if root:
            folders.append(f"{root}/.codex/rules")
    return tuple(folders)


def rule_files(folders: tuple[str, ...]) -> list[str]:
    """Their files in the order they are read: folder by folder, by name. A folder that is not there has none.

    Raises OSError for a folder that cannot be listed.
    """
    return [path for folder in folders for path in _listed(folder)]


def _listed(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in sorted(names):
        if name.endswith(SUFFIX) and not name.startswith("."):
            yield f"{folder}/{name}"

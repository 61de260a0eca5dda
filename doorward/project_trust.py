"""Writes what a person thinks of a project into their own configuration: trusted, untrusted, or nothing.

Trust is kept under one spelling, the real path; entries under other spellings of the same folder are changed with it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from typing import Any

from doorward.configuration_project import repository_of_worktree, trust_of
from doorward.named_tuple import NamedTuple
from doorward.toml_value import with_value, without_value


class Standing(NamedTuple):
    """What holds for a folder: "trusted", "untrusted" or "unknown", and the folder that was named ("" for unknown)."""

    level: str
    root: str


def standing_of(folder: str, text: str) -> Standing:
    """What the configuration `text` says of `folder`."""
    levels = {os.path.realpath(name): level for name, level in _levels(text).items()}
    return Standing(*(trust_of(folder, levels) or ("unknown", "")))


def project_of(folder: str) -> str:
    """The folder that trust in `folder` is kept under: its real path, or the repository of a linked git worktree."""
    real = os.path.realpath(folder)
    return repository_of_worktree(real) or real


def with_level(text: str, folder: str, level: str) -> str:
    """The text in which `folder` is `level`. Raises Uneditable."""
    real = os.path.realpath(folder)
    for key in dict.fromkeys((project_of(folder), real)):
        # the folder itself is named only where something nearer than its repository says otherwise
        if standing_of(folder, text).level != level or key == project_of(folder):
            text = _with_entry(text, key, level)
    return text


def without_level(text: str, folder: str) -> str:
    """The text in which nothing is said of exactly `folder`. Raises Uneditable."""
    keys = {project_of(folder), os.path.realpath(folder)}
    for name in _levels(text):
        if os.path.realpath(name) in keys:
            text = without_value(text, ("projects", name, "trust_level"))
    return text


def levels(text: str) -> dict[str, str]:
    """Every folder that something is said of, as it is spelled, and what."""
    return _levels(text)


def _with_entry(text: str, key: str, level: str) -> str:
    spelled = [name for name in _levels(text) if os.path.realpath(name) == key]
    for name in spelled or [key]:
        text = with_value(text, ("projects", name, "trust_level"), level)
    return text


def _levels(text: str) -> dict[str, str]:
    document: Mapping[str, Any] = tomllib.loads(text)
    projects = document.get("projects", {})
    return {
        name: table["trust_level"]
        for name, table in (projects.items() if isinstance(projects, dict) else ())
        if isinstance(table, dict) and isinstance(table.get("trust_level"), str)
    }

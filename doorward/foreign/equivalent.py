"""What a foreign settings file comes to: configuration of doorward's own, and what has no equivalent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from doorward.allowlists.rule import MalformedRule, Origin, parse_rule
from doorward.named_tuple import NamedTuple

ARRAYS = (
    "network.allow",
    "network.deny",
    "filesystem.write",
    "filesystem.read_only",
    "filesystem.deny_read",
    "filesystem.allow_unix",
    "env.pass",
)


class UnreadableSettings(Exception):
    """The file is not what it should be; the message is one plain clause."""


class Left(NamedTuple):
    """One setting without an equivalent: where it stands in the file, and one plain clause about why."""

    where: str
    why: str


class Equivalent:
    """Filled by an importer. `values` are single keys, `arrays` lists by key, `rules` lines of a policy rules file,
    `left` what has no equivalent, `notices` what a person should know besides."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], str | bool] = {}
        self.arrays: dict[str, list[str]] = {name: [] for name in ARRAYS}
        self.rules: list[str] = []
        self.left: list[Left] = []
        self.notices: list[str] = []

    def set(self, key: str, value: str | bool, *names: str) -> None:
        """Set a key; `names` fill its stars in order."""
        wildcards = iter(names)
        self.values[tuple(next(wildcards) if part == "*" else part for part in key.split("."))] = value

    def no(self, where: str, why: str) -> None:
        """Name what has no equivalent."""
        self.left.append(Left(where, why))

    def host(self, effect: str, text: object, where: str) -> None:
        """A rule for a host, if doorward reads it as one."""
        if not isinstance(text, str):
            self.no(where, "is no text")
            return
        try:
            rule = parse_rule(text, "deny" if effect == "deny" else "allow", Origin("file", where))
        except MalformedRule as error:
            meant = f"; {error.suggestion} may be meant" if error.suggestion else ""
            self.no(f"{where}: {text}", f"is no rule here: {error.problem}{meant}")
            return
        self._append(f"network.{effect}", rule.text)

    def path(self, key: str, text: object, where: str) -> None:
        """A path or glob for one of the filesystem arrays."""
        if isinstance(text, Mapping) and isinstance(text.get("path"), str):
            text = text["path"]
        if isinstance(text, str) and text and "\0" not in text:
            self._append(key, text)
        else:
            self.no(where, "is no path")

    def prefix_rule(self, words: Iterable[str], decision: str) -> None:
        """A policy rule about commands that begin with these words (`allow`, `prompt` or `forbidden`)."""
        import json  # Starlark's strings are JSON's, for what a command may hold

        pattern = ", ".join(json.dumps(word, ensure_ascii=False) for word in words)
        line = f'prefix_rule(pattern = [{pattern}], decision = "{decision}")'
        if line not in self.rules:
            self.rules.append(line)

    def _append(self, key: str, entry: str) -> None:
        if entry not in self.arrays[key]:
            self.arrays[key].append(entry)


def listed(table: Mapping[str, Any], key: str, where: str, equivalent: Equivalent) -> list[Any]:
    """The list at `key`, [] where it is not set; anything else is named as left."""
    value = table.get(key)
    if value is None:
        return []
    if isinstance(value, list):
        return value
    equivalent.no(f"{where}.{key}".lstrip("."), "is no list")
    return []


def subtable(table: Mapping[str, Any], key: str, where: str, equivalent: Equivalent) -> Mapping[str, Any]:
    """The table at `key`, {} where it is not set; anything else is named as left."""
    value = table.get(key)
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    equivalent.no(f"{where}.{key}".lstrip("."), "is no table")
    return {}


def name_rest(table: Mapping[str, Any], known: Iterable[str], where: str, equivalent: Equivalent) -> None:
    """Name every key that is set, means something, and was not taken over."""
    for key in sorted(table.keys() - set(known)):
        if table[key] not in (None, False, [], {}, ""):
            equivalent.no(f"{where}.{key}".lstrip("."), "has no equivalent")

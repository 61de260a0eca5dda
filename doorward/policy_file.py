"""Reads a policy to be tried: a file like `config.toml`, one of its keys as KEY=VALUE, or a file of exec rules."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping

from doorward.configuration_schema import KEY, Kind
from doorward.errors import UsageError
from doorward.gates.policy_rules import Policy
from doorward.named_tuple import NamedTuple
from doorward.sessions.home import Home

_TABLES = frozenset(name for name, key in KEY.items() if key.kind is Kind.ADDRESSES)


class OtherPolicy(NamedTuple):
    """`keys` maps dotted configuration keys to values, `rules` are the exec rules that hold (None: none)."""

    keys: Mapping[str, object]
    rules: Policy | None


def read_policy(text: str, home: Home) -> OtherPolicy:
    """From a file, KEY=VALUE, or the name of a profile. A `.rules` file takes the place of the home's own rules, which
    hold otherwise. Whether the keys make sense is for whoever lays them over others. Raises UsageError."""
    from doorward.policy_loading import load_policy, policy_from

    profile = f"{home.path}/profiles/{text}.toml"
    if "/" not in text and not os.path.exists(text) and os.path.exists(profile):
        text = profile
    if text.endswith(".rules"):
        return OtherPolicy({}, policy_from([text], None))
    return OtherPolicy(_keys(text), load_policy([home.rules], home))


def _keys(text: str) -> dict[str, object]:
    if not os.path.exists(text) and "=" in text:
        name, _, value = text.partition("=")
        source, document = text, f"{name} = {value}"
    else:
        source = text
        try:
            with open(text, encoding="utf-8") as file:
                document = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise UsageError(f"doorward replay: {text} cannot be read: {reason}") from None
    try:
        parsed = tomllib.loads(document)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"doorward replay: {source} is not TOML: {error}") from None
    return dict(_dotted(parsed, ()))


def _dotted(table: Mapping[str, object], path: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        key = ".".join((*path, name))
        if isinstance(value, dict) and key not in _TABLES:
            yield from _dotted(value, (*path, name))
        else:
            yield key, value

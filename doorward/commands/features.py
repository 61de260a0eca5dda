"""`doorward features`: the switches there are, each with its stage, and how they are turned."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from doorward.configuration import Configuration, load
from doorward.errors import UsageError
from doorward.gates.features import FEATURES, RENAMED, STAGES
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.own_file import change_own_file, own_home
from doorward.summary import printable
from doorward.working_folder import working_folder

_JSON = Option("json", "one JSON document")
_TABLES = {
    "list": (_JSON,),
    "enable": (Option("stage", "register an application's own feature, which has come so far", "STAGE"), _JSON),
    "disable": (_JSON,),
}
_USAGE = "doorward features list|enable NAME|disable NAME [options]"
_SUMMARY = "What can be switched on and off for good. For one run: doorward run --enable NAME."
_EXAMPLES = ("doorward features list", "doorward features enable guardian_approval")


def main(args: list[str]) -> int:
    """Run one of the actions; without one, list."""
    action = args[0] if args and not args[0].startswith("-") else "list"
    rest = args[1:] if args and not args[0].startswith("-") else args
    try:
        if action not in _TABLES:
            raise UsageError(f"doorward features: there is no action {action!r}; list, enable or disable")
        parsed = parse(f"features {action}", _TABLES[action], rest)
    except HelpWanted:
        table = tuple({option.name: option for options in _TABLES.values() for option in options}.values())
        sys.stdout.write(help_text(_USAGE, _SUMMARY, table, _EXAMPLES))
        return 0
    if action == "list":
        if parsed.words:
            raise UsageError(f"doorward features list: takes no words, not {parsed.words[0]!r}")
        return _list(as_json=parsed.has("json"))
    if len(parsed.words) != 1:
        raise UsageError(f"doorward features {action}: name one feature; `doorward features list` has them all")
    return _switch(parsed.words[0], action == "enable", parsed.last("stage"), as_json=parsed.has("json"))


def rows(configuration: Configuration) -> list[dict[str, Any]]:
    """Every feature: name, stage, enabled, default, source (where the switch stands) and summary."""
    states = configuration.features()
    known = [(feature.name, feature.stage, feature.default, feature.summary) for feature in FEATURES]
    known += [(name, stage, False, "an application's own") for name, stage in configuration.stages.items()]  # type: ignore[misc]
    found = []
    for name, stage, default, summary in known:
        setting = configuration.values.get(f"features.{name}")
        found.append(
            {
                "name": name,
                "stage": stage,
                "enabled": states[name],
                "default": default,
                "source": "built-in" if setting is None else setting.origin.where,
                "summary": summary,
            }
        )
    return found


def _loaded() -> Configuration:
    return load(own_home().path, working_folder(None), os.environ)


def _list(*, as_json: bool) -> int:
    configuration = _loaded()
    found = rows(configuration)
    for notice in configuration.notices:
        sys.stderr.write(printable(f"doorward: {notice}") + "\n")
    if as_json:
        sys.stdout.write(json.dumps(found) + "\n")
        return 0
    width = max(len(row["name"]) for row in found)
    for row in found:
        state = "on" if row["enabled"] else "off"
        sys.stdout.write(printable(f"{row['name']:<{width}}  {state:<3}  {row['stage']:<17}  {row['summary']}") + "\n")
        if row["source"] != "built-in":
            sys.stdout.write(printable(f"{'':<{width}}       set in {row['source']}") + "\n")
    return 0


def _switch(name: str, on: bool, stage: str, *, as_json: bool) -> int:
    from doorward.toml_value import with_value

    home = own_home()
    configuration = _loaded()
    known = configuration.features()
    now = RENAMED.get(name, name)
    if now != name:
        sys.stderr.write(printable(f"doorward: {name} is now called {now}") + "\n")
    if stage and stage not in STAGES:
        raise UsageError(f"doorward features enable: --stage takes {'|'.join(STAGES)}, not {stage!r}")
    if stage and any(feature.name == now for feature in FEATURES):
        raise UsageError(f"doorward features enable: {now} is doorward's own feature; leave out --stage")
    if now not in known and not stage:
        raise UsageError(_unknown(name, known))
    if "removed" in (stage, configuration.stages.get(now)) and on:
        raise UsageError(f"doorward features enable: {now} has been removed; it can no longer be switched on")

    def change(text: str) -> str:
        if stage:
            text = with_value(text, ("feature_stages", now), stage)
        return with_value(text, ("features", now), on)

    changed = change_own_file(home, change)
    state = "on" if on else "off"
    after = _loaded()
    if as_json:
        (row,) = [row for row in rows(after) if row["name"] == now]
        sys.stdout.write(json.dumps(row) + "\n")
    sys.stderr.write(printable(f"doorward: {now} is {'now ' if changed else ''}{state} in {home.config}") + "\n")
    if after.features()[now] is not on:
        where = after.values[f"features.{now}"].origin.where
        sys.stderr.write(printable(f"doorward: but {where} says otherwise here, and wins") + "\n")
    return 0


def _unknown(name: str, known: dict[str, bool]) -> str:
    import difflib  # only for the error text

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    remedy = (
        f"did you mean {near[0]}?"
        if near
        else f"an application's own is registered with `doorward features enable {name} --stage experimental`"
    )
    return printable(f"doorward features: there is no feature {name!r}; {remedy}")

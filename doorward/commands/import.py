"""`doorward import TOOL FILE`: another sandbox's settings as configuration of doorward's own."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from doorward.errors import EngineError, UsageError
from doorward.foreign.equivalent import Equivalent
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.summary import printable

if TYPE_CHECKING:
    from doorward.sessions.home import Home

TOOLS = {
    "srt": "Anthropic's sandbox-runtime, ~/.srt-settings.json",
    "codex": "Codex, ~/.codex/config.toml",
    "claude-code": "Claude Code, settings.json",
    "fence": "fence, fence.json or fence.jsonc",
    "nono": "nono, a profile",
}
_LARGEST = 4 << 20
_OPTIONS = (
    Option("write", "add it to $DOORWARD_HOME/config.toml; what is set there stays"),
    Option("json", "one JSON document"),
)
_EXAMPLES = ("doorward import srt ~/.srt-settings.json", "doorward import --write claude-code .claude/settings.json")


def main(args: list[str]) -> int:
    """Print (and with --write, write) the equivalent. Raises UsageError, EngineError."""
    try:
        parsed = parse("import", _OPTIONS, args)
    except HelpWanted:
        what = "Print what another sandbox's settings come to here, and name whatever has no equivalent."
        tools = "".join(f"  {name:<12} {said}\n" for name, said in TOOLS.items())
        sys.stdout.write(help_text("doorward import [--write] TOOL FILE", what, _OPTIONS, _EXAMPLES) + f"\n{tools}")
        return 0
    if len(parsed.words) != 2 or parsed.words[0] not in TOOLS:
        raise UsageError(f"doorward import: name a tool ({', '.join(TOOLS)}) and its file")
    tool, path = parsed.words
    found = _importer(tool)(_read(tool, path))
    text = configuration_text(found, f"{tool}: {os.path.basename(path)}")
    if parsed.has("write"):
        written = _write(found, tool)
    else:
        written = []
    if parsed.has("json"):
        document = {
            "configuration": tomllib.loads(text),
            "rules": found.rules,
            "left": [each._asdict() for each in found.left],
            "notices": found.notices,
            "written": written,
        }
        sys.stdout.write(json.dumps(document) + "\n")
        return 0
    if not written:
        sys.stdout.write(text)
        if found.rules:
            lines = [f"$DOORWARD_HOME/rules/{tool}.rules", *found.rules]
            sys.stdout.write("\n" + "".join(f"# {line}\n" for line in lines))
    said = [f"no equivalent: {each.where}: {each.why}" for each in found.left]
    said += [*found.notices, *(f"written: {each}" for each in written)]
    sys.stderr.write("".join(printable(f"doorward: {each}") + "\n" for each in said))
    return 0


def configuration_text(found: Equivalent, origin: str) -> str:
    """The equivalent as TOML."""
    import tomlkit

    document = tomlkit.document()
    document.add(tomlkit.comment(printable(f"imported from {origin}")))
    for path, value in found.values.items():
        _table(document, path[:-1])[path[-1]] = value
    for key, entries in found.arrays.items():
        if entries:
            table, name = key.split(".")
            array = tomlkit.array()
            for entry in entries:
                array.append(entry)
            _table(document, (table,))[name] = array.multiline(len(entries) > 1)
    return tomlkit.dumps(document)


def _table(document: Any, path: tuple[str, ...]) -> Any:
    import tomlkit

    for name in path:
        if name not in document:
            document[name] = tomlkit.table(is_super_table=name == "projects")
        document = document[name]
    return document


def _importer(tool: str) -> Callable[[Mapping[str, Any]], Equivalent]:
    module = __import__(f"doorward.foreign.{tool.replace('-', '_')}", fromlist=["equivalent_of"])
    found: Callable[[Mapping[str, Any]], Equivalent] = module.equivalent_of
    return found


def _read(tool: str, path: str) -> Mapping[str, Any]:
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"doorward import: cannot read {path}: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise UsageError(f"doorward import: {path} is larger than any settings file is")
    try:
        text = data.decode("utf-8-sig")
        value = tomllib.loads(text) if tool == "codex" else _json(text)
    except (ValueError, RecursionError) as error:
        form = "TOML" if tool == "codex" else "JSON"
        raise UsageError(f"doorward import: {path} is not valid {form}: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"doorward import: {path} holds no table of settings")
    return value


def _json(text: str) -> Any:
    """JSON; where it is none, JSON with comments and trailing commas, which several tools take."""
    try:
        return json.loads(text)
    except ValueError:
        import json5  # slow, and only for what is no plain JSON

        return json5.loads(text)


def _write(found: Equivalent, tool: str) -> list[str]:
    """Add what is not there to the person's own configuration. Returns what was written, file by file."""
    from doorward.configuration_file import UnusableFile
    from doorward.sessions.home import Home, StoreError, default_home
    from doorward.toml_edit import Uneditable, change_file

    try:
        home = Home(default_home(os.environ))
        home.ensure()
    except StoreError as error:
        raise EngineError(str(error)) from None
    path = f"{home.path}/config.toml"
    try:
        changed = change_file(path, lambda text: _added(text, found))
    except UnusableFile as error:
        raise UsageError(f"doorward import: {error.problem}") from None
    except Uneditable as error:
        raise UsageError(f"doorward import: {path}: {error}; write the lines in by hand") from None
    written = [path] if changed else []
    return written + (_write_rules(home, found.rules, tool) if found.rules else [])


def _added(text: str, found: Equivalent) -> str:
    from doorward.toml_edit import entries_of, with_added
    from doorward.toml_value import with_value

    there = tomllib.loads(text)
    for path, value in found.values.items():
        node: Any = there
        for name in path:
            node = node.get(name) if isinstance(node, dict) else None
        if node is None:
            text = with_value(text, path, value)
    for key, entries in found.arrays.items():
        table, name = key.split(".")
        missing = [entry for entry in entries if entry not in entries_of(text, table, name)]
        if missing:
            text = with_added(text, table, name, missing)
    return text


def _write_rules(home: Home, rules: list[str], tool: str) -> list[str]:
    from doorward.sessions.home import private_folder
    from doorward.toml_edit import change_file

    folder = f"{home.path}/rules"
    private_folder(folder)
    path = f"{folder}/{tool}.rules"

    def change(text: str) -> str:
        missing = [rule for rule in rules if rule not in text.splitlines()]
        return text + "".join(f"{rule}\n" for rule in missing)

    return [path] if change_file(path, change) else []

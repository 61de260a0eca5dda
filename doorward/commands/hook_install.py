"""`doorward hook install AGENT` and `uninstall`: doorward's hooks into the agent's own settings, and out again."""

from __future__ import annotations

import difflib
import json
import os
import sys

from doorward.agents.answering import this_program
from doorward.agents.hook_settings import HOOKS, others_before
from doorward.agents.settings_file import SettingsFile, settings_path
from doorward.commands.hook import HOOK_OPTIONS, words_of
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.summary import printable
from doorward.working_folder import working_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.allowlists.rule import RuleEffect

_WHERE = (
    Option("project", "in this folder's settings of the agent"),
    Option("user", "in your own settings of the agent, for every project (the default)"),
    Option("dry-run", "show what would change, and change nothing"),
    Option("json", "print one JSON document"),
)
_NEXT = {
    "claude-code": "restart Claude Code; /hooks shows them",
    "codex": "Codex asks you to trust hooks before it runs them: /hooks. Start it with "
    "`--sandbox danger-full-access --ask-for-approval never`: its own sandbox has no room for doorward's, "
    "and doorward confines and asks instead",
}


def main(verb: str, args: list[str]) -> int:
    """Change the settings, or with --dry-run show how."""
    options = (*_WHERE, *HOOK_OPTIONS) if verb == "install" else _WHERE
    name = f"hook {verb}"
    try:
        parsed = parse(name, options, args)
    except HelpWanted:
        usage = f"doorward hook {verb} {'|'.join(HOOKS)} [options]"
        summary = {
            "install": "Set a coding agent up so that its tools go through doorward. The options besides are those\n"
            "that its commands will run with.",
            "uninstall": "Take doorward's hooks out of an agent's settings again.",
        }[verb]
        examples = {"install": "doorward hook install claude-code --allow @npm"}
        sys.stdout.write(help_text(usage, summary, options, (examples.get(verb, "doorward hook uninstall codex"),)))
        return 0
    if len(parsed.words) != 1 or parsed.words[0] not in HOOKS:
        known = ", ".join(HOOKS)
        raise UsageError(
            f"doorward {name}: name one agent: {known}. Any other calls `doorward hook generic`, see docs/agents.md"
        )
    if parsed.has("project") and parsed.has("user"):
        raise UsageError(f"doorward {name}: --project and --user are two files; name one")
    agent = parsed.words[0]
    _check_rules(parsed)
    folder = working_folder(parsed.last("cd") or None) if parsed.has("project") else None
    file = SettingsFile(settings_path(agent, folder, os.environ), agent)
    if verb == "install":
        used = _NAMES | ({"cd"} if folder is not None else set())
        values = {key: value for key, value in parsed.values.items() if key not in used}
        if "cd" in values:
            values["cd"] = (working_folder(parsed.last("cd")),)  # hooks are called in any folder
        own = parsed._replace(values=values)
        text: str | None = file.installed([*this_program(), "hook", agent, *words_of(own)])
    else:
        text = file.uninstalled()
    changed = text != file.before
    if parsed.has("dry-run"):
        _show(file, text, changed, parsed.has("json"))
        return 0
    if changed and text is not None and verb == "install":
        file.install(text)
    elif verb == "uninstall":
        file.uninstall(text)
    if parsed.has("json"):
        sys.stdout.write(json.dumps({"agent": agent, "file": file.path, "changed": changed}) + "\n")
        return 0
    sys.stderr.write(printable(f"doorward: {file.path} {'changed' if changed else 'is that way already'}") + "\n")
    if verb == "install":
        sys.stderr.write(f"doorward: {_NEXT[agent]}\n")
        for command in others_before(text or "", agent):
            sys.stderr.write(printable(f"doorward: another hook stands before tools: {command}; {_OTHERS}") + "\n")
    return 0


_OTHERS = "some versions drop the command doorward hands back then, which it notices after the first one"
_NAMES = {option.name for option in _WHERE}


def _check_rules(parsed: Parsed) -> None:
    """Raises UsageError for a rule that every run would refuse."""
    from doorward.allowlists.rule import MalformedRule, Origin, parse_rule

    effects: tuple[RuleEffect, ...] = ("allow", "deny")
    for effect in effects:
        for entry in parsed.all(effect):
            if entry.startswith("@"):
                continue  # a preset is looked up where it is used
            try:
                parse_rule(entry, effect, Origin("flag", f"--{effect}"))
            except MalformedRule as error:
                raise UsageError(printable(f"doorward: {error}")) from None


def _show(file: SettingsFile, text: str | None, changed: bool, as_json: bool) -> None:
    before, after = file.before or "", text or ""
    if as_json:
        document = {"file": file.path, "changed": changed, "before": file.before, "after": text}
        sys.stdout.write(json.dumps(document) + "\n")
        return
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), file.path if before else os.devnull, file.path, lineterm=""
    )
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))

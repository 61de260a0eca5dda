"""`doorward trust`: say that a project is trusted, that it is not, or nothing."""

from __future__ import annotations

import json
import os
import sys

from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.own_file import change_own_file, own_home
from doorward.project_trust import Standing, levels, project_of, standing_of, with_level, without_level
from doorward.sessions.home import Home
from doorward.summary import printable
from doorward.working_folder import SYSTEM_FOLDERS, SYSTEM_TREES, working_folder

_OPTIONS = (
    Option("untrusted", "mark it as one in which nothing that writes runs unasked"),
    Option("forget", "say nothing about it any more"),
    Option("hooks", "trust every hook that is configured here, as it is now"),
    Option("list", "the folders something is said about"),
    Option("json", "one JSON document"),
)
_USAGE = "doorward trust [PATH] [--untrusted|--forget|--hooks] | --list"
_SUMMARY = "Trust a project (default: this folder) and what lies below it: its own configuration and hooks then count."
_EXAMPLES = ("doorward trust", "doorward trust --untrusted ~/downloads/thing")


def main(args: list[str]) -> int:
    """Change the person's own configuration. Returns 0."""
    try:
        parsed = parse("trust", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(help_text(_USAGE, _SUMMARY, _OPTIONS, _EXAMPLES))
        return 0
    if len(parsed.words) > 1 or (parsed.words and parsed.has("list")):
        raise UsageError("doorward trust: one folder at a time")
    if sum(parsed.has(name) for name in ("untrusted", "forget", "hooks", "list")) > 1:
        raise UsageError("doorward trust: --untrusted, --forget, --hooks and --list exclude each other")
    home = own_home()
    if parsed.has("hooks"):
        return _hooks(home, parsed)
    return _list(home, parsed) if parsed.has("list") else _change(home, parsed)


def _change(home: Home, parsed: Parsed) -> int:
    forget, level = parsed.has("forget"), "untrusted" if parsed.has("untrusted") else "trusted"
    given = parsed.words[0] if parsed.words else None
    # what is gone can still be forgotten
    folder = os.path.realpath(given) if forget and given is not None else working_folder(given)
    folder = os.path.realpath(folder)
    project = project_of(folder)
    if not forget and level == "trusted":
        _check(project)

    def change(text: str) -> str:
        return without_level(text, folder) if forget else with_level(text, folder, level)

    changed = change_own_file(home, change)
    standing = standing_of(folder, _text(home))
    if parsed.has("json"):
        document = {"path": project, "trust_level": standing.level, "root": standing.root or None}
        sys.stdout.write(json.dumps(document) + "\n")
    for line in _told(folder, project, standing, changed, forget):
        sys.stderr.write(printable(f"doorward: {line}") + "\n")
    return 0


def _told(folder: str, project: str, standing: Standing, changed: bool, forget: bool) -> list[str]:
    lines = []
    if project != folder:
        lines.append(f"{folder} is a git worktree of {project}, and counts as that")
    if forget:
        if not changed:
            lines.append(f"nothing was said about {project}")
        inherited = f"; {standing.root} above it makes it {standing.level}" if standing.root else ""
        lines.append(f"{project} is {standing.level}{inherited}")
        return lines
    lines.append(f"{project} is {'now' if changed else 'already'} {standing.level}, and so is what lies below it")
    file = os.path.join(standing.root, ".doorward", "config.toml")
    if standing.level == "trusted" and os.path.lexists(file):
        lines.append(f"from now on {file} counts, the hooks in it too: read it")
    return lines


def _check(project: str) -> None:
    """Some folders hold everything, and trusting one would trust what nobody has looked at."""
    if project in SYSTEM_FOLDERS or f"{project}/".startswith(SYSTEM_TREES):
        raise UsageError(f"doorward trust: {project} is a system folder, no project; name the project's own folder")


def _hooks(home: Home, parsed: Parsed) -> int:
    """Show each hook, then keep its hash."""
    from doorward.approval_memory import keep_hook
    from doorward.configuration import load
    from doorward.hooks import EVENTS, hook_files, hook_hash, hooks_of
    from doorward.sessions.items import command_line

    folder = working_folder(parsed.words[0] if parsed.words else None)
    configuration = load(home.path, folder, os.environ)
    known = configuration.strings("hooks.trusted")
    rows = []
    for hook in (hook for event in EVENTS for hook in hooks_of(configuration, event)):
        digest = hook_hash(hook.command, folder, os.environ)
        files = hook_files(hook.command, folder, os.environ)
        rows.append({"event": hook.event, "argv": list(hook.command), "hash": digest, "files": files})
        state = "trusted already" if digest in known else "now trusted"
        shown = [f"{hook.event}: {command_line(hook.command)}  ({hook.where}, {state})"]
        shown += [f"  as {file} is now" for file in files]
        sys.stderr.write("".join(printable(f"doorward: {line}") + "\n" for line in shown))
        if digest not in known and (why := keep_hook(home, digest)):
            raise UsageError(printable(f"doorward trust: {why}"))
    if not rows:
        sys.stderr.write("doorward: no hook is configured here\n")
    if parsed.has("json"):
        sys.stdout.write(json.dumps(rows) + "\n")
    return 0


def _list(home: Home, parsed: Parsed) -> int:
    found = levels(_text(home))
    if parsed.has("json"):
        rows = [{"path": path, "trust_level": level} for path, level in found.items()]
        sys.stdout.write(json.dumps(rows) + "\n")
        return 0
    for path, level in found.items():
        sys.stdout.write(printable(f"{level:<9}  {path}") + "\n")
    if not found:
        sys.stderr.write("doorward: no project is marked yet\n")
    return 0


def _text(home: Home) -> str:
    from doorward.configuration_file import UnusableFile, read_text

    try:
        return read_text(home.config) or ""
    except UnusableFile as error:
        raise UsageError(f"doorward: {error.problem}") from None

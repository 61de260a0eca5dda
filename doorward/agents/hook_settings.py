"""An agent's settings with doorward's hooks in them, and without: text to text, so that an undo can be exact.

Both agents keep hooks alike: `{"hooks": {EVENT: [{"matcher", "hooks": [{"type": "command", "command", "timeout"}]}]}}`
(Claude Code: `settings.json`; Codex: `hooks.json`). JSON has no comments; the order of keys and the indentation stay.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

from doorward.named_tuple import NamedTuple


class UnusableSettings(Exception):
    """The text is not what the agent would read. One plain clause."""


class Hook(NamedTuple):
    """One entry. `matcher` None: every tool, or an event that has none."""

    event: str
    matcher: str | None
    guards: bool
    """What it does not answer must not pass."""


_WATCHED = "Bash|Write|Edit|MultiEdit|NotebookEdit|WebFetch"

HOOKS = {
    "claude-code": (
        Hook("PreToolUse", "*", True),
        Hook("PostToolUse", _WATCHED, False),
        Hook("PostToolUseFailure", _WATCHED, False),  # a command that does not exit 0 comes here alone
        Hook("UserPromptSubmit", None, False),
    ),
    "codex": (
        Hook("PreToolUse", None, True),
        Hook("PostToolUse", None, False),
        Hook("UserPromptSubmit", None, False),
    ),
}

TIMEOUT_S = 600
"""An answer comes at once, unless a person is asked through the queue. What a hook had no answer to in time Claude Code
lets pass, but for `"onFailure": "block"`, which versions before 2.1.295 do not know and pass over."""

_NO_ANSWER = "doorward gave no answer, so nothing runs"


def command_of(words: Sequence[str], *, guards: bool) -> str:
    """The entry's command. Both agents run it in a shell, and let pass what a hook that fails had no answer to,
    unless it ends with 2 and says something: a doorward that is gone must not open the door."""
    command = shlex.join(words)
    return f"{command} || {{ echo {shlex.quote(_NO_ANSWER)} >&2; exit 2; }}" if guards else command


def is_ours(agent: str, command: object) -> bool:
    """True if an entry with this command was made by `doorward hook install`."""
    pattern = rf"\bdoorward'? hook {re.escape(agent)}(?![\w-])"
    return isinstance(command, str) and re.search(pattern, command) is not None


def with_hooks(text: str, agent: str, words: Sequence[str]) -> str:
    """`text` ("" for no file) with doorward's hooks in the place of those that were there. Raises UnusableSettings."""
    document = _document(text)
    _remove(document, agent)
    hooks = document.setdefault("hooks", {})
    for hook in HOOKS[agent]:
        entry: dict[str, Any] = {} if hook.matcher is None else {"matcher": hook.matcher}
        command = command_of(words, guards=hook.guards)
        entry["hooks"] = [{"type": "command", "command": command, "timeout": TIMEOUT_S}]
        if hook.guards and agent == "claude-code":
            entry["hooks"][0]["onFailure"] = "block"
        hooks.setdefault(hook.event, []).append(entry)
    return _written(document, text)


def without_hooks(text: str, agent: str) -> str:
    """`text` without doorward's hooks; what that leaves empty goes too. Raises UnusableSettings."""
    document = _document(text)
    return _written(document, text) if _remove(document, agent) else text


def words_in(text: str, agent: str) -> list[str]:
    """The command of the entries that are there, as `with_hooks` was given it; [] where there is none."""
    for event in _document(text).get("hooks", {}).values():
        for entry in event:
            for hook in entry.get("hooks", ()):
                if is_ours(agent, command := hook.get("command")):
                    return shlex.split(command.partition(" || {")[0])
    return []


def others_before(text: str, agent: str) -> list[str]:
    """The commands of other hooks that run before tools."""
    entries = _document(text).get("hooks", {}).get("PreToolUse", ())
    found = [hook.get("command") for entry in entries for hook in entry.get("hooks", ())]
    return [command for command in found if isinstance(command, str) and not is_ours(agent, command)]


def _document(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        document = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UnusableSettings(f"it is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise UnusableSettings("it is not a JSON object")
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict):
        raise UnusableSettings('its "hooks" is not an object')
    for name, entries in hooks.items():
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise UnusableSettings(f'its "hooks.{name}" is not a list of objects')
        for entry in entries:
            inner = entry.get("hooks", [])
            if not isinstance(inner, list) or not all(isinstance(each, dict) for each in inner):
                raise UnusableSettings(f'a "hooks" in its "hooks.{name}" is not a list of objects')
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice, and only one of them could be kept")
    return found


def _remove(document: dict[str, Any], agent: str) -> bool:
    changed = False
    hooks = document.get("hooks", {})
    for name, entries in list(hooks.items()):
        for entry in list(entries):
            inner = entry.get("hooks", [])
            kept = [each for each in inner if not is_ours(agent, each.get("command"))]
            if len(kept) == len(inner):
                continue
            changed = True
            if kept:
                entry["hooks"] = kept
            else:
                entries.remove(entry)
        if changed and not entries:
            del hooks[name]
    if changed and not hooks:
        del document["hooks"]
    return changed


def _written(document: dict[str, Any], before: str) -> str:
    """As the old text was indented."""
    found = re.search(r"^([ \t]+)\"", before, re.MULTILINE)
    indent: str | int = found.group(1) if found else 2
    end = "\n" if before.endswith("\n") or not before else ""
    return json.dumps(document, indent=indent, ensure_ascii=False) + end

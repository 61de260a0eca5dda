"""Settings of Claude Code (`settings.json`): its sandbox, and its permission rules.

- `Bash(git push:*)` is a rule about a prefix, as here. `Bash(npm test)` is about one exact command: denied and asked
  about it becomes a prefix, which is stricter; allowed it would become wider, so it is left out.
- `WebFetch(domain:…)` names a host. `Read(…)` under deny hides a path, `Edit(…)` and `Write(…)` under deny make it
  read-only.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from doorward.foreign.equivalent import Equivalent, listed, name_rest, subtable
from doorward.foreign.srt import take_files, take_network

_RULE = re.compile(r"(?P<tool>[A-Za-z_]+)(?:\((?P<what>.*)\))?", re.DOTALL)
_DECISIONS = {"allow": "allow", "ask": "prompt", "deny": "forbidden"}
_PLAIN = re.compile(r"[^*?\[\]$`|&;<>(){}\n]+")
_MODES = {"default": "on-request", "acceptEdits": "on-request", "plan": "untrusted", "dontAsk": "never"}


def equivalent_of(settings: Mapping[str, Any]) -> Equivalent:
    """What the settings come to."""
    found = Equivalent()
    permissions = subtable(settings, "permissions", "", found)
    for effect in ("deny", "ask", "allow"):
        for rule in listed(permissions, effect, "permissions", found):
            _rule(rule, effect, found)
    for folder in listed(permissions, "additionalDirectories", "permissions", found):
        found.path("filesystem.write", folder, "permissions.additionalDirectories")
    mode = permissions.get("defaultMode")
    if mode in _MODES:
        found.set("approval_policy", _MODES[mode])
    elif mode:
        found.no(f"permissions.defaultMode: {mode}", "nothing but the command line skips approvals and the sandbox")
    name_rest(
        permissions, ("allow", "ask", "deny", "additionalDirectories", "defaultMode"), "permissions", found
    )
    sandbox = subtable(settings, "sandbox", "", found)
    take_network(subtable(sandbox, "network", "sandbox", found), "sandbox.network", found)
    take_files(subtable(sandbox, "filesystem", "sandbox", found), "sandbox.filesystem", found)
    for command in listed(sandbox, "excludedCommands", "sandbox", found):
        found.no(f"sandbox.excludedCommands: {command}", "no command runs outside the sandbox by its name")
    name_rest(
        sandbox, ("network", "filesystem", "excludedCommands", "enabled", "autoAllowBashIfSandboxed"), "sandbox", found
    )
    for name in subtable(settings, "env", "", found):
        found.no(f"env.{name}", "variables are not set by configuration; set it where doorward is started")
    if settings.get("hooks"):
        found.no("hooks", "they go on as they are; `doorward hook install claude-code` adds doorward's own")
    return found


def _rule(rule: object, effect: str, found: Equivalent) -> None:
    where = f"permissions.{effect}: {rule}"
    match = _RULE.fullmatch(rule) if isinstance(rule, str) else None
    if match is None:
        found.no(where, "is no permission rule")
        return
    tool, what = match["tool"], match["what"]
    if tool == "Bash" and what:
        _bash(what, effect, where, found)
    elif tool == "WebFetch" and what and what.startswith("domain:") and effect != "ask":
        found.host(effect, what.removeprefix("domain:"), where)
    elif tool == "Read" and what and effect == "deny":
        found.path("filesystem.deny_read", _path(what), where)
    elif tool in ("Edit", "Write", "MultiEdit") and what and effect == "deny":
        found.path("filesystem.read_only", _path(what), where)
    elif tool in ("Edit", "Write", "MultiEdit") and what and effect == "allow" and what.startswith(("/", "~")):
        found.path("filesystem.write", _path(what), where)
    else:
        found.no(where, "doorward has no rule about that tool; it holds what commands do")


def _bash(what: str, effect: str, where: str, found: Equivalent) -> None:
    prefix = what.endswith((":*", " *"))
    text = what[:-2] if prefix else what
    try:
        words = shlex.split(text) if _PLAIN.fullmatch(text) else []
    except ValueError:
        words = []
    if not words:
        found.no(where, "patterns inside a command have no equivalent; rules are about its first words")
    elif not prefix and effect == "allow":
        found.no(where, "it allows one exact command, and a rule about its first words would allow more")
    else:
        found.prefix_rule(words, _DECISIONS[effect])


def _path(text: str) -> str:
    """Theirs to ours: `//x` is absolute there, `/x` is below the settings' project, `./x` and `x` below the folder."""
    if text.startswith("//"):
        return text[1:]
    if text.startswith("/"):
        return text[1:] or "."
    return text.removeprefix("./")

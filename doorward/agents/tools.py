"""What the agents' tools do: run a shell command, write files, connect somewhere; of others nothing is known."""

from __future__ import annotations

from doorward.agents.event import BadEvent, ToolUse, clean, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

WRITING = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
"""Tools that write the file one of their arguments names (code.claude.com/docs, "Tools reference")."""

PATCHING = ("apply_patch",)
"""Codex's: the patch names its files. It is called `apply_patch` in events, also where a matcher says Edit or Write."""

CONNECTING = {"WebFetch": "url"}

_OTHER_SHELLS = ("PowerShell",)
_FOREIGN = "mcp__"
"""What the tools of MCP servers begin with: their arguments mean what the server says."""

_NO_SHELLS = ("Skill", "SlashCommand")
"""Their `command` is a name."""

_FILE_LINES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
"""The lines of a patch that name a file (Codex's apply_patch grammar)."""

_PORTS = {"http": 80, "https": 443}


def tool_use(tool: str, arguments: Mapping[str, Any]) -> ToolUse:
    """What `tool` would do with these arguments. Raises BadEvent where a known tool's arguments are missing."""
    if tool in WRITING:
        return ToolUse(writes=(text_of(arguments, WRITING[tool]),))
    if tool in PATCHING:
        return ToolUse(writes=patched_files(text_of(arguments, "command")))
    if tool in CONNECTING:
        return ToolUse(place=_place(text_of(arguments, CONNECTING[tool])))
    if tool in _OTHER_SHELLS:
        raise BadEvent(f"{tool} commands cannot be run through doorward; use a POSIX shell")
    if tool == "Bash":
        return ToolUse(command=text_of(arguments, "command"))
    # a shell under another name (Monitor, shell, local_shell): better run through doorward than not
    command = arguments.get("command")
    if tool.startswith(_FOREIGN) or tool in _NO_SHELLS or command is None:
        return ToolUse()
    if isinstance(command, str) and command:
        return ToolUse(command=clean(command, "command"))
    raise BadEvent(f"the tool {tool} has a command that is not a text")


def patched_files(patch: str) -> tuple[str, ...]:
    """The files that a patch adds, changes, deletes and moves to. Raises BadEvent where it names none."""
    # as Codex reads it: blanks around a line do not count
    lines = [line.strip() for line in patch.splitlines()]
    found = [line[len(start) :].strip() for line in lines for start in _FILE_LINES if line.startswith(start)]
    if not found or not all(found):
        raise BadEvent("the patch names no file that it would change")
    return tuple(dict.fromkeys(found))


def _place(url: str) -> tuple[str, int]:
    from urllib.parse import urlsplit  # few tool uses connect

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    # WebFetch makes https of http; where it may connect is judged by what was asked for
    if not host or parts.scheme not in _PORTS:
        raise BadEvent(f"{url[:200]!r} is no http or https address")
    return host, _PORTS[parts.scheme] if port is None else port

"""What the agents say, read; what they are answered, in their own formats. Events as their documentation shows them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.agents.event import Answer, BadEvent, Decision, Event, Moment, ToolUse
from doorward.agents.hook_formats import AGENTS, read_event, written
from doorward.agents.tools import patched_files

CLAUDE = {
    "session_id": "abc123",
    "transcript_path": "/home/u/.claude/projects/p/transcript.jsonl",
    "cwd": "/home/u/p",
    "permission_mode": "default",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "npm test", "description": "Run tests", "timeout": 120000, "run_in_background": False},
    "tool_use_id": "toolu_01ABC123",
}
CODEX = {
    "session_id": "01a22a82-3f69-7e31-919c-76eb40ba0156",
    "turn_id": "01a22a82-3f7d-7860-97e5-07f47e23bc7d",
    "transcript_path": None,
    "cwd": "/home/u/p",
    "hook_event_name": "PreToolUse",
    "model": "m",
    "permission_mode": "bypassPermissions",
    "tool_name": "Bash",
    "tool_input": {"command": "echo hello"},
    "tool_use_id": "c1",
}
GENERIC = {"version": 1, "event": "pre-tool-use", "session": "s", "cwd": "/p", "tool": "shell", "command": ["ls", "-l"]}
PATCH = """*** Begin Patch
*** Add File: a/new.txt
+hi
*** Update File: old.py
*** Move to: b/old.py
@@
-x
+y
*** End Patch"""


def test_claude_code() -> None:
    event = read_event("claude-code", CLAUDE)
    assert event[:6] == ("claude-code", Moment.BEFORE, "abc123", "/home/u/p", "Bash", "toolu_01ABC123")
    assert event.use == ToolUse(command="npm test")
    assert event.can_ask
    assert event.reference == "claude-code:abc123"


@pytest.mark.parametrize(
    ("mode", "asks"), [("acceptEdits", True), ("plan", True), ("bypassPermissions", False), ("dontAsk", False)]
)
def test_a_yes_that_nobody_gave_is_none(mode: str, asks: bool) -> None:
    assert read_event("claude-code", CLAUDE | {"permission_mode": mode}).can_ask is asks


def test_codex_cannot_ask() -> None:
    event = read_event("codex", CODEX)
    assert event.use.command == "echo hello"
    assert not event.can_ask


def test_generic() -> None:
    event = read_event("generic", GENERIC | {"can_ask": True})
    assert event.use.command == ("ls", "-l")
    assert event.can_ask
    assert read_event("generic", GENERIC | {"command": "ls"}).use.command == "ls"


@pytest.mark.parametrize(
    ("tool", "arguments", "use"),
    [
        ("Write", {"file_path": "/p/x", "content": ""}, ToolUse(writes=("/p/x",))),
        ("Edit", {"file_path": "x", "old_string": "a", "new_string": "b"}, ToolUse(writes=("x",))),
        ("MultiEdit", {"file_path": "x", "edits": []}, ToolUse(writes=("x",))),
        ("NotebookEdit", {"notebook_path": "/p/n.ipynb"}, ToolUse(writes=("/p/n.ipynb",))),
        ("apply_patch", {"command": PATCH}, ToolUse(writes=("a/new.txt", "old.py", "b/old.py"))),
        ("WebFetch", {"url": "https://b.test/x", "prompt": "?"}, ToolUse(place=("b.test", 443))),
        ("WebFetch", {"url": "http://[::1]:8080/"}, ToolUse(place=("::1", 8080))),
        ("Read", {"file_path": "/etc/passwd"}, ToolUse()),
        ("mcp__shell__exec", {"command": "rm -rf /"}, ToolUse()),
        ("SlashCommand", {"command": "/review"}, ToolUse()),
        ("Monitor", {"command": "tail -f log"}, ToolUse(command="tail -f log")),
    ],
)
def test_what_tools_do(tool: str, arguments: dict[str, Any], use: ToolUse) -> None:
    assert read_event("claude-code", CLAUDE | {"tool_name": tool, "tool_input": arguments}).use == use


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_KEYS = sorted({*CLAUDE, *GENERIC, "command", "writes", "network_to", "text", "prompt", "file_path", "url"})
_VALUES = _JSON | st.sampled_from([*CLAUDE.values(), *GENERIC.values(), "apply_patch", "Write", "PostToolUse"])  # type: ignore[list-item]


@given(agent=st.sampled_from(AGENTS), document=_JSON | st.dictionaries(st.sampled_from(_KEYS), _VALUES))
def test_whatever_it_is_it_is_an_event_or_refused(agent: str, document: object) -> None:
    try:
        event = read_event(agent, document)
    except BadEvent as error:
        assert str(error)
    else:
        assert event.session and event.cwd.startswith("/")


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in CLAUDE.items() if name != key}


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        *(_without(key) for key in ("session_id", "cwd", "hook_event_name", "tool_name", "tool_input")),
        CLAUDE | {"hook_event_name": "PreToolUse2"},
        CLAUDE | {"session_id": 7},
        CLAUDE | {"session_id": "a\nb"},
        CLAUDE | {"session_id": "x" * 201},
        CLAUDE | {"cwd": "relative"},
        CLAUDE | {"cwd": ""},
        CLAUDE | {"tool_input": "ls"},
        CLAUDE | {"tool_input": {}},
        CLAUDE | {"tool_input": {"command": ["ls"]}},
        CLAUDE | {"tool_input": {"command": ""}},
        CLAUDE | {"tool_input": {"command": "a\0b"}},
        CLAUDE | {"tool_input": {"command": "\ud800"}},
        CLAUDE | {"tool_name": "Write", "tool_input": {"path": "/etc/passwd"}},
        CLAUDE | {"tool_name": "WebFetch", "tool_input": {"url": "file:///etc/passwd"}},
        CLAUDE | {"tool_name": "WebFetch", "tool_input": {"url": "https://b.test:99999/"}},
        CLAUDE | {"tool_name": "PowerShell", "tool_input": {"command": "ls"}},
        CLAUDE | {"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch\n*** End Patch"}},
        CLAUDE | {"tool_name": "Monitor", "tool_input": {"command": ["ls"]}},
    ],
)
def test_an_event_that_cannot_be_judged(document: object) -> None:
    with pytest.raises(BadEvent):
        read_event("claude-code", document)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": True},
        {"version": "1"},
        {"event": "PreToolUse"},
        {"command": []},
        {"command": [""]},
        {"command": ["a\0"]},
        {"writes": ["x"]},
        {"can_ask": "yes"},
    ],
)
def test_a_generic_event_that_cannot_be_judged(change: dict[str, Any]) -> None:
    with pytest.raises(BadEvent):
        read_event("generic", GENERIC | change)


def test_a_patch_is_read_as_codex_reads_it() -> None:
    assert patched_files("*** Begin Patch\n  *** Delete File: x \n*** End Patch\n") == ("x",)


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_an_allow_is_the_whole_input_with_another_command(agent: str) -> None:
    event = read_event(agent, CLAUDE)
    answer = json.loads(written(agent, event, Answer(Decision.ALLOW, "", ("doorward", "run", "--", "sh", "-c", "a b"))))
    assert answer == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": CLAUDE["tool_input"] | {"command": "doorward run -- sh -c 'a b'"},  # type: ignore[operator]
        }
    }


def test_a_deny_has_its_reason_also_without_an_event() -> None:
    answer = json.loads(written("codex", None, Answer(Decision.DENY, "why")))["hookSpecificOutput"]
    assert answer == {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "why"
    }  # fmt: skip


def test_no_opinion_is_no_output_but_for_the_generic_format() -> None:
    event = Event("generic", Moment.BEFORE, "s", "/p")
    assert written("claude-code", event, Answer(Decision.PASS)) == ""
    assert json.loads(written("generic", event, Answer(Decision.PASS))) == {
        "version": 1, "decision": "pass", "session": "generic:s"
    }  # fmt: skip

"""The hook formats of Claude Code and Codex, which differ in few things, and doorward's own for every other agent.

Sources: Claude Code, "Hooks reference" (code.claude.com/docs/en/hooks); Codex, "Hooks"
(developers.openai.com/codex/hooks) and the schemas of codex 0.171, which refuses a plain `allow`, `ask`, and a deny
without a reason.
"""

from __future__ import annotations

from doorward.agents.event import (
    Answer,
    BadEvent,
    Decision,
    Event,
    Moment,
    ToolUse,
    clean,
    folder_of,
    session_of,
    text_of,
)
from doorward.agents.tools import tool_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

AGENTS = ("claude-code", "codex", "generic")
GENERIC_VERSION = 1
"""Of the generic format. An event with another number is one nobody can judge."""

_UNASKED = ("bypassPermissions", "dontAsk")
"""Modes in which Claude Code asks nobody: a yes would be nobody's."""

_MOMENTS = {
    "PreToolUse": Moment.BEFORE,
    "PostToolUse": Moment.AFTER,
    "PostToolUseFailure": Moment.AFTER,
    "UserPromptSubmit": Moment.PROMPT,
}


def read_event(agent: str, document: object) -> Event:
    """The event of one document of an agent's. Raises BadEvent."""
    if not isinstance(document, dict):
        raise BadEvent("the event is not a JSON object")
    return _generic(document) if agent == "generic" else _hook(agent, document)


def _hook(agent: str, document: Mapping[str, Any]) -> Event:
    name = text_of(document, "hook_event_name")
    if name not in _MOMENTS:
        raise BadEvent(f"doorward does not know the event {name[:80]!r}")
    moment = _MOMENTS[name]
    event = Event(agent, moment, session_of(document, "session_id"), folder_of(document, "cwd"))
    if moment is Moment.PROMPT:
        return event._replace(text=text_of(document, "prompt"))
    tool, arguments = text_of(document, "tool_name"), document.get("tool_input")
    if not isinstance(arguments, dict):
        raise BadEvent("'tool_input' is not an object")
    call = document.get("tool_use_id")
    return event._replace(
        tool=tool,
        call=call if isinstance(call, str) else "",
        tool_input=arguments,
        use=tool_use(tool, arguments) if moment is Moment.BEFORE else _used(tool, arguments),
        can_ask=agent == "claude-code" and document.get("permission_mode") not in _UNASKED,
        failed=name == "PostToolUseFailure",
        planning=document.get("permission_mode") == "plan",
        output=document.get("tool_response", document.get("error")),
    )


def _used(tool: str, arguments: Mapping[str, Any]) -> ToolUse:
    """Of a tool that was used already: what cannot be told is nothing to refuse."""
    try:
        return tool_use(tool, arguments)
    except BadEvent:
        return ToolUse()


def _generic(document: Mapping[str, Any]) -> Event:
    version = document.get("version")
    if version != GENERIC_VERSION or isinstance(version, bool):
        raise BadEvent(f"the event's version is {version!r}; doorward reads {GENERIC_VERSION}")
    name = text_of(document, "event")
    if name not in list(Moment):
        raise BadEvent(f"doorward does not know the event {name[:80]!r}")
    event = Event("generic", Moment(name), session_of(document, "session"), folder_of(document, "cwd"))
    if event.moment is Moment.PROMPT:
        return event._replace(text=text_of(document, "text"))
    call, can_ask = document.get("call"), document.get("can_ask", False)
    if not isinstance(can_ask, bool):
        raise BadEvent("'can_ask' is neither true nor false")
    return event._replace(
        tool=text_of(document, "tool"),
        call=call if isinstance(call, str) else "",
        tool_input={key: document[key] for key in ("command", "writes", "network_to") if key in document},
        use=_generic_use(document),
        can_ask=can_ask,
        output=document.get("output"),
    )


def _generic_use(document: Mapping[str, Any]) -> ToolUse:
    given = [key for key in ("command", "writes", "network_to") if key in document]
    if len(given) > 1:
        raise BadEvent(f"the event has {' and '.join(given)}; one tool use is one of them")
    if not given:
        return ToolUse()
    value = document[given[0]]
    if given[0] == "command" and isinstance(value, str) and value:
        return ToolUse(command=clean(value, "command"))
    if given[0] == "network_to":
        host, _, port = (value if isinstance(value, str) else "").rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise BadEvent("'network_to' is HOST:PORT")
        return ToolUse(place=(host.removeprefix("[").removesuffix("]"), int(port)))
    if not isinstance(value, list) or not value or not all(isinstance(each, str) and each for each in value):
        raise BadEvent(f"{given[0]!r} is a list of texts that are not empty")
    words = tuple(clean(word, given[0]) for word in value)
    return ToolUse(command=words) if given[0] == "command" else ToolUse(writes=words)


def written(agent: str, event: Event | None, answer: Answer) -> str:
    """What is printed for the agent, "" for nothing. `event` is None where it could not be read."""
    from doorward.start_json import dumps

    if agent == "generic":
        document: dict[str, Any] = {"version": GENERIC_VERSION, "decision": str(answer.decision)}
        if answer.reason:
            document["reason"] = answer.reason
        if answer.command is not None:
            document["command"] = list(answer.command)
        if event is not None:
            document["session"] = event.reference
        return dumps(document) + "\n"
    if answer.decision is Decision.PASS:
        return ""
    if event is not None and event.moment is not Moment.BEFORE:
        # too late to refuse: the model reads the reason, and so does the person
        return dumps({"decision": "block", "reason": answer.reason, "systemMessage": answer.reason}) + "\n"
    specific: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": str(answer.decision)}
    if answer.reason:
        specific["permissionDecisionReason"] = answer.reason
    if answer.command is not None and event is not None:
        from doorward.sessions.items import command_line

        specific["updatedInput"] = {**event.tool_input, "command": command_line(answer.command)}
    return dumps({"hookSpecificOutput": specific}) + "\n"

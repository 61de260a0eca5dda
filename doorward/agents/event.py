"""What a hook is told, whatever the agent: a tool is about to be used, was used, or a person said something."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class BadEvent(Exception):
    """An event that cannot be judged: the tool is not used. The text is one plain sentence."""


class Moment(StrEnum):
    """When the agent calls its hook."""

    BEFORE = "pre-tool-use"
    AFTER = "post-tool-use"
    PROMPT = "prompt"


class ToolUse(NamedTuple):
    """What a tool is about to do. At most one of the three is there; none of them: a tool doorward has no opinion on.

    `command` is what a shell would run: its text, or words. `writes` are paths as the agent spelled them, `place` is
    the (host, port) that a tool of the agent's own connects to.
    """

    command: str | tuple[str, ...] | None = None
    writes: tuple[str, ...] = ()
    place: tuple[str, int] | None = None


class Event(NamedTuple):
    """`session` is the agent's own name for its session, `cwd` absolute, `tool_input` the tool's arguments as given.
    `can_ask`: the agent asks its person when told to. `failed`: the tool did not work. `planning`: the agent is to
    change nothing yet. `output` is what came of a tool's use, `text` what a person said.
    """

    agent: str
    moment: Moment
    session: str
    cwd: str
    tool: str = ""
    call: str = ""
    tool_input: Mapping[str, Any] = {}
    use: ToolUse = ToolUse()
    can_ask: bool = False
    planning: bool = False
    failed: bool = False
    output: Any = None
    text: str = ""

    @property
    def reference(self) -> str:
        """What the session is called in doorward: `codex:01a2…`."""
        return f"{self.agent}:{self.session}"


class Decision(StrEnum):
    """What the agent is told."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    PASS = "pass"
    """No opinion: the agent goes on as if there were no hook."""


class Answer(NamedTuple):
    """`command` replaces the shell command (words; ALLOW and ASK of a shell command only)."""

    decision: Decision
    reason: str = ""
    command: tuple[str, ...] | None = None


_SESSION_LENGTH = 200


def text_of(document: Mapping[str, Any], key: str) -> str:
    """A text that has to be there. Raises BadEvent."""
    value = document.get(key)
    if not isinstance(value, str) or not value:
        raise BadEvent(f"the event has no text {key!r}" if value is None else f"{key!r} is not a text")
    return clean(value, key)


def clean(value: str, key: str) -> str:
    """`value`, which can be a word of a command line. Raises BadEvent."""
    if "\0" in value:
        raise BadEvent(f"{key!r} holds a NUL byte")
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise BadEvent(f"{key!r} holds half a character (a lone surrogate)") from None
    return value


def session_of(document: Mapping[str, Any], key: str) -> str:
    """The agent's name for its session. Raises BadEvent."""
    value = text_of(document, key)
    if len(value) > _SESSION_LENGTH or not value.isprintable() or value != value.strip():
        raise BadEvent(f"{key!r} is no name of a session: {_SESSION_LENGTH} printable characters at most")
    return value


def folder_of(document: Mapping[str, Any], key: str) -> str:
    """The working folder, absolute. Raises BadEvent."""
    value = text_of(document, key)
    if not value.startswith("/"):
        raise BadEvent(f"{key!r} is not an absolute path")
    return value

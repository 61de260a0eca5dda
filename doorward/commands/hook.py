"""`doorward hook AGENT`: answers one event of a coding agent. `install` and `uninstall` edit the agent's settings.

An answer is wanted before every tool the agent uses, so its time counts: nothing is imported that it does not need.
Whatever goes wrong, the tool is not used.
"""

from __future__ import annotations

import os
import sys

from doorward.agents.event import Answer, BadEvent, Decision, Event, Moment
from doorward.agents.hook_formats import AGENTS, read_event, written
from doorward.commands.run_options import POLICY_OPTIONS, opening_of
from doorward.errors import EngineError, UsageError
from doorward.options import HelpWanted, Parsed, help_text, parse

LARGEST_EVENT = 8 << 20
"""Bytes."""

HOOK_OPTIONS = tuple(option for option in POLICY_OPTIONS if option.name != "user")
_USAGE = f"doorward hook {'|'.join(AGENTS)} [options]"
_SUMMARY = (
    "Answer an event of a coding agent, read from standard input, in that agent's own format.\n"
    "`doorward hook install AGENT` sets it up: see doorward hook install --help."
)


def main(args: list[str]) -> int:
    """Answer one event. The exit status is 0 whatever the answer: it is on standard output."""
    import gc

    gc.disable()  # one short-lived process
    if args and args[0] in ("install", "uninstall"):
        from doorward.commands import hook_install

        return hook_install.main(args[0], args[1:])
    try:
        parsed = parse("hook", HOOK_OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(help_text(_USAGE, _SUMMARY, HOOK_OPTIONS, ("doorward hook codex < event.json",)))
        return 0
    if len(parsed.words) != 1 or parsed.words[0] not in AGENTS:
        raise UsageError(f"doorward hook: name one agent: {', '.join(AGENTS)}")
    return _answer(parsed.words[0], parsed)


def _answer(agent: str, parsed: Parsed) -> int:
    event: Event | None = None
    try:
        event = read_event(agent, _document(_standard_input()))
        given = _judged(event, parsed)
    except Exception as error:
        if isinstance(error, BadEvent | UsageError | EngineError):
            text = str(error).removeprefix("doorward: ")
        else:  # a fault of ours must not let anything pass
            text = f"a fault of its own ({type(error).__name__}: {error}); nothing runs"
        if event is not None and event.moment is not Moment.BEFORE:
            # nothing waits to be allowed: what could not be recorded is told, and the agent goes on
            sys.stderr.write(f"doorward: {text}\n")
            return 1
        given = Answer(Decision.DENY, f"doorward: {text}")
    sys.stdout.write(written(agent, event, given))
    return 0


def _judged(event: Event, parsed: Parsed) -> Answer:
    from doorward.agents.answering import answer

    options = opening_of("hook", parsed) | {"interactive": False}
    return answer(event, options, words_of(parsed), os.environ)


def words_of(parsed: Parsed) -> list[str]:
    """The options as they were given."""
    valued = {option.name for option in HOOK_OPTIONS if option.value}
    return [
        f"--{name}={value}" if name in valued else f"--{name}"
        for name, values in parsed.values.items()
        for value in values
    ]


def _standard_input() -> bytes:
    """All of it up to the limit; the rest is read too, for the agent would take a broken pipe for a broken hook.

    Raises BadEvent.
    """
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(0, 1 << 20):
        size += len(piece)
        if size <= LARGEST_EVENT:
            pieces.append(piece)
    if size > LARGEST_EVENT:
        raise BadEvent(f"the event has {size} bytes, and doorward reads {LARGEST_EVENT} at most")
    return b"".join(pieces)


def _document(data: bytes) -> object:
    from doorward.start_json import loads

    try:
        return loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise BadEvent("the event is not UTF-8") from None
    except (ValueError, RecursionError, SystemError):  # the last is what the accelerator makes of a cut-off text
        raise BadEvent("the event is not valid JSON") from None

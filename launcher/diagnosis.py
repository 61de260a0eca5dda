"""Turns what bubblewrap or a step of the set-up says into one sentence and the exact remedy. Pure."""

import errno
import os
import re
from collections.abc import Container

from doorward.launcher.bubblewrap import INSTALL
from doorward.launcher.command_check import failure_of_exec
from doorward.launcher.interface import LaunchFailure
from doorward.launcher.mounts import MountPlan
from doorward.named_tuple import NamedTuple

_DOCTOR = "Run doorward doctor."


class Facts(NamedTuple):
    """What the machine says about itself; None where it does not say."""

    apparmor_restricts: bool = False  # kernel.apparmor_restrict_unprivileged_userns
    userns_clone: bool = True  # kernel.unprivileged_userns_clone (Debian's)
    max_user_namespaces: int | None = None
    sandboxed: bool = False  # this process already has no_new_privs and a seccomp filter
    container: bool = False


class Explanation(NamedTuple):
    """One diagnosis."""

    sentence: str
    remedy: str


def read_facts() -> Facts:
    """Reads /proc and /run for the reasons a kernel refuses namespaces."""
    status = _read("/proc/self/status")
    limit = _read("/proc/sys/user/max_user_namespaces").strip()
    return Facts(
        apparmor_restricts=_read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").strip() == "1",
        userns_clone=_read("/proc/sys/kernel/unprivileged_userns_clone").strip() != "0",
        max_user_namespaces=int(limit) if limit.isdigit() else None,
        sandboxed=re.search(r"^NoNewPrivs:\s*1$", status, re.M) is not None
        and re.search(r"^Seccomp:\s*2$", status, re.M) is not None,
        container=os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"),
    )


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""


def explain_namespaces(facts: Facts) -> Explanation:
    """Why no user namespace can be made here."""
    if facts.sandboxed:
        return Explanation(
            "No sandbox can be made here: this process already runs inside one.",
            "Run doorward outside, or run the command directly.",
        )
    if facts.apparmor_restricts:
        return Explanation(
            "AppArmor keeps ordinary users from making user namespaces "
            "(kernel.apparmor_restrict_unprivileged_userns = 1).",
            "Give bubblewrap a profile: sudo apt install apparmor-profiles && "
            "sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && "
            "sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict; "
            "or lift it: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0.",
        )
    if not facts.userns_clone:
        return Explanation(
            "The kernel does not let ordinary users make user namespaces (kernel.unprivileged_userns_clone = 0).",
            "sudo sysctl kernel.unprivileged_userns_clone=1",
        )
    if facts.max_user_namespaces == 0:
        return Explanation(
            "User namespaces are switched off (user.max_user_namespaces = 0).",
            "sudo sysctl user.max_user_namespaces=15000",
        )
    if facts.container:
        return Explanation(
            "The container this runs in does not let it make user namespaces.",
            "Start the container with a seccomp profile that allows unshare, mount and pivot_root "
            "(docker run --security-opt seccomp=PROFILE.json; podman the same).",
        )
    return Explanation(
        "The kernel refuses a new user namespace.",
        "Check user.max_user_namespaces and the security modules (dmesg names the one that refused).",
    )


def _proc(facts: Facts) -> Explanation:
    return Explanation(
        "A fresh /proc cannot be mounted: the container this runs in hides parts of its own.",
        "docker run --security-opt systempaths=unconfined (podman: --security-opt unmask=ALL), "
        "or --require best-effort, which shows the container's /proc.",
    )


def _setuid(facts: Facts) -> Explanation:
    return Explanation(
        "This bubblewrap is built or installed for setuid use, which cannot do what is needed here.",
        "Install the distribution's plain build (chmod u-s on bwrap, no file capabilities), or "
        "pip install 'doorward[bundled]'.",
    )


def _propagation(facts: Facts) -> Explanation:
    if facts.apparmor_restricts:
        return explain_namespaces(facts)
    return Explanation(
        "The machine does not let a sandbox detach its mounts from the host's (mount propagation).",
        "In a container: docker run --security-opt apparmor=unconfined, with a seccomp profile that allows mount.",
    )


def _uid_map(facts: Facts) -> Explanation:
    if facts.apparmor_restricts or facts.sandboxed:
        return explain_namespaces(facts)
    return Explanation(
        "The kernel refuses to map this user into a user namespace (uid map).",
        "In a container: docker run --security-opt seccomp=PROFILE.json with a profile that allows it; "
        "else look for a security module in dmesg.",
    )


def _loopback(facts: Facts) -> Explanation:
    if facts.apparmor_restricts:
        return explain_namespaces(facts)
    return Explanation(
        "The sandbox's loopback device cannot be set up (RTM_NEWADDR).",
        "A security module takes the network capability away in user namespaces; dmesg names it.",
    )


# First match wins. The texts are those of bubblewrap 0.5 to 0.11.
_TABLE = (
    (r"nesting depth or /proc/sys/user/max_\S*_namespaces exceeded|ENOSPC", explain_namespaces),
    (r"must be installed setuid|Unexpected setuid user|[Ss]etuid (use|mode)|Unexpected capabilities", _setuid),
    (r"No permissions to creat\w+ (a )?new namespace|[Cc]reating new namespace failed", explain_namespaces),
    (r"setting up [ug]id map|writing to setgroups", _uid_map),
    (r"Failed to make / slave|old root rprivate|setting up newroot bind|pivot_root", _propagation),
    (r"RTM_NEWADDR|RTM_NEWLINK|loopback", _loopback),
    (r"Can't mount proc", _proc),
    (r"unshare user ns|new user namespaces was not disabled|max_user_namespaces", explain_namespaces),
)

_PLAIN = (
    (
        r"Exceeded maximum number of arguments (\d+)",
        "The plan needs more mounts and variables than bubblewrap takes ({0} arguments).",
        "Use fewer --deny-read and --read-only entries, or directories in place of single files.",
    ),
    (r"Unknown option (\S+)", "This bubblewrap is too old: it does not know {0}.", INSTALL),
    (
        r"Can't (?:find source path|get type of source) (.*?): Permission denied$",
        "{0} cannot be reached by the user the command runs as.",
        "Open the way to it for that user, or leave it out of the policy.",
    ),
    (
        r"Can't (?:find source path|get type of source) (.*?)(?:: [A-Z][^:]*)?$",
        "{0} went away while the sandbox was being set up.",
        "Try again.",
    ),
    (
        r"Can't (?:create file at|mkdir|mkdir parents for) (.*?)(?:: [A-Z][^:]*)?$",
        "There is no place to mount {0}: it went away while the sandbox was being set up.",
        "Try again.",
    ),
    (r"PR_SET_SECCOMP", "The kernel refuses the system call filter.", "It needs CONFIG_SECCOMP_FILTER."),
    (
        r"Resource temporarily unavailable|Cannot allocate memory",
        "The machine is out of processes or memory for a sandbox.",
        "Check ulimit -u, the pids limit of the cgroup, free memory, and --memory and --pids if they were given.",
    ),
)


def explain_text(text: str, facts: Facts) -> LaunchFailure | None:
    """What bubblewrap's stderr means; None if it got as far as executing the command."""
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    if re.search(r"execvp .*: .*$", line):
        return None
    directory = re.search(r"Can't chdir to (.*): (.*)$", line)
    if directory:
        return LaunchFailure("directory", f"The working directory {directory[1]}: {directory[2]}.")
    for pattern, explain in _TABLE:
        if re.search(pattern, line):
            return LaunchFailure("sandbox", *explain(facts))
    for pattern, sentence, remedy in _PLAIN:
        found = re.search(pattern, line)
        if found:
            return LaunchFailure("sandbox", sentence.format(*found.groups()), remedy)
    if not line:
        return LaunchFailure("sandbox", "bubblewrap ended without a word.", _DOCTOR)
    return LaunchFailure("sandbox", f"bubblewrap failed: {line}", _DOCTOR)


def went_away(planned: MountPlan, fleeting: Container[str]) -> LaunchFailure:
    """What a sandbox that could not be finished means, where another can be a moment later. None of the `fleeting` was
    in its way."""
    of_the_host = (mount.path for mount in planned.mounts if mount.step.endswith(("bind", "-file", "-directory")))
    gone = next((path for path in of_the_host if path not in fleeting and not os.path.lexists(path)), None)
    if gone is None:
        sentence = "The sandbox could not be set up, as it can be now: something it is made of was gone for a moment."
    else:
        sentence = f"{gone} went away while the sandbox was being set up."
    return LaunchFailure("sandbox", sentence, "Try again.")


def explain_step(
    step: str, number: int, text: str, facts: Facts, *, name: str, path: str, deadline_s: float
) -> LaunchFailure:
    """What a failed step of our own means; `path` is bubblewrap's, `text` an error that was not foreseen."""
    reason = text or os.strerror(number)
    match step:
        case "proc":
            return LaunchFailure("sandbox", *_proc(facts))
        case "identity":
            return LaunchFailure("sandbox", *_uid_map(facts))
        case "namespaces":
            return LaunchFailure("sandbox", *explain_namespaces(facts))
        case "exec":
            return failure_of_exec(name, number)
        case "directory":
            return LaunchFailure("directory", f"The working directory: {reason}.")
        case "silent":
            return LaunchFailure(
                "sandbox", f"{path} gave no sign of life within {deadline_s:g} s and was stopped.", INSTALL
            )
        case "exec bwrap" if number == errno.E2BIG:
            return failure_of_exec(name, number)
        case "exec bwrap":
            return LaunchFailure("sandbox", f"{path} cannot be started: {reason}.", INSTALL)
        case "network" | "join" | "door":
            return LaunchFailure(
                "sandbox", f"The proxy's listeners cannot be opened in the sandbox: {reason}.", _DOCTOR
            )
        case "hide":
            return LaunchFailure(
                "sandbox", "A path that is to be hidden went away while the sandbox was being set up.", "Try again."
            )
        case "stream":
            return LaunchFailure(
                "sandbox",
                f"A file given as standard input cannot be opened through a read-only mount: {reason}.",
                "Pass it through a pipe: cat FILE | doorward run …",
            )
        case "guard":
            return LaunchFailure(
                "sandbox",
                f"The names to protect cannot be written down in doorward's folder: {reason}.",
                "Make $DOORWARD_HOME writable, on a file system that has O_TMPFILE.",
            )
        case "denials":
            return LaunchFailure(
                "sandbox", f"Calls cannot be watched to explain refusals: {reason}.", "Leave out --explain-denials."
            )
        case "limits":
            return LaunchFailure("sandbox", f"The limits of the run cannot be set: {reason}.", _DOCTOR)
        case "scope":
            return LaunchFailure(
                "sandbox", f"Abstract unix sockets cannot be kept out of reach (landlock): {reason}.", _DOCTOR
            )
        case "mounts":
            return LaunchFailure("sandbox", f"The sandbox's own mounts cannot be made: {reason}.", _DOCTOR)
        case _:
            return LaunchFailure("sandbox", f"The sandbox could not be set up ({step}: {reason}).", _DOCTOR)

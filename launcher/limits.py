"""Limits of one run: who holds each of them, and which were reached. Pure but for setting the kernel's own.

- `cpu_time` is of the whole run. The shim adds up the processors' time of its processes and ends the run at the
  limit; RLIMIT_CPU is behind it for a single process that the shim does not reach.
- `memory` and `pids` are of the whole run where a control group can be made for it (cgroups(7), version 2), and the
  group counts what was refused. Elsewhere the kernel's resource limits hold (setrlimit(2)): RLIMIT_DATA for each
  process alone, and RLIMIT_NPROC, which counts the user's processes in the sandbox's own user namespace. They keep no
  record of what they refused, and neither does wait(2), so nobody can say whether they were reached.
- `files` is RLIMIT_NOFILE, of each process alone; nobody counts how often it was reached.
"""

from collections.abc import Mapping

from doorward.launcher.interface import LimitHit, Limits
from doorward.named_tuple import NamedTuple

# bubblewrap and its process 1 stand beside the command in its control group and its user namespace; in the namespace
# also the shim, unless that is root and the command another user's.
OWN_PROCESSES = 2
# Since this kernel RLIMIT_NPROC is counted for each user namespace (user_namespaces(7)).
COUNTED_BY_NAMESPACE = (5, 14)
# RLIMIT_CPU is behind the shim, so it comes later; then SIGXCPU, and SIGKILL this much after it (seconds).
_CPU_GRACE_S = 2


class Measured(NamedTuple):
    """What the shim saw of a run that had limits: whether it ended it for its processor time, and how often its
    control group refused memory and processes."""

    time_used_up: bool = False
    out_of_memory: int = 0
    forks_refused: int = 0


def holders(limits: Limits, *, grouped: frozenset[str]) -> dict[str, str]:
    """Each limit that is set, and what holds it: `cgroup`, `rlimit` or `doorward` (which ends the run)."""
    held = {}
    for name in limits.set_values():
        held[name] = "doorward" if name == "cpu_time" else "cgroup" if name in grouped else "rlimit"
    return held


def set_kernel_limits(limits: Limits, held: Mapping[str, str], *, other_user: bool) -> None:
    """Sets what the kernel holds for this process and all it starts. Raises OSError."""
    import resource  # for runs with limits only

    def lower(kind: int, soft: int, hard: int) -> None:
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))

    if limits.cpu_time is not None:
        seconds = int(limits.cpu_time) + _CPU_GRACE_S
        lower(resource.RLIMIT_CPU, seconds, seconds + _CPU_GRACE_S)
    if limits.memory is not None and held.get("memory") == "rlimit":
        lower(resource.RLIMIT_DATA, limits.memory, limits.memory)
    if limits.pids is not None and held.get("pids") == "rlimit":
        most_processes = limits.pids + OWN_PROCESSES + (0 if other_user else 1)
        lower(resource.RLIMIT_NPROC, most_processes, most_processes)
    if limits.files is not None:
        lower(resource.RLIMIT_NOFILE, limits.files, limits.files)


def limits_hit(limits: Limits, measured: Measured) -> tuple[LimitHit, ...]:
    """Which limits the run reached. Only what is certain: `unseen` names the others."""
    found = []
    if limits.cpu_time is not None and measured.time_used_up:
        message = f"the run used its {limits.cpu_time:g} s of processor time and was ended"
        found.append(LimitHit("cpu_time", limits.cpu_time, "doorward", message))
    if limits.memory is not None and measured.out_of_memory:
        message = f"the run reached its {size_text(limits.memory)} of memory"
        found.append(LimitHit("memory", limits.memory, "cgroup", _refused(message, measured.out_of_memory)))
    if limits.pids is not None and measured.forks_refused:
        message = f"the run reached its {limits.pids} processes and threads"
        found.append(LimitHit("pids", limits.pids, "cgroup", _refused(message, measured.forks_refused)))
    return tuple(found)


def unseen(limits: Limits, held: Mapping[str, str]) -> tuple[str, ...]:
    """Those limits in force of which nobody can tell whether they were reached, in words."""
    words = {
        "memory": f"{size_text(limits.memory or 0)} of memory for each process",
        "pids": f"{limits.pids} processes and threads",
        "files": f"{limits.files} open files for each process",
    }
    return tuple(text for name, text in words.items() if held.get(name) == "rlimit")


def size_text(size: int) -> str:
    """`64 MiB`, `1.5 GiB`."""
    number, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{number:.3g} {unit}"


def _refused(message: str, count: int) -> str:
    return f"{message}, and the kernel refused more {'once' if count == 1 else f'{count} times'}"

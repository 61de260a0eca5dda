"""Decides what holds each limit of a run on this machine; one that nothing would hold is refused, or said."""

import os

from doorward.launcher.cgroups import delegation
from doorward.launcher.interface import SandboxPolicy, SandboxUnavailable
from doorward.launcher.limits import COUNTED_BY_NAMESPACE, holders
from doorward.named_tuple import NamedTuple

_DELEGATE = "start doorward with systemd-run --user --scope, which delegates one"


class Shared(NamedTuple):
    """What holds each limit, below which group the run gets a control group (or ""), and what is weaker than it
    looks."""

    held: dict[str, str]
    cgroup: str
    notices: tuple[str, ...]


def share(policy: SandboxPolicy, *, kernel_uid: int, own_users: bool) -> Shared:
    """Raises SandboxUnavailable under `require = full` where a limit would not hold. `own_users`: the sandbox has a
    user namespace that we make, in which its processes are counted apart from the user's others."""
    limits = policy.limits
    wanted = {name for name in limits.set_values() if name in ("memory", "pids")}
    group = delegation(wanted) if wanted else None
    grouped = frozenset() if group is None else group.controllers
    held = holders(limits, grouped=grouped)
    notices = []
    why = group.why if group is not None and group.why else "no control group with that controller is delegated"
    if held.get("memory") == "rlimit":
        notices.append(
            f"--memory holds for each process, not for all of them together: {why} ({_DELEGATE}). "
            "Files in the private /tmp and /dev/shm are not counted."
        )
    if held.get("pids") == "rlimit" and (lack := _why_not_counted(kernel_uid, own_users)):
        sentence = f"--pids cannot be held: {why}, and {lack}."
        if policy.require == "full":
            raise SandboxUnavailable(sentence, f"{_DELEGATE[0].upper()}{_DELEGATE[1:]}; or leave --pids out.")
        notices.append(sentence)
        del held["pids"]
    return Shared(held, group.parent if group is not None else "", tuple(notices))


def _why_not_counted(kernel_uid: int, own_users: bool) -> str:
    """Why RLIMIT_NPROC would not do, or nothing."""
    if kernel_uid == 0:
        return "the kernel does not limit the number of root's processes (--user NAME would be limited)"
    if not own_users:
        return "without a user namespace of ours the processes you have outside would count too"
    version = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if version < COUNTED_BY_NAMESPACE:
        return "this kernel counts the processes you have outside too"
    return ""

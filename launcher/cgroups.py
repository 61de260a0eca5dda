"""A control group for one run (cgroups(7), version 2): made where the machine delegates one, and always taken back.

The group is a folder below a group that whoever started doorward may write, and whose children have the controllers
that are needed. It is made by the shim and locked as long as it lives; one that nobody has locked was left by a shim
that was killed, and the next run removes it.
"""

import errno
import fcntl
import os
import select
import time
from collections.abc import Iterable

from doorward.launcher.limits import OWN_PROCESSES, Measured
from doorward.named_tuple import NamedTuple

_PREFIX = "doorward-"
_REMOVAL_DEADLINE_S = 2.0
_CONTROLLERS = ("memory", "pids")


class Delegation(NamedTuple):
    """Where groups can be made, and with which of the controllers `memory` and `pids`; without any of them `why` says
    what is missing, in words."""

    parent: str
    controllers: frozenset[str]
    why: str = ""


def delegation(
    wanted: Iterable[str] = _CONTROLLERS, *, mounts: str | None = None, own: str | None = None
) -> Delegation:
    """The nearest group at or above our own that fits, best the one with all that is `wanted`. `mounts` and `own` are
    the texts of /proc/self/mountinfo and /proc/self/cgroup, read here unless given."""
    wanted = frozenset(wanted)
    mount = _mount(_read("/proc/self/mountinfo") if mounts is None else mounts)
    if mount is None:
        return Delegation("", frozenset(), "control groups of version 2 are not mounted here")
    line = next((line for line in (own or _read("/proc/self/cgroup")).split("\n") if line.startswith("0::")), "")
    path = line[3:]
    if not path.startswith("/") or path.startswith("/.."):
        return Delegation("", frozenset(), "our own control group lies outside of what is visible here")
    best = Delegation("", frozenset())
    group = path.rstrip("/")
    writable = False
    while True:
        folder = mount + group
        if os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK):
            writable = True
            there = wanted & frozenset(_read(f"{folder}/cgroup.subtree_control").split())
            if len(there) > len(best.controllers):
                best = Delegation(folder, there)
        if best.controllers == wanted or not group:
            break
        group = group.rpartition("/")[0]
    if best.controllers:
        return best
    if not writable:
        return Delegation("", frozenset(), "no control group is delegated to this user")
    return Delegation("", frozenset(), "no group we may write hands the memory and pids controllers on")


def _mount(table: str) -> str | None:
    for line in table.split("\n"):
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] == "cgroup2":
            return before.split()[4].replace("\\040", " ")
    return None


class Cgroup:
    """The group of one run, from `make` to `remove`."""

    def __init__(self, path: str, handle: int) -> None:
        self.path = path
        self._handle = handle

    @classmethod
    def make(cls, parent: str, *, memory: int | None, pids: int | None) -> "Cgroup":
        """A group with these limits (bytes; processes and threads of the command). Raises OSError."""
        sweep(parent)
        path = f"{parent}/{_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
        os.mkdir(path, 0o755)
        made = cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            fcntl.flock(made._handle, fcntl.LOCK_EX)
            if memory is not None:
                _write(f"{path}/memory.max", memory)
                try:
                    _write(f"{path}/memory.swap.max", 0)
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.EACCES):  # a kernel that does not count swap
                        raise
            if pids is not None:
                _write(f"{path}/pids.max", pids + OWN_PROCESSES)
        except OSError:
            made.remove()
            raise
        return made

    def measured(self, measured: Measured) -> Measured:
        """`measured` with what this group counted."""
        memory, pids = (_counts(f"{self.path}/{name}.events") for name in _CONTROLLERS)
        return measured._replace(
            out_of_memory=max(memory.get("oom_kill", 0), memory.get("oom", 0)), forks_refused=pids.get("max", 0)
        )

    def remove(self) -> None:
        """Kills what is still in it, and takes it away."""
        try:
            os.rmdir(self.path)
        except OSError:
            self._empty()
        os.close(self._handle)

    def _empty(self) -> None:
        try:
            _write(f"{self.path}/cgroup.kill", 1)
            events = os.open(f"{self.path}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        poll = select.poll()
        poll.register(events, select.POLLPRI)
        deadline = time.monotonic() + _REMOVAL_DEADLINE_S
        try:
            while b"populated 1" in os.pread(events, 4096, 0):
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                poll.poll(left * 1000)
            os.rmdir(self.path)
        except OSError:
            pass  # the next run's sweep tries again
        finally:
            os.close(events)


def join(path: str) -> None:
    """Puts this process into the group. Raises OSError."""
    _write(f"{path}/cgroup.procs", 0)


def sweep(parent: str) -> None:
    """Removes groups that killed shims left below `parent`."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        if not name.startswith(_PREFIX):
            continue
        path = f"{parent}/{name}"
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rmdir(path)
        except OSError:
            pass  # in use, or not ours to take
        finally:
            os.close(handle)


def _counts(path: str) -> dict[str, int]:
    pairs = (line.split() for line in _read(path).split("\n"))
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, value: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, str(value).encode())
    finally:
        os.close(handle)

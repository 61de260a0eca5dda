"""What doorward's own processes hold in memory during a quiet run, from /proc/PID/smaps_rollup (proc(5), Linux 4.14).

PSS counts a page shared by n processes as 1/n in each, so the sum over doorward's processes counts what they share
once. Pages that strangers share too (another Python of the same build) are divided among those as well: `private`
is the part that only the measured processes hold, and cannot be lowered by neighbours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import NamedTuple

from timing import DEADLINE_S, DidNotWork


class Memory(NamedTuple):
    """Sums over doorward's processes of one run, in MB of 10^6 bytes; `processes` is how many there were."""

    processes: int
    pss_mb: float
    private_mb: float
    rss_mb: float


def quiet_run(doorward: str, *, seconds: int, env: Mapping[str, str], cwd: str) -> Memory:
    """Run `doorward run -- sleep SECONDS` and read its processes one second after the command has started."""
    process = subprocess.Popen(
        [doorward, "run", "--", "sleep", str(seconds)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=env,
        cwd=cwd,
    )
    try:
        _await_command(process, "sleep")
        time.sleep(1.0)  # quiet: whatever starting up still does is over
        # bubblewrap and the command are other executables; what runs the supervisor's is ours.
        executable = os.readlink(f"/proc/{process.pid}/exe")
        ours = [pid for pid in family(process.pid) if _link(f"/proc/{pid}/exe") == executable]
        readings = [reading(_read(f"/proc/{pid}/smaps_rollup")) for pid in ours]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    pss, private, rss = (sum(each[n] for each in readings) * 1024 / 1e6 for n in range(3))
    return Memory(len(ours), pss, private, rss)


def reading(rollup: str) -> tuple[int, int, int]:
    """Pss, private and Rss of one smaps_rollup text, in KiB. Raises DidNotWork on an empty one."""
    kib: dict[str, int] = {}
    for line in rollup.splitlines():
        name, _, rest = line.partition(":")
        if rest.endswith(" kB"):
            kib[name] = int(rest.split()[0])
    if "Pss" not in kib:
        raise DidNotWork("a process of the run ended, or could not be read, while its memory was summed")
    return kib["Pss"], kib["Private_Clean"] + kib["Private_Dirty"], kib["Rss"]


def family(pid: int) -> list[int]:
    """`pid` and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            # the name in brackets may hold anything; the fields after its last bracket are state, ppid, …
            fields = _read(f"/proc/{entry}/stat").rpartition(")")[2].split()
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry))
    found = [pid]
    for parent in found:
        found += children.get(parent, ())
    return found


def _await_command(process: subprocess.Popen[bytes], name: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DidNotWork(f"doorward run -- {name} ended early with exit status {process.returncode}")
        if any(_read(f"/proc/{pid}/comm").strip() == name for pid in family(process.pid)):
            return
        time.sleep(0.05)
    raise DidNotWork(f"no {name} among the processes of the run after {DEADLINE_S:.0f} s")


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # it ended meanwhile
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""

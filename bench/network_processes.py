"""CPU time and memory of a proxy: the sums over its process tree, without the load generator that may run below it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import memory
from timing import DidNotWork

_TICK = os.sysconf("SC_CLK_TCK")


class Tree(NamedTuple):
    """`root` and all its descendants, without those whose command line begins with `guest` (or has it second, behind
    an interpreter)."""

    root: int
    guest: str

    def members(self) -> list[int]:
        """Their process ids, now."""
        everyone = memory.family(self.root)
        guests = {below for pid in everyone if self._is_guest(pid) for below in memory.family(pid)}
        return [pid for pid in everyone if pid not in guests]

    def cpu_s(self) -> float:
        """User and system time so far, ended children that were waited for included (proc_pid_stat(5))."""
        return sum(ticks(_read(f"/proc/{pid}/stat")) for pid in self.members()) / _TICK

    def pss_kb(self) -> float:
        """Proportional set size in units of 1,000 bytes. Raises DidNotWork where it cannot be read."""
        total = 0
        for pid in self.members():
            try:
                total += memory.reading(_read(f"/proc/{pid}/smaps_rollup").decode())[0]
            except DidNotWork:
                if os.path.exists(f"/proc/{pid}/exe"):
                    raise
        return total * 1.024

    def _is_guest(self, pid: int) -> bool:
        return self.guest in [os.fsdecode(word) for word in _read(f"/proc/{pid}/cmdline").split(b"\0")[:2]]


def ticks(stat: bytes) -> int:
    """utime + stime + cutime + cstime of a /proc/PID/stat; 0 for a process that ended."""
    fields = stat.rpartition(b")")[2].split()
    return sum(map(int, fields[11:15]))


def listening_ports(pid: int) -> list[int]:
    """TCP ports of IPv4 that this very process listens on."""
    sockets = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            sockets.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
    return ports_of(_read(f"/proc/{pid}/net/tcp").decode(), [s[8:-1] for s in sockets if s.startswith("socket:[")])


def ports_of(table: str, inodes: Sequence[str]) -> list[int]:
    """The listening ports in a /proc/net/tcp text that belong to one of these sockets."""
    listening = "0A"  # TCP_LISTEN, include/net/tcp_states.h
    rows = [line.split() for line in table.splitlines()[1:]]
    return [int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == listening and row[9] in inodes]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # it ended meanwhile
        return b""

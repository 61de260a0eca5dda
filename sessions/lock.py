"""One writer a rollout: flock(2) on the rollout file itself, so that nothing is left behind and a crash unlocks."""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def take(descriptor: int) -> bool:
    """Locks the open file for this writer; False when another has it. Never waits.

    The lock belongs to the open file description: a forked child shares it, and it ends when the last copy closes.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(descriptor: int) -> None:
    """Unlocks at once, also where a forked child still holds a copy of the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def holder(found: os.stat_result) -> int | None:
    """The pid that holds a lock on the file, or None: not locked, or not visible from here (another pid namespace,
    a system without `/proc/locks`). Asking takes no lock, so it never gets in a writer's way."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as table:
            return holder_in(table, found)
    except OSError:
        return None


def holder_in(table: Iterable[str], found: os.stat_result) -> int | None:
    """`holder`, given the lines of proc_locks(5): `1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF`."""
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    elsewhere = None
    for row in table:
        fields = row.split()
        if len(fields) < 6 or fields[1] != "FLOCK" or fields[3] != "WRITE" or not fields[4].isdecimal():
            continue
        place, _, inode = fields[5].rpartition(":")
        if inode != str(found.st_ino) or fields[4] == "0":
            continue
        if place == device:
            return int(fields[4])
        # some file systems (btrfs, overlayfs) show another device number here than stat(2) does
        elsewhere = int(fields[4])
    return elsewhere

"""What /proc says of processes (proc(5)), with as few system calls as it takes."""

from __future__ import annotations

import os

_MOST = 4096  # bytes of a file here
_LONGEST_LINE = 64


def read(path: str, size: int = _MOST) -> bytes:
    """The first bytes of a file. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, size)
    finally:
        os.close(file)


def parent_of(process: int) -> int | None:
    """The parent's pid; None where the process is gone."""
    try:
        return int(read(f"/proc/{process}/stat").rpartition(b")")[2].split(None, 2)[1])
    except (OSError, ValueError, IndexError):
        return None


def leader_of(task: int) -> int | None:
    """The process that a thread belongs to, itself for a process; None where it is gone."""
    try:
        # behind the name, in which line breaks are written as two characters: Umask, State, Tgid
        return int(read(f"/proc/{task}/status", 512).split(b"\nTgid:", 1)[1].split(b"\n", 1)[0])
    except (OSError, ValueError, IndexError):
        return None


def children_of(process: int) -> list[int]:
    """In the order of their pids; threads may have children of their own."""
    found: list[int] = []
    try:
        if os.stat(f"/proc/{process}/task").st_nlink == 3:  # `.`, `..` and one thread, which has the process's number
            tasks = [str(process)]
        else:
            tasks = os.listdir(f"/proc/{process}/task")
        for task in tasks:
            children = read(f"/proc/{process}/task/{task}/children")
            if len(children) >= _MOST - 16:  # what a page holds: there may be more
                with open(f"/proc/{process}/task/{task}/children", "rb") as file:
                    children = file.read()
            found += map(int, children.split())
    except OSError:
        pass
    return sorted(found)


def descendants(root: int) -> list[int]:
    """All processes below `root`, the last started first as far as their numbers tell."""
    found: list[int] = []
    left = [root]
    while left:
        children = children_of(left.pop())
        found += children
        left += children
    return sorted(found, reverse=True)


def line_to(process: int, root: int) -> list[int] | None:
    """The process and its parents, up to the child of `root`; None where `root` is not among them."""
    line: list[int] = []
    at: int | None = process
    while at and len(line) < _LONGEST_LINE:
        if at == root:
            return line
        line.append(at)
        at = parent_of(at)
    return None


def last_started() -> int | None:
    """The number that the last task of this pid namespace was given (loadavg's fifth field); None where not told."""
    try:
        return int(read("/proc/loadavg", 64).rpartition(b" ")[2])
    except (OSError, ValueError):
        return None

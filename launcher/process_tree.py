"""Who is whose child, from /proc."""

import os


def children(pid: int) -> list[int]:
    """The children of `pid`, oldest first (proc(5), /proc/pid/task/tid/children)."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(number) for number in file.read().split()]
    except FileNotFoundError:
        pass
    except OSError:
        return []
    # a kernel without CONFIG_PROC_CHILDREN, or `pid` is gone
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # the command name may hold blanks and brackets; the parent is the second field after it
                    if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                        found.append(int(name))
            except (OSError, ValueError, IndexError):
                continue
    return sorted(found)


def first_child(pid: int) -> int:
    """The oldest child of `pid`, 0 if it has none."""
    found = children(pid)
    return found[0] if found else 0

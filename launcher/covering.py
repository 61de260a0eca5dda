"""Covers what is to be hidden, in the run's own mount namespace, before bubblewrap takes its mounts from there.

A socket may go away while it is being covered, and that is nothing to fail for. bubblewrap itself would fail: what it
mounts over and does not find it makes, and says "Can't create file" where it may not. So covers are never its work; it
passes over what is covered already.
"""

from __future__ import annotations

import os

from doorward.launcher import namespaces, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from doorward.launcher.launch import Plan

# A socket may be removed and made again as often as that while it is being hidden.
_ATTEMPTS = 16


class Uncovered(OSError):
    """A path that is to be hidden could not be."""


def make_private() -> None:
    """Mounts the host makes later do not come into this mount namespace, nor ours out of it. Raises OSError."""
    syscalls.mount(None, b"/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)


def cover(plan: Plan) -> None:
    """Lays the plan's masks. Raises Uncovered, and OSError where a mask itself cannot be mounted."""
    for source, targets in plan.masks:
        mask = os.fsencode(source)
        # once, and every further bind inherits it. With all that bubblewrap would add: it passes over what is as
        # it should be, and fails for what it would change and is gone by then
        bind_read_only(mask, syscalls.MS_NOSUID | syscalls.MS_NODEV)
        _hide(mask, targets, plan.fleeting)


def cover_in(pid: int, plan: Plan) -> None:
    """The same in the mount namespace of `pid`, through the user namespace that owns it; the caller stays in both.
    Raises Uncovered, OSError."""
    namespaces.join(pid, "mnt", syscalls.CLONE_NEWNS)
    make_private()
    cover(plan)


def bind_read_only(path: bytes, more: int = 0) -> None:
    """Makes `path` a read-only mount of itself, with the flags `more` besides. Raises OSError."""
    syscalls.mount(path, path, None, syscalls.MS_BIND)
    # what else its mount forbids is locked and must be said again; access times are kept when none is named
    # (mount(2))
    locked = os.statvfs(path).f_flag & (syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
    syscalls.mount(None, path, None, syscalls.MS_BIND | syscalls.MS_REMOUNT | syscalls.MS_RDONLY | locked | more)


def _hide(mask: bytes, targets: Iterable[str], fleeting: Container[str]) -> None:
    for target in targets:
        for attempt in range(_ATTEMPTS):
            try:
                syscalls.mount(mask, os.fsencode(target), None, syscalls.MS_BIND)
                break
            except OSError as error:
                gone = isinstance(error, FileNotFoundError)
                if not gone or target not in fleeting or attempt == _ATTEMPTS - 1:
                    raise Uncovered(error.errno, os.strerror(error.errno or 0), target) from error
                # services come and go; what comes later in a folder that can be seen is not hidden anyway
                if not os.path.lexists(target):
                    break

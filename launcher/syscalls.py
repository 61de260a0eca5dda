"""The few system calls Python 3.11 has no function for. Imported only in the forked child.

Goes to `_ctypes` below `ctypes`: the full module costs 2 ms more, on the path of every start.
"""

from __future__ import annotations

import errno
import os
import sys
from _ctypes import FUNCFLAG_CDECL, FUNCFLAG_USE_ERRNO, CFuncPtr, _SimpleCData, dlopen, dlsym, get_errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# <linux/sched.h>
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
# <linux/mount.h>
MS_REC = 0x4000
MS_BIND = 0x1000
MS_PRIVATE = 0x40000
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
# <linux/landlock.h> and <asm-generic/unistd.h>
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_CREATE_RULESET_VERSION = 1
_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET = 1
# Scoping came with this version of the interface.
_LANDLOCK_SCOPES = 6
# <linux/prctl.h>
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2


class _Int(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "i"


class _Long(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "l"


class _Function(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Int


_libc = dlopen(None, 0)  # type: ignore[arg-type]  # None is the program itself, dlopen(3)


def _call(name: str, *arguments: Any) -> int:
    function: Any = _Function(dlsym(_libc, name))
    result: int = function(*arguments)
    if result < 0:
        number = get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


def unshare(flags: int) -> None:
    """unshare(2)."""
    _call("unshare", flags)


def setns(descriptor: int, kind: int) -> None:
    """setns(2)."""
    _call("setns", descriptor, kind)


def mount(source: bytes | None, target: bytes, kind: bytes | None, flags: int) -> None:
    """mount(2) without data."""
    _call("mount", source, target, kind, _Long(flags), None)


def die_with_parent() -> None:
    """SIGKILL for this process when its parent ends (PR_SET_PDEATHSIG); kept across execve."""
    _call("prctl", _PR_SET_PDEATHSIG, _Long(9), _Long(0), _Long(0), _Long(0))


def adopt_orphans() -> None:
    """Orphaned descendants become children of this process (PR_SET_CHILD_SUBREAPER)."""
    _call("prctl", _PR_SET_CHILD_SUBREAPER, _Long(1), _Long(0), _Long(0), _Long(0))


def check_seccomp() -> None:
    """Raises OSError if this kernel takes no system call filters. Nothing is installed: the program is at address 0,
    which the kernel says last (EFAULT, seccomp(2))."""
    try:
        _call("prctl", _PR_SET_SECCOMP, _Long(_SECCOMP_MODE_FILTER), None, _Long(0), _Long(0))
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise


def can_scope() -> bool:
    """Whether this kernel can keep a process from abstract unix sockets of others (landlock(7))."""
    try:
        version = _call(
            "syscall", _Long(_LANDLOCK_CREATE_RULESET), None, _Long(0), _Long(_LANDLOCK_CREATE_RULESET_VERSION)
        )
    except OSError:
        return False
    return version >= _LANDLOCK_SCOPES


def scope_abstract_sockets() -> None:
    """From here on this process and what it starts reach abstract unix sockets of their own only.

    The rule set handles no file access, so mounting stays possible. Sets no_new_privs, as it must.
    """
    _call("prctl", _PR_SET_NO_NEW_PRIVS, _Long(1), _Long(0), _Long(0), _Long(0))
    # struct landlock_ruleset_attr: handled_access_fs, handled_access_net, scoped
    attributes = bytes(16) + _LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET.to_bytes(8, sys.byteorder)
    rules = _call("syscall", _Long(_LANDLOCK_CREATE_RULESET), attributes, _Long(len(attributes)), _Long(0))
    try:
        _call("syscall", _Long(_LANDLOCK_RESTRICT_SELF), _Long(rules), _Long(0))
    finally:
        os.close(rules)

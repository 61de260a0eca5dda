"""The system calls whose paths are watched so that a refusal can be explained, as data.

Only calls that change something, for they are few: an open for reading is by far the most frequent call there is, and
is watched only where the policy hides something. What is watched costs the command a round trip to the shim.
"""

from __future__ import annotations

import os

from doorward.named_tuple import NamedTuple

_CHANGES = (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC)
# fcntl.h: the bit of its own that O_TMPFILE has besides O_DIRECTORY
_TMPFILE = os.O_TMPFILE & ~os.O_DIRECTORY


class Watched(NamedTuple):
    """One call. `paths` are its path arguments, each `(argument of the directory's descriptor or None, argument of the
    path)`; `flags` is the argument with open's flags, None if it has none; `operation` is what a person calls it."""

    name: str
    operation: str
    paths: tuple[tuple[int | None, int], ...]
    flags: int | None = None


WATCHED = (
    Watched("open", "open", ((None, 0),), 1),
    Watched("openat", "open", ((0, 1),), 2),
    Watched("creat", "write", ((None, 0),)),
    Watched("truncate", "write", ((None, 0),)),
    Watched("mkdir", "mkdir", ((None, 0),)),
    Watched("mkdirat", "mkdir", ((0, 1),)),
    Watched("rmdir", "remove", ((None, 0),)),
    Watched("unlink", "remove", ((None, 0),)),
    Watched("unlinkat", "remove", ((0, 1),)),
    Watched("rename", "rename", ((None, 0), (None, 1))),
    Watched("renameat", "rename", ((0, 1), (2, 3))),
    Watched("renameat2", "rename", ((0, 1), (2, 3))),
    Watched("link", "link", ((None, 1),)),
    Watched("linkat", "link", ((2, 3),)),
    Watched("symlink", "link", ((None, 1),)),
    Watched("symlinkat", "link", ((1, 2),)),
    Watched("mknod", "mknod", ((None, 0),)),
    Watched("mknodat", "mknod", ((0, 1),)),
    Watched("chmod", "chmod", ((None, 0),)),
    Watched("fchmodat", "chmod", ((0, 1),)),
    Watched("chown", "chown", ((None, 0),)),
    Watched("lchown", "chown", ((None, 0),)),
    Watched("fchownat", "chown", ((0, 1),)),
    Watched("connect", "connect", ((None, 1),)),
)


def write_flags() -> tuple[int, ...]:
    """Bits of open's flags each of which makes it one that may change something (open(2))."""
    return (*_CHANGES, _TMPFILE)


def changes(flags: int) -> bool:
    """Whether an open with these flags may change something."""
    return any(flags & bit == bit for bit in write_flags())

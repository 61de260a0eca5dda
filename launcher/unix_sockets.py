"""Reads which unix sockets of the host have a path: a read-only mount does not stop `connect`.

The kernel keeps the path a socket was *bound* by. A server may have renamed or linked it since (OpenSSH binds a
ControlMaster under another name and links it into place), or have bound it relative to its working directory.
So the listed paths name directories to look into, and relative ones are put to every working directory.
"""

from __future__ import annotations

import errno
import os
import stat

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class BoundPaths(NamedTuple):
    """What the kernel lists, each once."""

    absolute: tuple[str, ...] = ()
    relative: tuple[str, ...] = ()


def bound_paths(table: bytes) -> BoundPaths:
    """The paths in the text of /proc/net/unix (proc(5)).

    A line is seven columns and, for a bound socket, a path that may hold blanks; abstract names start
    with `@`.
    """
    absolute: dict[str, None] = {}
    relative: dict[str, None] = {}
    for line in table.split(b"\n")[1:]:
        columns = line.split(None, 7)
        if len(columns) == 8 and not columns[7].startswith(b"@"):
            path = os.fsdecode(columns[7])
            (absolute if path.startswith("/") else relative)[path] = None
    return BoundPaths(tuple(absolute), tuple(relative))


def socket_directories(paths: BoundPaths, folders: Iterable[str]) -> tuple[str, ...]:
    """The resolved directories in which a listed socket may stand. `folders` are those a relative path may have
    been meant from, besides the working directory of every process that can be seen."""
    found = dict.fromkeys(os.path.dirname(path) for path in paths.absolute)
    if paths.relative:
        bases = dict.fromkeys((*folders, *_working_directories()))
        for base in bases:
            for path in paths.relative:
                if _is_socket(f"{base}/{path}"):
                    found[os.path.dirname(f"{base}/{path}")] = None
    return tuple(dict.fromkeys(os.path.realpath(directory) for directory in found))


def sockets_in(directory: str) -> list[str]:
    """Every socket in `directory`, none if it cannot be read (nor can the command, then)."""
    try:
        with os.scandir(directory) as listing:
            # is_symlink and the others are answered from the listing; only what is none of them is asked for
            return [
                item.path
                for item in listing
                if not (item.is_file(follow_symlinks=False) or item.is_dir(follow_symlinks=False))
                and _is_socket(item.path)
            ]
    except OSError:
        return []


def beyond_reach(directory: str, uid: int) -> bool:
    """Whether nobody but its owner can enter `directory`, or one above it, and that is not `uid`. Root sees into it all
    the same; a command of root's has no capability, and in its user namespace nothing could be mounted there."""
    groups = {os.getegid(), *os.getgroups()} if uid == os.geteuid() else None
    at = directory
    while True:
        try:
            found = os.stat(at)
        except OSError:
            return False
        if found.st_uid != uid and not found.st_mode & stat.S_IXOTH:
            if not found.st_mode & stat.S_IXGRP:  # nor can an access list let anyone in: these bits are its mask
                return True
            if groups is not None and found.st_gid not in groups and not _has_access_list(at):
                return True
        if at == "/":
            return False
        at = os.path.dirname(at)


def _has_access_list(path: str) -> bool:
    try:
        os.getxattr(path, "system.posix_acl_access")
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True


def _working_directories() -> list[str]:
    found: dict[str, None] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                found[os.readlink(f"/proc/{name}/cwd")] = None
            except OSError:
                continue  # another user's, or gone
    return list(found)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False

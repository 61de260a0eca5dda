"""Finds the submodules in a git index: `git status` enters each and believes the configuration it finds there.

Reads versions 2, 3 and 4 (gitformat-index(5)). Only the paths of entries that are links to another repository
(mode 160000, "gitlink") are wanted; in most repositories there are none, which one search of the bytes settles.
"""

import os
import stat

from doorward.launcher.git_directories import GITLINK

# Larger indexes are read up to here; one entry is about 100 bytes.
_LIMIT = 256 << 20
_CONFIG = 1 << 20
# Before an entry's mode: two times of 8 bytes, device and inode; after it: uid, gid, size.
_BEFORE_MODE = 24
_BEFORE_ID = 40
_EXTENDED = 0x4000


def gitlinks(directory: int) -> tuple[str, ...]:
    """The submodules' paths in the index of the git directory that `directory` is a descriptor of, and in the
    shared indexes beside it."""
    found: dict[str, None] = {}
    try:
        names = [name for name in os.listdir(directory) if name == "index" or name.startswith("sharedindex.")]
    except OSError:
        return ()
    for name in names:
        data = _read(directory, name)
        if GITLINK in data:
            found.update(dict.fromkeys(read_gitlinks(data, _hash_size(directory))))
    return tuple(found)


def index_gitlinks(path: str) -> tuple[str, ...]:
    """The submodules' paths in the index of the git directory at `path`."""
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        return gitlinks(directory)
    finally:
        os.close(directory)


def read_gitlinks(data: bytes, hash_size: int = 20) -> list[str]:
    """The submodules' paths in the bytes of an index; `hash_size` is the length of an object's name in bytes.
    What cannot be read ends the list: git reads no further than that either."""
    found: list[str] = []
    if data[:4] != b"DIRC" or GITLINK not in data:
        return found
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    at, path = 12, b""
    for _ in range(count):
        start = at
        at += _BEFORE_ID + hash_size
        flags = data[at : at + 2]
        at += 4 if len(flags) == 2 and flags[0] << 8 & _EXTENDED else 2
        if version >= 4:
            drop, at = _offset(data, at)
            end = data.find(b"\0", at)
            path = path[: max(0, len(path) - drop)] + data[at:end]
            at = end + 1
        else:
            end = data.find(b"\0", at)
            path = data[at:end]
            # padded with 1 to 8 NUL bytes to a multiple of eight
            at = start + (end - start + 8) // 8 * 8
        if end < 0:
            break
        if data[start + _BEFORE_MODE : start + _BEFORE_MODE + 4] == GITLINK:
            found.append(os.fsdecode(path))
    return found


def _hash_size(directory: int) -> int:
    # the repository's configuration says which hash it uses (git-config(1), extensions.objectFormat)
    return 32 if b"sha256" in _read(directory, "config")[:_CONFIG].lower() else 20


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """A number in the encoding of a pack's offset deltas (gitformat-pack(5)), and where it ends."""
    value = -1
    while at < len(data):
        byte = data[at]
        at += 1
        value = (value + 1) << 7 | byte & 0x7F
        if not byte & 0x80:
            break
    return max(0, value), at


def _read(directory: int, name: str) -> bytes:
    try:
        # a link is followed, as git does
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, dir_fd=directory)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b""
        size = min(os.fstat(handle).st_size, _LIMIT)
        data = b""
        while len(data) < size and (piece := os.read(handle, size - len(data))):
            data += piece
        return data
    except OSError:
        return b""
    finally:
        os.close(handle)

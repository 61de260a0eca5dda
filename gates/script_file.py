"""The interpreter a script names in its first line."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_READ: Final = 256
"""Bytes the kernel looks at (BINPRM_BUF_SIZE, execve(2))."""


def interpreter_line(path: str) -> tuple[str, ...]:
    """`#!INTERPRETER [ARGUMENT]` of the file as words (execve(2): at most one argument); () for any other file."""
    try:
        # a FIFO in its place must not hang the judgement
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return ()
    try:
        start = os.read(fd, _READ)
    except OSError:
        return ()
    finally:
        os.close(fd)
    if not start.startswith(b"#!"):
        return ()
    line = os.fsdecode(start[2:].split(b"\n", 1)[0]).strip()
    program, _, argument = line.partition(" ")
    if not program:
        return ()
    return (program, argument.strip()) if argument.strip() else (program,)

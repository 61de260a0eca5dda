"""Reads one configuration file, if there is one and if nobody else could have written it."""

import os
import stat
from typing import Final

from doorward.configuration_error import Problem

_MOST_BYTES: Final = 1 << 20


class UnusableFile(Exception):
    """A file that is there but cannot be used."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read_text(path: str) -> str | None:
    """The text of the file, None where there is none.

    Raises UnusableFile for one that cannot be read, is no regular file, belongs to somebody other than the caller and
    root, can be written by everybody, is over 1 MiB, or is not UTF-8.
    """
    try:
        # O_NONBLOCK: a FIFO in its place must not hang the start
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise UnusableFile(Problem(path, None, "", "is a link to a file that is not there")) from None
        return None
    except OSError as error:
        raise UnusableFile(Problem(path, None, "", f"cannot be read: {os.strerror(error.errno or 0)}")) from None
    try:
        _check(path, os.fstat(fd))
        data = b""
        while len(data) <= _MOST_BYTES and (more := os.read(fd, _MOST_BYTES + 1)):
            data += more
    except OSError as error:
        raise UnusableFile(Problem(path, None, "", f"cannot be read: {os.strerror(error.errno or 0)}")) from None
    finally:
        os.close(fd)
    if len(data) > _MOST_BYTES:
        raise UnusableFile(Problem(path, None, "", "is over 1 MiB, which no configuration is"))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnusableFile(Problem(path, line, "", "is not UTF-8", "save it as UTF-8")) from None


def _check(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnusableFile(Problem(path, None, "", "is no regular file"))
    if status.st_uid not in (0, os.geteuid()):
        raise UnusableFile(
            Problem(
                path,
                None,
                "",
                f"belongs to another user (uid {status.st_uid}), who could loosen every rule",
                f"take it over (sudo chown {os.geteuid()} {path}) once you have read it",
            )
        )
    if status.st_mode & stat.S_IWOTH:
        raise UnusableFile(Problem(path, None, "", "can be written by everybody", f"chmod o-w {path}"))

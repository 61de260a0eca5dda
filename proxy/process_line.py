"""A process and its parents up to the command of a sandbox, held by descriptors of their folders in /proc.

A number may be given to another process one day; what is held cannot. A process gets another parent only when its own
ends, so as long as all that are held live, the line is right, and nothing of it has to be asked again.
"""

from __future__ import annotations

import os

from doorward.proxy.process_table import leader_of, line_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_COMMAND_LINE: Final = 64 * 1024  # bytes read of one
_MOST_PARENTS: Final = 16
_ABOVE: Final = 2  # bubblewrap twice: process 1 of the sandbox, and itself; the command is the child of the first


class Line:
    """`processes` are the numbers: the process first, then its parents, without the sandbox's own."""

    __slots__ = ("_executables", "_folders", "processes")

    def __init__(self, processes: list[int]) -> None:
        """Raises OSError where one is gone."""
        self.processes = processes
        self._executables: list[str | None] = []
        self._folders: list[int] = []
        try:
            for each in processes:
                self._folders.append(os.open(f"/proc/{each}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        except BaseException:
            self.close()
            raise

    def has(self, descriptor: object, wanted: str) -> bool:
        """Whether the descriptor of the process is what its link says when it is `wanted`."""
        try:
            return os.readlink(f"fd/{descriptor}", dir_fd=self._folders[0]) == wanted
        except OSError:
            return False

    def lives(self) -> bool:
        """Whether all of them live. Reads what `described` tells."""
        try:
            self._executables = [os.readlink("exe", dir_fd=folder) for folder in self._folders]
        except OSError:
            return False
        return True

    def described(self) -> dict[str, Any] | None:
        """Number, executable and arguments, and the parents' numbers and executables; None where it is gone. After
        `lives`, whatever that said."""
        if len(self._executables) != len(self._folders):
            self._executables = [_executable(folder) for folder in self._folders]
        try:
            file = os.open("cmdline", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folders[0])
            try:
                words = os.read(file, _COMMAND_LINE).split(b"\0")
            finally:
                os.close(file)
        except OSError:
            return None
        if words and not words[-1]:
            words.pop()
        if self._executables[0] is None and not words:
            return None
        pairs = zip(self.processes[1:], self._executables[1:], strict=True)
        return {
            "pid": self.processes[0],
            "executable": self._executables[0],
            "argv": [os.fsdecode(word) for word in words],
            "parents": [{"pid": pid, "executable": executable} for pid, executable in pairs],
        }

    def close(self) -> None:
        """Let go of them."""
        folders, self._folders = self._folders, []
        for folder in folders:
            os.close(folder)


def line_of(task: int, root: int) -> Line | None:
    """That of the process which the task belongs to; None where it is not below `root`, or gone."""
    process = leader_of(task)
    found = None if process is None else line_to(process, root)
    if not found:
        return None
    try:
        return Line([found[0], *found[1:-_ABOVE][:_MOST_PARENTS]])
    except OSError:
        return None


def _executable(folder: int) -> str | None:
    try:
        return os.readlink("exe", dir_fd=folder)
    except OSError:
        return None

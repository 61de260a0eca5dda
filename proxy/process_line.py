"""A process and its parents up to the command of a sandbox, held by descriptors of their folders in /proc.

A number may be given to another process one day; what is held cannot. A process gets another parent only when its own
ends, so as long as all that are held live, the line is right, and nothing of it has to be asked again.
"""

from __future__ import annotations

import os

from doorward.proxy.process_table import leader_of, line_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

_COMMAND_LINE: Final = 64 * 1024  # bytes read of one
_MOST_LINES: Final = 4096  # are shorter than this
_MOST_PARENTS: Final = 16
_LOOKS: Final = 16  # at one that is becoming another program
_ABOVE: Final = 2  # bubblewrap twice: process 1 of the sandbox, and itself; the command is the child of the first


class Line:
    """`processes` are the numbers: the process first, then its parents, without the sandbox's own."""

    __slots__ = ("_command", "_executables", "_folders", "_told", "processes")

    def __init__(self, processes: list[int]) -> None:
        """Raises OSError where one is gone."""
        self.processes = processes
        self._executables: list[str | None] = []
        self._folders: list[int] = []
        self._command = -1  # the file of the first one's arguments: those of the program that runs at each read
        self._told: tuple[bytes, list[str | None], dict[str, Any]] | None = None  # what was said, and read for it
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

    def described(self, shown: Callable[[list[str]], list[str]] = list) -> dict[str, Any] | None:
        """Number, executable and arguments as `shown` gives them, and the parents' numbers and executables; None where
        it is gone. After `lives`, whatever that said. Not to be changed: while nothing else is read it is the same."""
        executables = self._executables
        if len(executables) != len(self._folders):
            executables = self._executables = [_executable(folder) for folder in self._folders]
        try:
            line = self._arguments()
            told = self._told
            if told is not None and told[0] == line and told[1] == executables:
                return told[2]
            # it may be in the midst of execve(2): first the executable is another and there are no arguments, then come
            # the new ones; they belong together where the executable is the same before and after
            for _ in range(_LOOKS):
                now = _executable(self._folders[0])
                if now == executables[0] and (line or now is None):
                    break
                executables = self._executables = [now, *executables[1:]]
                line = self._arguments()
        except OSError:
            return None
        words = line.split(b"\0")
        if not words[-1]:
            words.pop()
        if executables[0] is None and not words:
            return None
        pairs = zip(self.processes[1:], executables[1:], strict=True)
        said = {
            "pid": self.processes[0],
            "executable": executables[0],
            "argv": shown([os.fsdecode(word) for word in words]),
            "parents": [{"pid": pid, "executable": executable} for pid, executable in pairs],
        }
        self._told = line, executables, said
        return said

    def _arguments(self) -> bytes:
        """As /proc has them, of the program that runs now. Raises OSError."""
        if self._command < 0:
            self._command = os.open("cmdline", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folders[0])
        line = os.pread(self._command, _MOST_LINES, 0)
        return os.pread(self._command, _COMMAND_LINE, 0) if len(line) == _MOST_LINES else line

    def close(self) -> None:
        """Let go of them."""
        held, self._folders = self._folders, []
        if self._command >= 0:
            held.append(self._command)
            self._command = -1
        for each in held:
            os.close(each)


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

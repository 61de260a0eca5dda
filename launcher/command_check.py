"""Says before the start why a command cannot start, so that its absence is never mistaken for its exit status.

bubblewrap gives 1 for a missing program. The look-up here follows execvp(3) on the view from inside; what it
cannot foresee (a file that goes meanwhile) is found out afterwards.
"""

import errno
import os
import stat

from doorward.launcher.interface import Command, LaunchFailure, Outcome
from doorward.launcher.mounts import Kind, MountPlan
from doorward.named_tuple import NamedTuple

NOT_FOUND = 127
CANNOT_RUN = 126
ENGINE = 125
# execve(2): one string with its terminating NUL (MAX_ARG_STRLEN), and all of them with their pointers
# (three quarters of the default stack, and a quarter of its limit).
_STRING = 131072
_ALL = 6 << 20
# confstr(_CS_PATH) of glibc, what execvp takes without PATH
_DEFAULT_PATH = "/bin:/usr/bin"
# A first line longer than this is cut by the kernel (BINPRM_BUF_SIZE).
_FIRST_LINE = 256


class _Looked(NamedTuple):
    """What a look at one candidate gave; `failure` None means that it can be executed."""

    exists: bool
    failure: LaunchFailure | None


def failed(failure: LaunchFailure) -> Outcome:
    """The outcome of a command that did not start."""
    codes = {"sandbox": ENGINE, "directory": ENGINE, "not-found": NOT_FOUND}
    return Outcome(codes.get(failure.kind, CANNOT_RUN), failure=failure)


def check_form(command: Command) -> LaunchFailure | None:
    """NUL bytes, malformed names, and the kernel's limits on sizes."""
    if not command.argv or not command.argv[0]:
        return LaunchFailure("malformed", "There is no command to run.")
    if any("\0" in text for text in (*command.argv, command.cwd)):
        return LaunchFailure("malformed", "An argument holds a NUL byte, which no program can be given.")
    total = 0
    for text in command.argv:
        size = len(os.fsencode(text)) + 1
        if size > _STRING:
            return _too_large(f"one argument has {size - 1} bytes; the kernel takes {_STRING - 1}")
        total += size
    for name, value in command.env.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            return LaunchFailure("malformed", f"The variable {name!r} cannot be passed on.")
        size = len(os.fsencode(name)) + len(os.fsencode(value)) + 2
        if size > _STRING:
            return _too_large(f"the variable {name} has {size - 1} bytes; the kernel takes {_STRING - 1}")
        total += size
    total += 8 * (len(command.argv) + len(command.env) + 2)
    limit = min(os.sysconf("SC_ARG_MAX"), _ALL)
    if total > limit:
        return _too_large(f"arguments and environment have {total} bytes together; the kernel takes {limit}")
    return None


def _too_large(what: str) -> LaunchFailure:
    return LaunchFailure("too-large", f"The command is too large: {what}.", "Pass it through a file.")


def check_start(command: Command, plan: MountPlan) -> LaunchFailure | None:
    """Whether the working directory and the program can be reached inside."""
    directory = os.path.realpath(command.cwd)
    if not os.path.isdir(directory):
        return LaunchFailure("directory", f"The working directory {command.cwd} does not exist.")
    if plan.kind(directory) is Kind.HIDDEN:
        return LaunchFailure("directory", f"The working directory {command.cwd} is hidden inside the sandbox.")
    if plan.kind(directory) is Kind.PRIVATE and not plan.mounted(directory):
        return LaunchFailure(
            "directory",
            f"The working directory {command.cwd} is not in the sandbox, which has its own {_top(directory)}.",
            f"--add-dir {command.cwd} or --read-only {command.cwd} brings it in.",
        )
    name = command.argv[0]
    if "/" in name:
        return _look_at(os.path.join(directory, name), name, plan).failure
    refused: LaunchFailure | None = None
    for folder in command.env.get("PATH", _DEFAULT_PATH).split(":"):
        looked = _look_at(os.path.join(directory, folder, name), name, plan)
        if looked.failure is None:
            return None
        # execvp goes on after a file it cannot execute; what was wrong with it is worth saying in the end
        if looked.exists and (refused is None or looked.failure.kind == "not-executable"):
            refused = looked.failure
    return refused or LaunchFailure("not-found", f"{name}: command not found.")


def _look_at(path: str, name: str, plan: MountPlan) -> _Looked:
    try:
        mode = os.stat(path).st_mode
    except PermissionError:
        return _Looked(True, LaunchFailure("not-executable", f"{name}: permission denied."))
    except OSError:
        return _Looked(False, LaunchFailure("not-found", f"{name}: no such file."))
    resolved = os.path.realpath(path)  # a look-up a component: not for each folder of PATH that has no such file
    kind = plan.kind(resolved)
    if kind in (Kind.DEVICES, Kind.PROCESSES):
        return _Looked(True, None)  # those are made anew; exec will say
    if kind in (Kind.HIDDEN, Kind.PRIVATE):
        why = "is hidden inside the sandbox"
        if kind is Kind.PRIVATE:
            why = f"is not in the sandbox, which has its own {_top(resolved)}"
        remedy = f"--read-only {resolved} brings it in."
        return _Looked(True, LaunchFailure("not-found", f"{name}: {resolved} {why}.", remedy))
    if stat.S_ISDIR(mode):
        return _Looked(True, LaunchFailure("not-executable", f"{name}: is a directory."))
    if not stat.S_ISREG(mode) or not os.access(resolved, os.X_OK):
        return _Looked(True, LaunchFailure("not-executable", f"{name}: permission denied (not executable)."))
    interpreter = _interpreter(resolved)
    if interpreter and not (os.path.exists(interpreter) and plan.visible(os.path.realpath(interpreter))):
        sentence = f"{name}: its interpreter {interpreter} does not exist inside."
        return _Looked(True, LaunchFailure("not-found", sentence))
    return _Looked(True, None)


def _interpreter(path: str) -> str:
    """The absolute interpreter in the first line of a script, else nothing (execve(2))."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        head = os.read(handle, _FIRST_LINE)
    except OSError:
        return ""
    finally:
        os.close(handle)
    if not head.startswith(b"#!"):
        return ""
    words = head[2:].partition(b"\n")[0].split()
    return os.fsdecode(words[0]) if words and words[0].startswith(b"/") else ""


def _top(path: str) -> str:
    return "/" + path.split("/")[1]


def failure_of_exec(name: str, number: int) -> LaunchFailure:
    """What execve's error number means for the command called `name`."""
    if number in (errno.ENOENT, errno.ENOTDIR):
        return LaunchFailure("not-found", f"{name}: no such file, or its interpreter or loader is missing.")
    if number == errno.E2BIG:
        return _too_large("arguments and environment are more than the kernel takes")
    return LaunchFailure("not-executable", f"{name}: {os.strerror(number)}.")

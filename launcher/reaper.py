"""A process beside each command on a system without pid namespaces: holds it, forwards orders, ends what is left.

Portable POSIX, nothing of Linux in it. It is forked from the supervisor and outlives it: when its channel closes, the
run is over. It is in a session of its own, so that Ctrl-C in the caller's terminal reaches only the supervisor.

What is left when the command ends is found by its session and by its ancestry, both read from ps(1). A process that
left both (a double fork with setsid) is not found; it stays confined, and the proxy's port is closed to it.
"""

import errno
import fcntl
import json
import os
import select
import signal
import termios
from typing import NoReturn

from doorward.launcher.interface import Stdio, Undone
from doorward.launcher.watch import Watch
from doorward.named_tuple import NamedTuple

# Where descriptors are put before they go to 0, 1 and 2.
_HIGH = 20
# Rounds of killing what is left; each finds what the last one's victims had forked meanwhile.
_ROUNDS = 20
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


class Start(NamedTuple):
    """What is run: `path` is executed with `argv`; `temporary` is removed at the end, `watched` put back."""

    path: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str
    stdio: Stdio
    temporary: str = ""
    watched: tuple[Watch, ...] = ()


def run(channel: int, start: Start) -> NoReturn:
    """The body of the forked reaper."""
    status = 1
    try:
        _attend(channel, start)
        status = 0
    finally:
        os._exit(status)


def _attend(channel: int, start: Start) -> None:
    os.setsid()
    for ignored in _IGNORED:
        signal.signal(ignored, signal.SIG_IGN)
    bell, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    keep = {channel, bell, ring, *start.stdio[:3]}
    if start.stdio.terminal is not None:
        keep.add(start.stdio.terminal)
    _close_all_but(keep)
    hold, let_go = os.pipe()
    fault, told = os.pipe()
    command = os.fork()
    if command == 0:
        os.close(let_go)  # or the end of the reaper would not be seen
        _become_command(start, hold, told)
    os.close(hold)
    os.close(told)
    for number in (*start.stdio[:3], start.stdio.terminal):
        if number is not None and number > 2:
            _close(number)
    ended = _wait(channel, bell, let_go, command)
    _end_what_is_left(command)
    error = os.read(fault, 64)
    step, _, number_text = error.decode().partition(" ")
    report = {
        "status": ended,
        "error": {"step": step, "errno": int(number_text)} if error else None,
        "undone": [tuple(undone) for undone in _put_back(start)],
    }
    try:
        os.write(channel, json.dumps(report).encode() + b"\n")
    except OSError:
        pass  # nobody is there to read it


def _wait(channel: int, bell: int, let_go: int, command: int) -> int:
    """Carries out orders until the command has ended; its wait status."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(bell, select.POLLIN)
    pending = b""
    while True:
        found, ended = os.waitpid(command, os.WNOHANG)
        if found:
            return ended
        for fd, _ in poll.poll():
            if fd == bell:
                os.read(bell, 512)
                continue
            try:
                data = os.read(channel, 4096)
            except ConnectionError:
                data = b""
            if not data:
                poll.unregister(channel)
                _kill_group(command, signal.SIGKILL)
                continue
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                _carry_out(json.loads(line), let_go, command)


def _carry_out(order: dict[str, object], let_go: int, command: int) -> None:
    if "release" in order:
        os.write(let_go, b"!")
    elif "kill" in order:
        _kill_group(command, signal.SIGKILL)
    elif isinstance(number := order.get("signal"), int):
        try:
            os.kill(command, number)
        except ProcessLookupError:
            pass


def _kill_group(leader: int, number: int) -> None:
    for send in (os.killpg, os.kill):
        try:
            send(leader, number)
        except (ProcessLookupError, PermissionError):
            pass


def _end_what_is_left(leader: int) -> None:
    _kill_group(leader, signal.SIGKILL)
    for _ in range(_ROUNDS):
        left = _left(leader)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass


def _left(leader: int) -> list[int]:
    """Live processes of the command's session, and their descendants."""
    parents: dict[int, int] = {}
    for line in _processes().splitlines():
        fields = line.split()
        if len(fields) >= 3 and not fields[2].startswith("Z"):
            parents[int(fields[0])] = int(fields[1])
    found = set()
    for pid in parents:
        try:
            if os.getsid(pid) == leader:
                found.add(pid)
        except OSError:
            continue
    grown = True
    while grown:
        below = {pid for pid, parent in parents.items() if parent in found} - found
        found |= below
        grown = bool(below)
    return [pid for pid in found if pid != os.getpid()]


def _processes() -> str:
    reader, writer = os.pipe()
    try:
        # ps lists itself too, as a child of ours outside the command's session
        pid = os.posix_spawn(
            "/bin/ps",
            ["ps", "-A", "-o", "pid=,ppid=,state="],
            {"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
            setsigmask=(),
        )
    except OSError:
        os.close(reader)
        return ""
    finally:
        os.close(writer)
    text = b""
    while piece := os.read(reader, 1 << 16):
        text += piece
    os.close(reader)
    os.waitpid(pid, 0)
    return text.decode("ascii", "replace")


def _put_back(start: Start) -> list[Undone]:
    undone: list[Undone] = []
    if start.watched:
        from doorward.launcher.undo import Keeper

        keeper = Keeper(start.watched)
        keeper.put_back(final=True)
        keeper.close()
        undone += keeper.report
    if start.temporary:
        import shutil

        shutil.rmtree(start.temporary, ignore_errors=True)
    return undone


def _become_command(start: Start, hold: int, told: int) -> NoReturn:
    """The command's process, up to its exec; what fails before goes into `told`."""
    step = "start"
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for restored in (*_IGNORED, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(restored, signal.SIG_DFL)
        if start.stdio.terminal is not None:
            fcntl.ioctl(start.stdio.terminal, termios.TIOCSCTTY, 0)
        if os.read(hold, 1) != b"!":
            os._exit(1)  # the reaper is gone
        step = "directory"
        os.chdir(start.cwd)
        step = "streams"
        null = os.open("/dev/null", os.O_RDWR)
        streams = [fcntl.fcntl(null if n < 0 else n, fcntl.F_DUPFD_CLOEXEC, _HIGH) for n in start.stdio[:3]]
        told = fcntl.fcntl(told, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        _close_all_but({*streams, told})
        for number, source in enumerate(streams):
            os.dup2(source, number)
        step = "exec"
        # a path with a slash is taken as it is, a bare name is looked up in the command's own PATH
        os.execvpe(start.path, start.argv, dict(start.env))
    except OSError as error:
        os.write(told, f"{step} {error.errno or errno.EIO}".encode())
    finally:
        os._exit(127)


def _close_all_but(keep: set[int]) -> None:
    """Closes every descriptor that is not in `keep`. /dev/fd lists them on macOS as on Linux."""
    for name in os.listdir("/dev/fd"):
        if int(name) not in keep:
            _close(int(name))


def _close(number: int) -> None:
    try:
        os.close(number)
    except OSError:
        pass  # the one the directory itself was read through, or one that stands twice in the list

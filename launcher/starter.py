"""The forked process that becomes bubblewrap (or the command itself, where no sandbox was asked for).

It is forked before the shim knows what for: a fork takes a millisecond, and there is time for it then. What is to be
started comes over a socket: a line about this run, the line that the shim was sent, and the descriptors of both.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select

from doorward.launcher import descriptor_passing, shim_signals
from doorward.launcher.identity import become
from doorward.launcher.launch import Launch, launch_from
from doorward.named_tuple import NamedTuple
from doorward.start_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from typing import NoReturn

# Descriptors are moved up here before they are put at 0, 1, 2, ….
_HIGH = 64


class Waiting(NamedTuple):
    """What a starter has while it waits: the socket its orders come over, where bubblewrap is held, where it reports
    and where a failure is told; the shim's pidfd, the signals the caller ignored, and whether the namespaces are ours
    (or bubblewrap's)."""

    orders: int
    block: int
    status: int
    fault: int
    shim: int
    ignored: tuple[int, ...]
    ours_first: bool

    def live(self) -> NoReturn:
        """The forked child's whole life."""
        try:
            close_all_but(self[:5])
            _die_with(self.shim)
            # what the way to bubblewrap takes, loaded while there is time
            from doorward.launcher import covering, name_files, syscalls  # noqa: F401

            received = _received(self.orders)
            if received is not None:
                Starter(self, *received).start()
        finally:
            os._exit(1)


def order(
    orders: int, line: bytes, descriptors: Sequence[int], *, cgroup: str = "", watcher: int = -1, info: int = -1
) -> None:
    """Tells the starter behind `orders` what to start: the shim's own line and the descriptors that came with it,
    the control group to join, the channel for the listener of its filter, and where bubblewrap tells of its child while
    it is held (see `gate`). Raises OSError if it is gone."""
    about = dumps([cgroup, watcher >= 0, info >= 0]).encode() + b"\n" + line + b"\n"
    ours = [number for number in (watcher, info) if number >= 0]
    descriptor_passing.send(orders, about, (*descriptors, *ours))


def _received(orders: int) -> tuple[Launch, str, int, int] | None:
    """The launch, the control group, the watcher's channel, bubblewrap's; None if the shim has nothing to start."""
    descriptors: list[int] = []
    data = b""
    while data.count(b"\n") < 2:
        piece = descriptor_passing.receive(orders, descriptors)
        if not piece:
            return None
        data += piece
    about, line, _ = data.split(b"\n")
    cgroup, watched, gated = loads(about)
    info = descriptors.pop() if gated else -1
    watcher = descriptors.pop() if watched else -1
    return launch_from(line, descriptors), cgroup, watcher, info


class Starter:
    """The forked process once it knows what it becomes."""

    def __init__(self, waiting: Waiting, launch: Launch, cgroup: str, watcher: int, info: int) -> None:
        self._launch = launch
        self._plan = launch.plan
        self._ours_first = waiting.ours_first
        self._block = waiting.block
        self._status = waiting.status
        self._fault = waiting.fault
        self._shim = waiting.shim
        self._ignored = waiting.ignored
        self._cgroup = cgroup
        self._watcher = watcher
        self._info = info
        self._step = "start"

    def start(self) -> NoReturn:
        """Never returns; a failure before exec goes to `fault` as one JSON object."""
        try:
            if self._cgroup:
                from doorward.launcher.cgroups import join

                self._step = "limits"
                join(self._cgroup)
            self._step = "start"
            self._bind_life()
            if not self._launch.bubblewrap:
                self._become_command()
            self._become_bubblewrap(self._launch.bubblewrap)
        except OSError as error:
            text = dumps({"step": self._step, "errno": error.errno})
            os.write(self._fault, text.encode())
        finally:
            os._exit(1)

    def _bind_life(self) -> None:
        # a process group of its own: signals to the command's group never reach the shim
        os.setpgid(0, 0)
        terminal = self._launch.stdio.terminal
        if terminal is not None:
            os.tcsetpgrp(terminal, os.getpgrp())

    def _become_user(self) -> None:
        if self._launch.user is not None:
            self._step = "identity"
            become(self._launch.user)
            _die_with(self._shim)  # the request is lost with a change of identity (prctl(2))

    def _become_command(self) -> NoReturn:
        argv = self._launch.argv
        os.read(self._block, 1)
        self._become_user()
        self._step = "directory"
        os.chdir(self._launch.cwd)
        self._place(list(self._launch.stdio[:3]))
        shim_signals.give(self._ignored)
        env = dict(self._launch.env)
        self._set_limits()
        self._step = "exec"
        try:
            os.execvpe(argv[0], argv, env)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # a script without a first line, as execvp(3) takes it
            os.execve("/bin/sh", ["/bin/sh", *argv], env)

    def _become_bubblewrap(self, path: str) -> NoReturn:
        plan = self._plan
        streams = list(self._launch.stdio[:3])
        if self._ours_first:
            self._prepare_mounts(streams)
        if self._launch.scoped:
            from doorward.launcher.syscalls import scope_abstract_sockets

            self._step = "scope"
            scope_abstract_sockets()
        copies = []
        for source, target in plan.copied:
            with open(source, "rb") as file:
                copies.append((target, _memory("copy", file.read())))
        self._become_user()
        self._step = "start"
        arguments = plan.arguments
        if self._launch.network and not self._ours_first:
            arguments = ("--unshare-net", *arguments)
        sources = streams
        argv = [path, "--args", "3", "--json-status-fd", "4", "--block-fd", "5"]
        sources += (_memory("arguments", b"\0".join(map(os.fsencode, arguments))), self._status, self._block)
        if self._info >= 0:
            argv += ("--info-fd", str(len(sources)))
            sources.append(self._info)
        if self._launch.program:
            argv += ("--seccomp", str(len(sources)))
            sources.append(_memory("seccomp", bytes.fromhex(self._launch.program)))
        if plan.names:
            from doorward.launcher.name_files import replaced

            for target, text in replaced(plan.names):
                argv += ("--perms", "0644", "--ro-bind-data", str(len(sources)), target)
                sources.append(_memory("names", text))
        for target, copy in copies:
            argv += ("--perms", "0644", "--ro-bind-data", str(len(sources)), target)
            sources.append(copy)
        if plan.carrier:
            # too many arguments for bubblewrap: they follow through a descriptor (see long_command)
            argv += ("--", *plan.carrier, str(len(sources)))
            sources.append(_memory("command", plan.carried.encode()))
        else:
            argv += ("--", *self._launch.argv)
        self._watch()
        self._place(sources)
        shim_signals.give(self._ignored)
        words = [os.fsencode(text) for text in argv]
        self._set_limits()
        self._step = "exec bwrap"
        os.execve(path, words, {})

    def _watch(self) -> None:
        """From here on the shim hears of calls that change something, and must answer for them to go on."""
        if not self._launch.watching:
            return
        from doorward.launcher.denial_filter import install

        self._step = "denials"
        listener = install(bytes.fromhex(self._launch.watching))
        descriptor_passing.send(self._watcher, b"x", (listener,))
        os.close(self._watcher)
        os.close(listener)

    def _set_limits(self) -> None:
        """Last, since they hold for this process too."""
        if self._launch.held:
            from doorward.launcher.limits import set_kernel_limits

            self._step = "limits"
            set_kernel_limits(self._launch.limits, dict(self._launch.held), other_user=self._launch.user is not None)

    def _prepare_mounts(self, streams: list[int]) -> None:
        """A mount namespace of ours: mounts the host makes later do not come in writable behind bubblewrap's
        back, /proc shows the numbers bubblewrap sees, masks cost neither its arguments nor its time, and files
        in `streams` are opened anew where they cannot be written."""
        from doorward.launcher import covering, syscalls

        self._step = "mounts"
        syscalls.unshare(syscalls.CLONE_NEWNS)
        covering.make_private()
        for place, path in self._plan.held:
            self._step = "stream"
            streams[place] = _hold(streams[place], os.fsencode(path))
        if self._plan.masks:
            self._step = "mounts"
            try:
                covering.cover(self._plan)
            except covering.Uncovered:
                self._step = "hide"
                raise
        if self._launch.fresh_proc:
            self._step = "proc"
            flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
            syscalls.mount(b"proc", b"/proc", b"proc", flags)

    def _place(self, sources: list[int]) -> None:
        """Puts `sources` at 0, 1, 2, … and closes everything else but the pipe for failures."""
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        # out of the way first: a source may be the number another one goes to
        *high, self._fault = (
            fcntl.fcntl(null if number < 0 else number, fcntl.F_DUPFD_CLOEXEC, _HIGH)
            for number in (*sources, self._fault)
        )
        close_all_but((*high, self._fault))
        for number, source in enumerate(high):
            os.dup2(source, number)


def _die_with(shim: int) -> None:
    """SIGKILL for this process when the shim ends; at once if it has (`shim` is its pidfd)."""
    from doorward.launcher.syscalls import die_with_parent

    die_with_parent()
    poll = select.poll()
    poll.register(shim, select.POLLIN)
    if poll.poll(0):
        os._exit(1)  # it died before the request was made


def close_all_but(keep: Container[int]) -> None:
    """Closes every open descriptor that is not in `keep`."""
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number not in keep:
            try:
                os.close(number)
            except OSError:
                pass  # the one the directory itself was read through


def _hold(descriptor: int, path: bytes) -> int:
    """Opens the file of `descriptor` anew through a read-only mount, at the same position. Its further
    position is its own: what the command reads is not read for the caller."""
    from doorward.launcher.covering import bind_read_only

    bind_read_only(path)
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
    if not os.path.sameopenfile(opened, descriptor):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
    os.lseek(opened, os.lseek(descriptor, 0, os.SEEK_CUR), os.SEEK_SET)
    return opened


def _memory(name: str, data: bytes) -> int:
    handle = os.memfd_create(name, os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle

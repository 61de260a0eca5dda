"""The process between the supervisor and bubblewrap: one for each run, it outlives a killed supervisor.

- It is forked ahead and makes its namespaces before it knows what for (see `seed`).
- It is the leader of a session of its own and the parent of bubblewrap, so it knows the exact end.
- It watches the supervisor through a pidfd. When the supervisor dies, however it dies, the shim kills the
  tree, puts protected names back and ends.
- Where the machine allows it, bubblewrap is process 1 of a pid namespace the shim made. When that process
  dies the kernel kills everything below it, at every moment of the set-up too, and waiting for it waits for
  all of them. Elsewhere the shim adopts orphans and kills them one by one, and what is to be hidden is covered in
  bubblewrap's own namespaces (see `gate`).
- bubblewrap dies with the shim (PR_SET_PDEATHSIG, with the race closed by a look at the shim's pidfd).
- Descriptors: everything inherited is closed, what a command gets comes with its launch. Nothing of Python's
  is cleaned up here: objects of the supervisor must not close numbers that are ours now.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import select
import time
from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM, socketpair
from _socket import socket as Socket

from doorward.launcher import descriptor_passing, namespaces, shim_signals
from doorward.launcher.directory_watch import DirectoryWatch
from doorward.launcher.guards import Guard, register
from doorward.launcher.identity import act_as, become_root
from doorward.launcher.interface import PROXY_PORT, Identity, Stdio, Undone
from doorward.launcher.launch import Launch, launch_from
from doorward.launcher.outcome import exit_code
from doorward.launcher.process_tree import children, first_child
from doorward.launcher.starter import Waiting, close_all_but, order
from doorward.launcher.undo import Keeper
from doorward.named_tuple import NamedTuple
from doorward.start_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from doorward.launcher.cgroups import Cgroup
    from doorward.launcher.cpu_time import Budget
    from doorward.launcher.denial_listener import DenialListener
    from doorward.launcher.denials import Denials
    from doorward.launcher.gate import Gate
    from doorward.launcher.limits import Measured
    from doorward.launcher.transparent import Opened
else:
    import _signal as signal  # the same functions without the enums, which cost 0.5 ms

# How long a protected name may stand before it is looked at again while the command runs.
_WATCH_INTERVAL_S = 0.01
# How long a signal waits for a command that is being started.
_SIGNAL_PATIENCE_S = 2.0
_SIGNAL_RETRY_S = 0.002
# A report must fit into a socket's buffer that nobody reads yet.
_MAXIMUM_UNDONE = 200


class Refused(Exception):
    """A step of the set-up failed: its name and the error number."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step, number)
        self.step = step
        self.number = number


def run(
    channel: int,
    supervisor: int,
    namespaces: int,
    user: Identity | None = None,
    *,
    captured: bool = False,
    terminal: bool = True,
) -> NoReturn:
    """The forked child's whole life. `channel` is the socket to the supervisor, `supervisor` its pidfd,
    `namespaces` the CLONE_NEW* flags to make ahead, `user` whom the command will run as, unless the caller;
    `captured`: every address in its network will lead to the door, so that is made ahead too; `terminal`: the command
    may get one, so what becomes it is not forked before that is known."""
    try:
        gc.disable()
        Shim(channel, supervisor, user).live(namespaces, captured, terminal)
    except BaseException as error:
        try:
            text = dumps({"error": {"step": "shim", "text": repr(error)}})
            os.write(channel, text.encode() + b"\n")
        except OSError:
            pass
    finally:
        os._exit(0)


class Captured(NamedTuple):
    """The sockets to which captured connections come; or none, and why the kernel would not have it."""

    opened: list[Opened]
    refused: str


def _capture() -> Captured:
    """Make every address of this network namespace lead to the door. Raises OSError."""
    from doorward.launcher import transparent

    try:
        transparent.capture()
    except transparent.CaptureRefused as error:
        return Captured([], str(error))
    return Captured(transparent.open_captured(), "")


class Shim:
    """One run."""

    def __init__(self, channel: int, supervisor: int, user: Identity | None = None) -> None:
        self._channel = channel
        self._supervisor = supervisor
        self._user = user
        self._buffer = b""
        self._started = 0  # the process we started, 0 before
        self._ours_first = False
        self._own_pids = False  # bubblewrap is process 1 of a namespace of ours
        self._listeners: list[Socket] = []
        self._captured: Captured | OSError | None = None  # made ahead, or why it could not be
        self._status = -1
        self._block = -1
        self._fault = -1
        self._starter = -1  # to the starter
        self._keeper = Keeper(())
        self._guard: Guard | None = None
        self._gate: Gate | None = None  # holds bubblewrap until its child's mounts are covered
        self._released = False
        self._let_go = False  # bubblewrap may start the command
        self._ready = False  # the proxy has the listeners, so the command may start
        self._inherited: tuple[int, ...] = ()
        self._limited = False
        self._measured: Measured
        self._cgroup: Cgroup | None = None
        self._denials: Denials | None = None
        self._listener: DenialListener | None = None
        self._pid = os.getpid()  # as the supervisor sees it

    def live(self, flags: int, captured: bool, terminal: bool) -> None:
        """Set up, start, attend, undo, report."""
        self._inherited = shim_signals.take()
        close_all_but((self._channel, self._supervisor))
        result: dict[str, Any] = {}
        try:
            os.setsid()
            os.chdir("/")
            fault = self._make_namespaces(flags)
            if captured and self._listeners:
                try:
                    self._captured = _capture()
                except OSError as error:
                    self._captured = error
            if not terminal:
                self._fork_starter()
            received = self._receive()
            if received is None:
                return
            launch, line = received
            if fault is not None:
                raise fault
            self._take_terminal(launch.stdio.terminal)
            if terminal:
                self._fork_starter()
            self._limit(launch)
            # the starter makes mounts and bubblewrap more of them, while we do what the command is held for
            watcher = self._start(launch, line)
            if self._ours_first:
                self._hand_over(launch)
            self._ready = not launch.network
            self._look_after(launch)
            if self._ours_first and launch.network:
                self._open_door_as_root(launch)
            result = self._attend(launch, watcher)
        except Refused as refused:
            result = {"error": {"step": refused.step, "errno": refused.number}}
        finally:
            self._end_everything()
            self._keeper.put_back(final=True)
            become_root(self._user)
            if self._cgroup is not None:
                self._measured = self._cgroup.measured(self._measured)
                self._cgroup.remove()
            if self._guard is not None:
                self._guard.close()
        if self._limited:
            result["measured"] = list(self._measured)
        if self._denials is not None:
            result["denied"] = [list(denied) for denied in self._denials.found]
        result["undone"] = [list(undone) for undone in _shortened(self._keeper.report)]
        try:
            os.write(self._channel, dumps(result).encode() + b"\n")
        except ConnectionError:
            pass  # the supervisor is gone

    # --- set-up

    def _make_namespaces(self, flags: int) -> Refused | None:
        """Makes the namespaces and listeners; a failure is kept for the report of a launch that comes."""
        if not flags:
            return None
        from doorward.launcher.syscalls import CLONE_NEWNET, CLONE_NEWPID, CLONE_NEWUSER, unshare

        identity = os.geteuid(), os.getegid()
        try:
            if self._user is not None and flags & CLONE_NEWUSER:
                namespaces.unshare_for(self._user, flags)
            else:
                unshare(flags)
        except OSError as error:
            if self._user is not None:
                step = "identity" if isinstance(error, namespaces.UnmappedUser) else "namespaces"
                return Refused(step, error.errno or errno.EIO)
            return None  # only bubblewrap may make them here, or nobody; it will say
        self._ours_first = True
        self._own_pids = bool(flags & CLONE_NEWPID)
        step = "identity"
        try:
            if flags & CLONE_NEWUSER and self._user is None:
                namespaces.keep_identity(*identity)
            step = "network"
            if flags & CLONE_NEWNET:
                namespaces.bring_loopback_up()
                self._listeners = namespaces.listen()
        except OSError as error:
            return Refused(step, error.errno or errno.EIO)
        return None

    def _receive(self) -> tuple[Launch, bytes] | None:
        """Waits for the launch, and gives its line too; None if the supervisor ends or wants this shim no more."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._supervisor, select.POLLIN)
        descriptors: list[int] = []
        while b"\n" not in self._buffer:
            if self._supervisor in dict(poll.poll()):
                return None
            piece = descriptor_passing.receive(self._channel, descriptors)
            if not piece:
                return None
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return launch_from(line, descriptors), line

    def _take_terminal(self, terminal: int | None) -> None:
        if terminal is not None:
            import termios

            # the leader of a session without one gets it as its controlling terminal, tty_ioctl(4)
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    def _hand_over(self, launch: Launch) -> None:
        """The proxy's own listeners, which are there before anything else."""
        listeners, self._listeners = self._listeners, []
        if launch.handover >= 0:
            self._give(launch, [("proxy", PROXY_PORT, listener) for listener in listeners])
        for listener in listeners:
            listener.close()

    def _open_door(self, launch: Launch) -> None:
        """What the door has besides: captured connections, names, what was granted, and who asks. In the network
        namespace, before the command is released."""
        if launch.handover < 0:
            return
        from doorward.launcher import transparent

        opened: list[transparent.Opened] = []
        refused = ""
        try:
            if launch.door.transparent:
                made = self._captured or _capture()
                if isinstance(made, OSError):
                    raise made
                opened, refused = made.opened, made.refused
            opened.insert(0, transparent.open_diagnosis())  # whoever knocks first is looked for too
            opened += transparent.open_granted(launch.door)
            if launch.door.on_demand:
                from doorward.launcher import socket_maker  # for few runs only

                opened.append(socket_maker.start())
            self._give(launch, opened)
            if refused:
                self._tell(launch, {"listener": "none", "port": 0, "refused": refused})
        except OSError as error:
            raise Refused("door", error.errno or errno.EIO) from error
        finally:
            transparent.close(opened)

    def _give(self, launch: Launch, opened: Iterable[tuple[str, int, Socket]]) -> None:
        for kind, port, each in opened:
            self._tell(launch, {"listener": kind, "port": port, "root": self._pid}, each)

    def _tell(self, launch: Launch, said: dict[str, object], each: Socket | None = None) -> None:
        try:
            namespaces.hand_over(launch.handover, [({"run": launch.run, "policy": launch.policy_id, **said}, each)])
        except OSError as error:
            raise Refused("network", error.errno or errno.EIO) from error

    def _look_after(self, launch: Launch) -> None:
        watches = launch.plan.watched
        absent = [f"{watch.root.rstrip('/')}/{watch.name}" for watch in watches if watch.kind != "link"]
        if absent:
            try:
                self._guard = register(launch.cache_dir, absent)
            except OSError as error:
                raise Refused("guard", error.errno or errno.EIO) from error
        try:
            # what is looked after is reached with the rights of whoever may change it, no more and no less
            act_as(launch.user)
        except OSError as error:
            raise Refused("identity", error.errno or errno.EIO) from error
        self._keeper = Keeper(watches)

    def _limit(self, launch: Launch) -> None:
        if not launch.held:
            return
        from doorward.launcher.limits import Measured  # for runs with limits only

        self._limited = True
        self._measured = Measured()
        if launch.cgroup:
            from doorward.launcher.cgroups import Cgroup

            grouped = {name for name, holder in launch.held if holder == "cgroup"}
            limits = launch.limits
            try:
                self._cgroup = Cgroup.make(
                    launch.cgroup,
                    memory=limits.memory if "memory" in grouped else None,
                    pids=limits.pids if "pids" in grouped else None,
                )
            except OSError as error:
                raise Refused("limits", error.errno or errno.EIO) from error

    # --- the start

    def _fork_starter(self) -> None:
        """The process that becomes bubblewrap, and waits until it is told; process 1 of a pid namespace of ours."""
        self._status, status_writer = os.pipe()
        self._fault, fault_writer = os.pipe()
        block, block_writer = os.pipe()
        # bubblewrap takes end of file on this pipe for a release. Open for writing too it never ends.
        self._block = os.open(f"/proc/self/fd/{block}", os.O_RDWR | os.O_CLOEXEC)
        os.close(block)
        os.close(block_writer)
        own = os.pidfd_open(os.getpid())
        if not self._own_pids:
            from doorward.launcher.syscalls import adopt_orphans

            adopt_orphans()
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
        self._starter, orders = ours.detach(), theirs.detach()
        child = os.fork()
        if child == 0:
            Waiting(orders, self._block, status_writer, fault_writer, own, self._inherited, self._ours_first).live()
        self._started = child
        for descriptor in (orders, status_writer, fault_writer, own):
            os.close(descriptor)

    def _start(self, launch: Launch, line: bytes) -> int:
        """Tells the starter; the channel of the watcher, -1 without one."""
        group = "" if self._cgroup is None else self._cgroup.path
        watcher, watched = self._watcher(launch)
        info = -1
        if launch.plan.masks and not self._ours_first:
            from doorward.launcher.gate import Gate

            self._gate = Gate(self._status)
            info = self._gate.info
        try:
            order(self._starter, line, launch.descriptors(), cgroup=group, watcher=watched, info=info)
        except OSError as error:
            raise Refused("start", error.errno or errno.EIO) from error
        for descriptor in (self._starter, *_distinct(launch.stdio)):
            os.close(descriptor)
        for descriptor in (watched, info):
            if descriptor >= 0:
                os.close(descriptor)
        return watcher

    def _open_door_as_root(self, launch: Launch) -> None:
        become_root(launch.user)
        try:
            self._open_door(launch)
        finally:
            act_as(launch.user)
        self._finish_door(launch)

    def _watcher(self, launch: Launch) -> tuple[int, int]:
        """A channel over which the starter sends the listener of its filter; -1 where nothing is watched."""
        if not launch.watching:
            return -1, -1
        from doorward.launcher.denials import Denials

        self._denials = Denials(tuple(path for _, paths in launch.plan.masks for path in paths))
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
        return ours.detach(), theirs.detach()

    def _take_listener(self, watcher: int, launch: Launch) -> None:
        """Nothing comes if the starter failed before it."""
        from doorward.launcher.denial_listener import DenialListener

        assert self._denials is not None
        received: list[int] = []
        descriptor_passing.receive(watcher, received)
        os.close(watcher)
        for listener in received:
            self._listener = DenialListener(
                listener,
                dict(launch.calls),
                self._denials,
                starter=self._started,
                bubblewrap=launch.bubblewrap,
            )

    # --- the life of the run

    def _attend(self, launch: Launch, watcher: int = -1) -> dict[str, Any]:
        fault = self._fault
        ended = os.pidfd_open(self._started)
        watch = DirectoryWatch(self._keeper.directories)
        poll = select.poll()
        gate = self._gate
        told = self._status if gate is None else gate
        for descriptor in (ended, self._channel, self._supervisor, told, fault, watch):
            poll.register(descriptor, select.POLLIN)
        if watcher >= 0:
            poll.register(watcher, select.POLLIN)
        patience = time.monotonic() + launch.deadline_s
        alive = not launch.bubblewrap
        status = b""
        error: dict[str, Any] | None = None
        killed = False
        pending: list[tuple[int, float]] = []
        next_look = 0.0
        budget = self._budget(launch)
        while True:
            timeout = _milliseconds(
                0.0 if b"\n" in self._buffer else None,  # an order came together with the plan
                None if alive else patience,
                next_look if watch.changed else None,
                time.monotonic() + _SIGNAL_RETRY_S if pending else None,
                budget.due if budget is not None else None,
            )
            ready = dict(poll.poll(timeout))
            now = time.monotonic()
            if watcher in ready:
                poll.unregister(watcher)
                self._take_listener(watcher, launch)
                if self._listener is not None:
                    poll.register(self._listener, select.POLLIN)
            listener = self._listener
            if listener is not None and listener.fileno() in ready and not listener.serve():
                poll.unregister(listener)
            if self._supervisor in ready:
                poll.unregister(self._supervisor)
                killed = True
                self._kill()
            if gate is not None and gate.fileno() in ready:
                child = gate.arrived()
                if child is not None:
                    poll.unregister(gate)
                    error = self._cover(launch, child) if child else None
                    if error is None:
                        gate.open()
                        poll.register(self._status, select.POLLIN)
                    else:
                        self._kill()
            if self._status in ready:
                piece = os.read(self._status, 4096)
                if not piece:
                    poll.unregister(self._status)
                status += piece
                if not alive and b"\n" in status:
                    if not self._ready:
                        error = self._join(launch, status)
                        if error is not None:
                            self._kill()
                    alive = self._ready or error is not None
            if fault in ready:
                poll.unregister(fault)
                text = os.read(fault, 4096)
                if text:
                    error = loads(text)
            if self._channel in ready or b"\n" in self._buffer:
                for order in self._orders(poll, self._channel in ready):
                    if "signal" in order:
                        pending.append((order["signal"], now + _SIGNAL_PATIENCE_S))
                    elif "release" in order:
                        self._released = True
                    else:
                        killed = True
                        self._kill()
            if watch.fileno() in ready:
                watch.drain()
            if ended in ready:
                break
            if self._released and self._ready:
                self._released = False
                if budget is not None:
                    budget.start(self._top())
                os.write(self._block, b"x")
                self._let_go = True
            if watch.changed and now >= next_look:
                watch.changed = False
                self._keeper.put_back(final=False)
                next_look = now + _WATCH_INTERVAL_S
            pending = [(number, until) for number, until in pending if not self._signal(launch, number) and now < until]
            if budget is not None and budget.due is not None and now >= budget.due:
                if budget.ended_at is not None:
                    budget.due = None
                    self._kill()
                elif budget.used_up(self._top()):
                    budget.end(now)
                    pending.append((signal.SIGXCPU, now + _SIGNAL_PATIENCE_S))
            if not alive and now >= patience:
                alive = True
                error = {"step": "silent", "errno": errno.ETIMEDOUT}
                self._kill()
        _, wait_status = os.waitpid(self._started, 0)
        if budget is not None:
            self._measured = self._measured._replace(time_used_up=budget.ended_at is not None)
        self._started = 0
        status += _rest(self._status)
        if error is None:
            # its pipe may have become readable together with the end
            text = _rest(fault)
            error = loads(text) if text else None
        return {
            "status": wait_status,
            "exit_code": exit_code(status),
            "killed": killed,
            "error": error,
            "passed": self._let_go and not _readable(self._block),
        }

    def _top(self) -> int:
        """The process that everything of the run is below, at every moment."""
        return self._started if self._own_pids else os.getpid()

    def _budget(self, launch: Launch) -> Budget | None:
        if launch.limits.cpu_time is None:
            return None
        from doorward.launcher.cpu_time import Budget

        return Budget(launch.limits.cpu_time)

    def _orders(self, poll: select.poll, readable: bool) -> list[dict[str, Any]]:
        piece = os.read(self._channel, 1 << 16) if readable else b""
        *lines, self._buffer = (self._buffer + piece).split(b"\n")
        orders: list[dict[str, Any]] = [loads(line) for line in lines]
        if readable and not piece:
            # closed without a word: nobody waits for this run any more
            poll.unregister(self._channel)
            orders.append({"kill": True})
        return orders

    def _cover(self, launch: Launch, pid: int) -> dict[str, Any] | None:
        """bubblewrap made the mount namespace: cover in it what is to be hidden, by a helper that joins it."""
        helper = os.fork()
        if helper == 0:
            code = errno.EIO
            try:
                from doorward.launcher.covering import cover_in

                cover_in(pid, launch.plan)
                code = 0
            except OSError as error:
                code = error.errno or errno.EIO
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1])
        if code == 0:
            return None
        return {"step": "hide" if code == errno.ENOENT else "mounts", "errno": code}

    def _join(self, launch: Launch, status: bytes) -> dict[str, Any] | None:
        """bubblewrap made the network namespace: open the listeners in it, by a helper that joins it."""
        pid = loads(status.partition(b"\n")[0]).get("child-pid", 0)
        helper = os.fork()
        if helper == 0:
            code = errno.EIO
            try:
                namespaces.join_network(pid)
                self._listeners = namespaces.listen()
                self._hand_over(launch)
                self._open_door(launch)
                code = 0
            except Refused as refused:
                code = refused.number
            except OSError as error:
                code = error.errno or errno.EIO
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1])
        if code in (errno.ENOENT, errno.ESRCH):
            return None  # it has ended already, and bubblewrap will, too
        if code != 0:
            return {"step": "join", "errno": code}
        self._finish_door(launch)
        return None

    def _finish_door(self, launch: Launch) -> None:
        """Everything was handed over: the command may start."""
        if launch.handover >= 0:
            os.close(launch.handover)
        self._ready = True

    def _signal(self, launch: Launch, number: int) -> bool:
        """Sends a signal to the command's first process; False while there is none."""
        command = self._started
        if launch.bubblewrap:
            init = first_child(self._started)
            command = first_child(init) if init else 0
        if not command:
            return False
        try:
            handle = os.pidfd_open(command)
        except OSError:
            return False
        try:
            signal.pidfd_send_signal(handle, number)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True

    def _kill(self) -> None:
        try:
            os.kill(self._started, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _end_everything(self) -> None:
        """Kills and collects what is left. Nothing is, where bubblewrap was process 1 of our namespace."""
        if self._started:
            self._kill()
            os.waitpid(self._started, 0)
            self._started = 0
        if self._own_pids:
            return
        while True:
            for child in children(os.getpid()):
                try:
                    os.kill(child, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _distinct(stdio: Stdio) -> set[int]:
    return {number for number in stdio if number is not None and number >= 0}


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _rest(descriptor: int) -> bytes:
    os.set_blocking(descriptor, False)
    data = b""
    try:
        while piece := os.read(descriptor, 4096):
            data += piece
    except BlockingIOError:
        pass
    return data


def _milliseconds(*deadlines: float | None) -> float | None:
    pending = [deadline for deadline in deadlines if deadline is not None]
    return max(0.0, (min(pending) - time.monotonic()) * 1000) if pending else None


def _shortened(undone: tuple[Undone, ...]) -> tuple[Undone, ...]:
    if len(undone) <= _MAXIMUM_UNDONE:
        return undone
    return (*undone[:_MAXIMUM_UNDONE], Undone("", "removed", f"and {len(undone) - _MAXIMUM_UNDONE} more"))

"""What a waiting shim is sent to start: one line of JSON, and the descriptors that go with it."""

from __future__ import annotations

from doorward.launcher.interface import Door, Identity, Limits, Stdio
from doorward.launcher.watch import Watch
from doorward.named_tuple import NamedTuple
from doorward.start_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# The descriptors, in the order in which those that exist are sent.
_NAMES = ("stdin", "stdout", "stderr", "terminal", "handover")


class Plan(NamedTuple):
    """`arguments` go with `masks` that are laid before bubblewrap mounts anything. `carrier` starts a command
    whose own arguments are too many; those are in `carried` then. `held` are standard streams (0, 1, 2) whose
    file must be opened anew through a read-only mount. `names` are files that say how names are found, and where they
    really lie: the command gets its own (see `name_files`). `copied` are ours, with what they stand in the place of."""

    arguments: tuple[str, ...] = ()
    masks: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a source, and the paths it is mounted over
    carrier: tuple[str, ...] = ()
    carried: str = ""
    watched: tuple[Watch, ...] = ()
    held: tuple[tuple[int, str], ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    fleeting: tuple[str, ...] = ()  # targets of the file mask that may be gone by then
    copied: tuple[tuple[str, str], ...] = ()


def plan_from(value: list[Any]) -> Plan:
    """The plan from what JSON made of one."""
    arguments, masks, carrier, carried, watched, held, names, fleeting, copied = value
    return Plan(
        tuple(arguments),
        tuple((source, tuple(targets)) for source, targets in masks),
        tuple(carrier),
        carried,
        tuple(Watch(kind, root, name, target, tuple(granted)) for kind, root, name, target, granted in watched),
        tuple((place, path) for place, path in held),
        tuple((name, path) for name, path in names),
        tuple(fleeting),
        tuple((source, target) for source, target in copied),
    )


class Launch(NamedTuple):
    """`bubblewrap` is the binary, empty for a run without a sandbox; `network` says that the sandbox has a
    network namespace of its own, `fresh_proc` that it gets a /proc of its own."""

    plan: Plan
    bubblewrap: str
    network: bool
    fresh_proc: bool
    argv: tuple[str, ...]
    cwd: str
    env: tuple[tuple[str, str], ...]  # for a run without a sandbox; else it is in the plan
    program: str  # the seccomp filter as hexadecimal digits, empty for none
    run: str
    policy_id: str
    deadline_s: float  # for bubblewrap's first sign of life
    cache_dir: str
    scoped: bool  # keep abstract unix sockets of others out of reach, where the network is the host's
    user: Identity | None  # whom the command runs as, unless the caller
    limits: Limits
    held: tuple[tuple[str, str], ...]  # each limit that is set, and what holds it
    cgroup: str  # below which the run gets a control group, empty for none
    watching: str  # the filter that watches calls, as `program`, empty for none
    calls: tuple[tuple[int, int], ...]  # its system calls: number, and index into `denial_calls.WATCHED`
    door: Door
    stdio: Stdio
    handover: int = -1

    def to_line(self) -> bytes:
        """The line. Bytes that are no text survive as lone surrogates; of descriptors only which are given."""
        given = [name for name, number in zip(_NAMES, self._numbers(), strict=True) if number >= 0]
        return dumps((*self[:-2], given)).encode() + b"\n"

    def descriptors(self) -> tuple[int, ...]:
        """The descriptors to send, in order."""
        return tuple(number for number in self._numbers() if number >= 0)

    def _numbers(self) -> tuple[int, ...]:
        terminal = self.stdio.terminal
        return (*self.stdio[:3], -1 if terminal is None else terminal, self.handover)


def identity_from(value: Sequence[Any]) -> Identity:
    """The identity from what JSON made of one."""
    name, uid, gid, groups = value
    return Identity(name, uid, gid, tuple(groups))


def launch_from(line: bytes, descriptors: Sequence[int]) -> Launch:
    """The launch in a line made by `to_line`, with the descriptors that came with it."""
    *values, given = loads(line)
    plan, bubblewrap, network, fresh_proc, argv, cwd, env, program, run, policy_id, deadline_s, *last = values
    cache_dir, scoped, user, limits, held, cgroup, watching, calls, (transparent, udp, loopback, on_demand) = last
    numbers = dict(zip(given, descriptors, strict=True))
    stdin, stdout, stderr, terminal, handover = (numbers.get(name, -1) for name in _NAMES)
    return Launch(
        plan=plan_from(plan),
        bubblewrap=bubblewrap,
        network=network,
        fresh_proc=fresh_proc,
        argv=tuple(argv),
        cwd=cwd,
        env=tuple((name, value) for name, value in env),
        program=program,
        run=run,
        policy_id=policy_id,
        deadline_s=deadline_s,
        cache_dir=cache_dir,
        scoped=scoped,
        user=None if user is None else identity_from(user),
        limits=Limits(*limits),
        held=tuple((name, holder) for name, holder in held),
        cgroup=cgroup,
        watching=watching,
        calls=tuple((number, index) for number, index in calls),
        door=Door(transparent, tuple(udp), tuple(loopback), on_demand),
        stdio=Stdio(stdin, stdout, stderr, None if terminal < 0 else terminal),
        handover=handover,
    )

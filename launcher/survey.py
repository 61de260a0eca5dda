"""Looks at the machine for one start: which paths of a policy exist now, and the mount plan that follows.

Done anew at each start, since a file that matches a pattern may have come since the last one.
"""

import os
import stat

from doorward.launcher.guards import guarded
from doorward.launcher.interface import Mode, SandboxPolicy
from doorward.launcher.mounts import Entry, Kind, MountPlan, Origin, parents, plan_mounts
from doorward.launcher.protected import absent, protect
from doorward.launcher.rules import PathRule, Rules, is_below
from doorward.launcher.unix_sockets import beyond_reach, bound_paths, socket_directories, sockets_in
from doorward.launcher.watch import Watch
from doorward.named_tuple import NamedTuple

# What a distribution keeps below /run although programs need it to start (NixOS).
_NEEDED_RUN = ("/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/wrappers")
# /proc entries that only file permissions guard, which root passes even without capabilities (core_pattern!).
# bubblewrap covers irq and bus; it means to cover sys too, but asks whether the directory can be written.
_ROOT_PROC = ("acpi", "asound", "driver", "dynamic_debug", "fs", "scsi", "sys", "sysrq-trigger")


class Survey(NamedTuple):
    """The plan of one start, and the names to look after while it runs. Of files that stand in the place of others the
    `copied` ones are copied before the user's rights are taken, who need not reach them."""

    plan: MountPlan
    watched: tuple[Watch, ...]
    replaced: tuple[tuple[str, str], ...] = ()
    sockets: frozenset[str] = frozenset()  # those of the host that are hidden
    copied: tuple[tuple[str, str], ...] = ()


def survey(
    policy: SandboxPolicy, rules: Rules, *, uid: int, fresh_proc: bool = True, unix_table: bytes | None = None
) -> Survey:
    """Builds the mount plan. `unix_table` is the text of /proc/net/unix, read here unless given."""
    mounted, copied = (policy.replaced, ()) if policy.user is None else ((), policy.replaced)
    if policy.mode in (Mode.DANGER_FULL_ACCESS, Mode.UNCONFINED):
        return Survey(plan_mounts([Entry("/", Kind.OPEN), _processes(fresh_proc)]), (), mounted, copied=copied)
    entries = _base(uid, fresh_proc)
    roots: list[str] = []
    if policy.mode is Mode.WORKSPACE_WRITE:
        entries.append(Entry(rules.workspace, Kind.WRITE, Origin.EXACT))
        roots.append(rules.workspace)
    else:
        entries.append(Entry(rules.workspace, Kind.READ, Origin.EXACT))
    missing: list[str] = []
    _add_rules(rules.rules, entries, roots, missing, policy.cache_dir)
    granted = frozenset(rule.path for rule in rules.rules if rule.kind is Kind.WRITE and rule.pattern is None)
    protection = protect(roots, granted, lambda: guarded(policy.cache_dir), policy.cache_dir)
    for path in protection.writable:
        entries.append(Entry(path, Kind.WRITE, Origin.GENERAL))
    for path in protection.pinned:
        entries.append(Entry(path, Kind.PIN))
    for path in protection.read_only:
        entries.append(Entry(path, Kind.READ, Origin.GENERAL, os.path.isdir(path)))
    for path in rules.sockets:
        entries.append(Entry(path, Kind.READ, Origin.EXACT, os.path.isdir(path)))
    plan = plan_mounts(entries)
    if plan.writable(rules.home):
        if os.path.isdir(rules.home):
            entries.append(Entry(rules.home, Kind.READ, Origin.GENERAL))
            _pin_above(rules.home, entries)
        else:
            missing.append(rules.home)
    # the sockets in there come and go while the run lasts, and who can reach them can answer its own questions
    questions = f"{rules.home}/approvals"
    if plan.visible(questions) and os.path.isdir(questions):
        entries.append(Entry(questions, Kind.HIDDEN, Origin.GENERAL))
        _pin_above(questions, entries)
    sockets = _hide_sockets(plan, rules, roots, unix_table, uid)
    entries.extend(sockets)

    plan = plan_mounts(entries)
    watched = dict.fromkeys(protection.watched)
    for path in missing:
        where = absent(path)
        if where is not None:
            watched[where] = None
    watches = tuple(watch for watch in watched if plan.writable(watch.root))
    return Survey(plan, watches, mounted, frozenset(entry.path for entry in sockets), copied)


def _processes(fresh_proc: bool) -> Entry:
    return Entry("/proc", Kind.PROCESSES if fresh_proc else Kind.READ)


def _base(uid: int, fresh_proc: bool) -> list[Entry]:
    """The layout every confined run has: the whole root read-only, and places of its own."""
    entries = [
        Entry("/", Kind.READ),
        Entry("/dev", Kind.DEVICES),
        Entry("/dev/shm", Kind.PRIVATE, mode=0o1777),
        _processes(fresh_proc),
        Entry(os.path.realpath("/tmp"), Kind.PRIVATE, mode=0o1777),
    ]
    run = os.path.realpath("/run")
    if os.path.isdir(run):
        entries.append(Entry(run, Kind.PRIVATE, sealed=True))
        entries.append(Entry(f"{run}/user/{uid}", Kind.PRIVATE, mode=0o700))
        entries.extend(Entry(path, Kind.READ) for path in _NEEDED_RUN if os.path.isdir(path))
        # the resolver's file is often a link into /run; without it no name resolves, not even localhost
        resolver = os.path.realpath("/etc/resolv.conf")
        if is_below(resolver, run) and os.path.isfile(resolver):
            entries.append(Entry(resolver, Kind.READ, directory=False))
    if os.path.isdir("/var/run") and os.path.realpath("/var/run") == "/var/run":
        entries.append(Entry("/var/run", Kind.PRIVATE, sealed=True))
    if uid == 0 and fresh_proc:
        for name in _ROOT_PROC:
            path = f"/proc/{name}"
            if os.path.exists(path):
                entries.append(Entry(path, Kind.READ, directory=os.path.isdir(path)))
    return entries


def _add_rules(
    rules: tuple[PathRule, ...], entries: list[Entry], roots: list[str], missing: list[str], cache_dir: str
) -> None:
    walks: dict[str, list[PathRule]] = {}
    for rule in rules:
        if rule.pattern is not None:
            walks.setdefault(rule.path, []).append(rule)
            continue
        mode = _mode(rule.path)
        if stat.S_ISLNK(mode):
            continue  # a loop of links: nothing can be reached through it
        if mode:
            entries.append(Entry(rule.path, rule.kind, Origin.EXACT, stat.S_ISDIR(mode)))
            if rule.kind is Kind.WRITE and stat.S_ISDIR(mode):
                roots.append(rule.path)
            if rule.kind is Kind.READ:
                _pin_above(rule.path, entries)
        elif rule.kind is not Kind.WRITE:
            missing.append(rule.path)
    if walks:
        from doorward.launcher.matches import Pattern, find_matches  # not needed by most runs

        for base, patterns in walks.items():
            wanted = [Pattern(rule.kind, rule.pattern) for rule in patterns if rule.pattern is not None]
            for name, kinds in find_matches(base, wanted, cache_dir):
                _add_match(kinds, f"{base.rstrip('/')}/{name}", entries, roots)


def _add_match(kinds: tuple[Kind, ...], path: str, entries: list[Entry], roots: list[str]) -> None:
    mode = _mode(path)
    linked = stat.S_ISLNK(mode)
    if linked:
        path = os.path.realpath(path)
        mode = _mode(path)
    if not mode or stat.S_ISLNK(mode):
        return  # gone meanwhile, or a link to nothing
    for kind in kinds:
        if kind is Kind.WRITE and linked:
            continue  # a link someone planted must not widen what may be written
        entries.append(Entry(path, kind, Origin.GENERAL, stat.S_ISDIR(mode)))
        if kind is Kind.WRITE and stat.S_ISDIR(mode):
            roots.append(path)
        if kind is Kind.READ:
            _pin_above(path, entries)


def _pin_above(path: str, entries: list[Entry]) -> None:
    # or its parent could be renamed away and another file put in its place
    entries.extend(Entry(above, Kind.PIN) for above in parents(path))


def _hide_sockets(
    plan: MountPlan, rules: Rules, roots: list[str], table: bytes | None, uid: int
) -> list[Entry]:
    if table is None:
        with open("/proc/net/unix", "rb") as file:
            table = file.read()
    hidden: list[Entry] = []
    shown = plan.shown_in()
    by_root = os.geteuid() == 0  # whose look goes further than the command's
    for directory in socket_directories(bound_paths(table), (rules.workspace, *roots)):
        if not plan.visible(directory) and directory not in shown:
            continue
        # every socket there, since one may have been renamed or linked after it was bound
        there = sockets_in(directory)
        if there and by_root and beyond_reach(directory, uid):
            continue
        for path in there:
            if path not in rules.sockets and plan.visible(path):
                hidden.append(Entry(path, Kind.HIDDEN, Origin.GENERAL, directory=False))
    return hidden


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0

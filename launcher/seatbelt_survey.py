"""Looks at a Mac for one start: the paths of a policy as a view for the profile, and what is sifted afterwards."""

import os

from doorward.launcher.interface import Mode, SandboxPolicy, UnenforceableRule
from doorward.launcher.mounts import Entry, Kind, MountPlan, Origin, plan_mounts
from doorward.launcher.protected import PROTECTED_NAMES, protect
from doorward.launcher.rules import Rules, is_below
from doorward.launcher.seatbelt_filters import spellings
from doorward.launcher.seatbelt_profile import View, pattern_of
from doorward.launcher.watch import Watch
from doorward.named_tuple import NamedTuple

# Never writable as a whole; what Linux has too is refused when the rules are read.
_FOLDERS = frozenset(
    ("/Applications", "/Library", "/Users", "/Volumes", "/cores", "/opt", "/private", "/private/etc", "/private/var")
)
# Never writable, nor anything below.
_SYSTEM = ("/System", "/Library/LaunchAgents", "/Library/LaunchDaemons")


class Look(NamedTuple):
    """`plan` answers whether a command can be seen, `sifted` are repositories that do not exist yet."""

    view: View
    plan: MountPlan
    sifted: tuple[Watch, ...]


def look(policy: SandboxPolicy, rules: Rules, temporary: str, port: int | None, terminal: str = "") -> Look:
    """The view of one start. Raises UnenforceableRule, SandboxUnavailable."""
    entries = [Entry("/", Kind.READ)]
    patterns = []
    sifted: tuple[Watch, ...] = ()
    rules = rules._replace(
        workspace=as_on_disk(rules.workspace),
        rules=tuple(rule._replace(path=as_on_disk(rule.path)) for rule in rules.rules),
        sockets=tuple(map(as_on_disk, rules.sockets)),
    )
    if policy.mode in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE):
        roots: list[str] = []
        kind = Kind.WRITE if policy.mode is Mode.WORKSPACE_WRITE else Kind.READ
        entries.append(Entry(rules.workspace, kind, Origin.EXACT))
        if kind is Kind.WRITE:
            refuse_system(policy.workspace, rules.workspace)
            roots.append(rules.workspace)
        for rule in rules.rules:
            if rule.kind is Kind.WRITE:
                refuse_system(rule.entry, rule.path)
            if rule.pattern is not None:
                patterns.append(pattern_of(rule.kind, rule.entry, rule.path))
                continue
            entries.append(Entry(rule.path, rule.kind, Origin.EXACT, os.path.isdir(rule.path)))
            if rule.kind is Kind.WRITE and os.path.isdir(rule.path):
                roots.append(rule.path)
        granted = frozenset(rule.path for rule in rules.rules if rule.kind is Kind.WRITE and rule.pattern is None)
        protection = protect(roots, granted)
        entries += [Entry(path, Kind.WRITE, Origin.GENERAL) for path in protection.writable]
        entries += [Entry(path, Kind.READ, Origin.GENERAL) for path in protection.read_only]
        # a rule on a path needs nothing to stand there, so what is absent stays absent
        named = [watch for watch in protection.watched if watch.kind != "repository"]
        entries += [Entry(f"{w.root.rstrip('/')}/{w.name}", Kind.READ, Origin.GENERAL) for w in named]
        sifted = tuple(watch for watch in protection.watched if watch.kind == "repository")
    view = View(
        mode=policy.mode,
        network=policy.network,
        entries=tuple(entries),
        patterns=tuple(patterns),
        home=rules.home,
        temporary=temporary,
        port=port,
        sockets=rules.sockets,
        terminal=terminal,
        own=(*PROTECTED_NAMES, ".git/hooks", ".git/config") if patterns else (),
        local_binding=policy.local_binding,
        trust_service=policy.trust_service,
    )
    return Look(view, plan_mounts([*entries, Entry(temporary, Kind.WRITE, Origin.EXACT)]), sifted)


def refuse_system(entry: str, path: str) -> None:
    """Raises UnenforceableRule for a folder of macOS that is never made writable."""
    for name in spellings(path):
        if name in _FOLDERS or any(name == top or is_below(name, top) for top in _SYSTEM):
            raise UnenforceableRule(entry, f"{path} is a system folder of macOS, which is never made writable")


def as_on_disk(path: str) -> str:
    """`path` with its letters as the disk has them: on a Mac `/users/ada` is `/Users/ada`, but not to Seatbelt.

    fcntl(2) of macOS, F_GETPATH; elsewhere, and for what cannot be opened, as it is.
    """
    import fcntl

    get_path: int | None = getattr(fcntl, "F_GETPATH", None)
    if get_path is None:
        return path
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return path
    try:
        # <sys/syslimits.h>: PATH_MAX 1024
        return os.fsdecode(fcntl.fcntl(handle, get_path, bytes(1024)).partition(b"\0")[0])
    except OSError:
        return path
    finally:
        os.close(handle)

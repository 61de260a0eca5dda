"""The mount planner: from rules on paths to an ordered list of mounts. Pure; it reads no file system.

- An entry is a path (absolute, symlinks resolved) and what it shall be inside. The deepest entry at or above
  a path decides about that path, so the order in which entries are given never matters.
- Two entries on one path: an entry a person wrote out beats one found by a pattern or known by us, which
  beats the base layout; between equals the stricter wins (hidden, then read-only, then read-write).
- A mount is made parent before child. An entry that changes nothing is left out, since each mount costs time.
- A hidden directory is an empty one that cannot be written; if something below it stays visible it becomes
  a tmpfs that is made read-only once everything below is in place.
"""

from __future__ import annotations

from doorward.named_tuple import NamedTuple
from doorward.plain_enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Kind(IntEnum):
    """What a path is inside. Higher is stricter up to HIDDEN."""

    # Keeps what holds there anyway, but as a mount of its own where that is writable: a mount point cannot
    # be renamed, so what is protected below it stays where it is.
    PIN = -1
    OPEN = 0  # read-write with device nodes: the whole root under danger-full-access
    WRITE = 1
    READ = 2
    HIDDEN = 3
    PRIVATE = 4  # a fresh tmpfs of the run's own
    DEVICES = 5  # a fresh /dev
    PROCESSES = 6  # a fresh /proc


class Origin(IntEnum):
    """Who put an entry there; the higher wins on one and the same path."""

    BASE = 0
    GENERAL = 1  # protected names, and what a pattern matched
    EXACT = 2


class Entry(NamedTuple):
    """One rule on one existing path."""

    path: str
    kind: Kind
    origin: Origin = Origin.BASE
    directory: bool = True
    mode: int = 0o755  # of a private tmpfs
    sealed: bool = False  # a private tmpfs that is made read-only at the end


class Mount(NamedTuple):
    """One step of the plan, in bubblewrap's words; `hide-*` bind our mask file or mask directory."""

    step: str  # ro-bind, bind, dev-bind, tmpfs, dev, proc, hide-file, hide-directory, remount-ro
    path: str
    mode: int = 0


class MountPlan:
    """The ordered mounts, and the answer to what a path will be inside."""

    def __init__(self, mounts: tuple[Mount, ...], effective: dict[str, Kind]) -> None:
        self.mounts = mounts
        self._effective = effective

    def kind(self, path: str) -> Kind:
        """What `path` (absolute, resolved) is inside: the kind of the deepest entry at or above it."""
        effective = self._effective
        while True:
            found = effective.get(path)
            if found is not None:
                return found
            path = path[: path.rfind("/")] or "/"

    def visible(self, path: str) -> bool:
        """Whether the host's file at `path` can be seen inside."""
        return self.kind(path) <= Kind.READ

    def writable(self, path: str) -> bool:
        """Whether the host's file at `path` can be changed from inside, as far as mounts go."""
        return self.kind(path) <= Kind.WRITE

    def shown_in(self) -> frozenset[str]:
        """The directories that hold a visible entry of the plan, whether or not they are visible themselves."""
        return frozenset(path[: path.rfind("/")] or "/" for path, kind in self._effective.items() if kind <= Kind.READ)

    def mounted(self, path: str) -> bool:
        """Whether `path` itself is a mount of the plan."""
        return path in self._effective


def components(path: str) -> tuple[str, ...]:
    """`/a/b` as `("a", "b")`: sorts a directory right before what lies below it."""
    return tuple(part for part in path.split("/") if part)


def parents(path: str) -> Iterable[str]:
    """Every directory above `path`, deepest first, down to `/`."""
    while path != "/":
        path = path[: path.rfind("/")] or "/"
        yield path


def plan_mounts(entries: Iterable[Entry]) -> MountPlan:
    """Orders `entries` into mounts. There must be one for `/`."""
    chosen: dict[str, Entry] = {}
    pins: set[str] = set()
    for entry in entries:
        if entry.kind is Kind.PIN:
            pins.add(entry.path)
            chosen.setdefault(entry.path, entry)
            continue
        known = chosen.get(entry.path)
        # a pin says nothing about what a path is, whoever put it there
        if known is None or known.kind is Kind.PIN or (entry.origin, entry.kind) > (known.origin, known.kind):
            chosen[entry.path] = entry
    ordered = sorted(chosen.values(), key=lambda entry: components(entry.path))

    effective: dict[str, Kind] = {}
    plan = MountPlan((), effective)
    kept: list[Entry] = []
    exposed_below: set[str] = set()  # hidden directories that keep something visible below them
    for entry in ordered:
        above = plan.kind(entry.path[: entry.path.rfind("/")] or "/") if entry.path != "/" else None
        if above is Kind.WRITE and entry.path in pins and entry.kind in (Kind.PIN, Kind.WRITE):
            entry = entry._replace(kind=Kind.WRITE)
        elif not _changes_something(entry, above):
            continue
        effective[entry.path] = entry.kind
        kept.append(entry)
        if above is Kind.HIDDEN:
            exposed_below.add(next(parent for parent in parents(entry.path) if parent in effective))

    mounts: list[Mount] = []
    sealed: list[Mount] = []
    for entry in kept:
        mounts.append(_mount(entry, entry.path in exposed_below))
        if entry.sealed or entry.path in exposed_below:
            sealed.append(Mount("remount-ro", entry.path))
    plan.mounts = (*mounts, *sealed)
    return plan


def _changes_something(entry: Entry, above: Kind | None) -> bool:
    if above is None:
        return True
    if entry.kind is Kind.PIN:
        return False
    if entry.kind is Kind.HIDDEN:
        # nothing of the host shows through a fresh or hidden directory, so there is nothing to hide
        return above <= Kind.READ
    if above is Kind.OPEN and entry.kind is Kind.WRITE:
        return False
    return entry.kind is not above or entry.kind is Kind.PRIVATE


def _mount(entry: Entry, exposed_below: bool) -> Mount:
    match entry.kind:
        case Kind.OPEN:
            return Mount("dev-bind", entry.path)
        case Kind.WRITE:
            return Mount("bind", entry.path)
        case Kind.READ:
            return Mount("ro-bind", entry.path)
        case Kind.PRIVATE:
            return Mount("tmpfs", entry.path, entry.mode)
        case Kind.DEVICES:
            return Mount("dev", entry.path)
        case Kind.PROCESSES:
            return Mount("proc", entry.path)
        case Kind.HIDDEN if exposed_below:
            return Mount("tmpfs", entry.path, 0o755)
        case _:
            return Mount("hide-directory" if entry.directory else "hide-file", entry.path)

"""From a mount plan to a Seatbelt profile: text that holds no path, and the paths beside it as parameters. Pure.

- In SBPL the last matching rule decides, in a mount plan the deepest mount. So the plan's order is the profile's.
- Paths and patterns go in as parameters (`-D KEY=value`), never into the text: a name cannot end a rule.
- A pattern needs no look at the disk; it also holds for what is made later. An exact rule below one of its matches
  is deeper, so it is said again after it.
- What is refused must not come back under another name: a directory above it cannot be renamed or removed.
"""

from __future__ import annotations

import re

from doorward.launcher import seatbelt_base as base
from doorward.launcher import seatbelt_filters as filters
from doorward.launcher.globs import split_glob, translate
from doorward.launcher.interface import Mode, UnenforceableRule
from doorward.launcher.mounts import Entry, Kind, Origin, parents, plan_mounts
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.launcher.interface import Network

# sandbox-exec's arguments go through execve(2): text and parameters of more than this are refused (ARG_MAX of
# macOS is 1 MiB, shared with the command's own arguments and variables).
_LARGEST = 512 << 10

_READING = "file-read* file-map-executable process-exec"
_WRITING = "file-write* file-link"


class Pattern(NamedTuple):
    """One rule with a glob: `pattern` as `globs.split_glob` gives it, below the directory `base`."""

    kind: Kind
    base: str
    pattern: str


class View(NamedTuple):
    """What a run shall see. `entries` are resolved paths, with one for `/`; `own` are protected names that a writable
    pattern's matches keep; `temporary` is the run's own folder; `port` is the proxy's, None without one;
    `terminal` is the device of the command's own terminal, if it has one."""

    mode: Mode
    network: Network
    entries: tuple[Entry, ...]
    patterns: tuple[Pattern, ...]
    home: str
    temporary: str
    port: int | None = None
    sockets: tuple[str, ...] = ()
    terminal: str = ""
    own: tuple[str, ...] = ()
    local_binding: bool = False
    trust_service: bool = True


class Profile(NamedTuple):
    """`text` for `sandbox-exec -p`, `parameters` for its `-D KEY=value`."""

    text: str
    parameters: tuple[tuple[str, str], ...]

    def arguments(self) -> tuple[str, ...]:
        """sandbox-exec(1)'s arguments up to the command."""
        return ("-p", self.text, *(f"-D{key}={value}" for key, value in self.parameters), "--")


def make_profile(view: View) -> Profile:
    """The profile for `view`. Raises UnenforceableRule for a path or pattern that cannot be said."""
    writer = _Writer()
    if view.mode is Mode.DANGER_FULL_ACCESS:
        writer.text(base.OPEN_BUT_NETWORK)
        _network(writer, view)
        return writer.profile()
    writer.text(base.BASE)
    if view.trust_service:
        writer.text(base.TRUST_SERVICE)
    if view.terminal:
        writer.text("\n; the run's own terminal\n")
        writer.rule("allow", "file-read* file-write* file-ioctl", "TERMINAL", literal=(view.terminal,))
    _files(writer, view)
    _network(writer, view)
    return writer.profile()


def _files(writer: _Writer, view: View) -> None:
    writer.text("\n; files: the deepest rule about a path comes last\n")
    private = Entry(view.temporary, Kind.WRITE, Origin.EXACT)
    chosen = {mount.path for mount in plan_mounts((*view.entries, private)).mounts}
    entries = _decided((*view.entries, private))
    for entry in entries:
        # a rule that a person wrote is there even where it changes nothing, to be found by whoever looks for it
        if entry.path != "/" and (entry.path in chosen or entry.origin is Origin.EXACT):
            writer.entry(entry)
    patterns = sorted(view.patterns, key=lambda pattern: pattern.kind)  # of two on one path the stricter
    for pattern in patterns:
        writer.pattern(pattern, view.own)
    for entry in entries:
        matched = [pattern for pattern in patterns if entry.origin is Origin.EXACT and _matches(pattern, entry.path)]
        if matched:
            writer.entry(entry)
            for pattern in patterns:
                if pattern not in matched:
                    writer.pattern(pattern, view.own)
    _keep_names(writer, view, entries)
    writer.text("\n; doorward's own folder\n")
    refused = filters.refused_below(view.home)
    writer.rule("deny", _WRITING, "HOME", subpath=filters.spellings(view.home), regex=refused)
    writer.text("(deny file-write-setugid)\n")


def _decided(entries: tuple[Entry, ...]) -> list[Entry]:
    """One entry a path, by the planner's rule, parents first."""
    chosen: dict[str, Entry] = {}
    for entry in entries:
        known = chosen.get(entry.path)
        if entry.kind is not Kind.PIN and (known is None or (entry.origin, entry.kind) > (known.origin, known.kind)):
            chosen[entry.path] = entry
    return sorted(chosen.values(), key=lambda entry: tuple(part for part in entry.path.split("/") if part))


def _matches(pattern: Pattern, path: str) -> bool:
    """Whether `path` or a directory above it is a match of `pattern`."""
    inside = pattern.base.rstrip("/") + "/"
    wanted = re.compile(translate(pattern.pattern), re.IGNORECASE)
    return any(
        above.startswith(inside) and wanted.fullmatch(above[len(inside) :]) is not None
        for above in (path, *parents(path))
    )


def _keep_names(writer: _Writer, view: View, entries: list[Entry]) -> None:
    """Renaming a directory takes what is below it along, out of reach of a rule that names a path."""
    roots = [entry.path for entry in entries if entry.kind is Kind.WRITE]
    named = [entry.path for entry in entries if entry.kind in (Kind.READ, Kind.HIDDEN)]
    above = [*roots, *(pattern.base for pattern in view.patterns)]
    for path in (*named, *above):
        above += parents(path)
    kept = dict.fromkeys(path for path in above if any(path == root or path.startswith(f"{root}/") for root in roots))
    writer.text("\n; what is named above keeps its name\n")
    for path in kept:
        exact = tuple(f"{text.removesuffix('(/|$)')}$" for text in filters.refused_below(path))
        writer.rule("deny", "file-write-unlink", "KEEP", literal=filters.spellings(path), regex=exact)
    for pattern in view.patterns:
        if pattern.kind is not Kind.WRITE and (expressions := filters.glob_parents(pattern.base, pattern.pattern)):
            writer.rule("deny", "file-write-unlink", "KEEP", regex=expressions)


def _network(writer: _Writer, view: View) -> None:
    confined = view.mode is not Mode.DANGER_FULL_ACCESS
    if confined:
        writer.text("\n; unix sockets: those the run makes itself in its temporary folder, and those granted by name\n")
        for path in filters.spellings(view.temporary):
            key = writer.parameter("SOCKET", path)
            writer.text(f'(allow network-bind network-inbound (local unix-socket (subpath (param "{key}"))))\n')
            writer.text(f'(allow network-outbound (remote unix-socket (subpath (param "{key}"))))\n')
        for granted in view.sockets:
            for path in filters.spellings(granted):
                key = writer.parameter("SOCKET", path)
                writer.text(f'(allow network-outbound (remote unix-socket (subpath (param "{key}"))))\n')
    if view.network == "full":
        if confined:
            writer.text(base.NETWORK_OPEN)
        return
    if view.network == "proxied" and view.port is not None:
        # the filter takes only `localhost` or `*` for a host, and this port is nobody else's while the run lasts
        writer.text("\n; the proxy, and no other port\n")
        writer.text(f'(allow network-outbound (remote ip "localhost:{view.port:d}"))\n')
    if view.local_binding:
        writer.text(base.LOCAL_BINDING)


class _Writer:
    """Collects text and parameters."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._parameters: list[tuple[str, str]] = []
        self._keys: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def text(self, text: str) -> None:
        """Adds constant text."""
        self._text.append(text)

    def parameter(self, prefix: str, value: str) -> str:
        """The key of a parameter with that value."""
        known = self._keys.get((prefix, value))
        if known is not None:
            return known
        number = self._counts.get(prefix, 0)
        self._counts[prefix] = number + 1
        key = self._keys[(prefix, value)] = f"{prefix}_{number}"
        self._parameters.append((key, value))
        return key

    def rule(
        self,
        effect: str,
        operations: str,
        prefix: str,
        *,
        subpath: tuple[str, ...] = (),
        literal: tuple[str, ...] = (),
        regex: tuple[str, ...] = (),
    ) -> None:
        """One rule; any of the paths and expressions may match."""
        named = [("subpath", value, prefix) for value in subpath]
        named += [("literal", value, prefix) for value in literal]
        named += [("regex", value, f"{prefix}_RE") for value in regex]
        places = " ".join(f'({name} (param "{self.parameter(key, value)}"))' for name, value, key in named)
        self._text.append(f"({effect} {operations} {places})\n")

    def entry(self, entry: Entry) -> None:
        """What one path is inside, whatever was said of it before."""
        places = filters.spellings(entry.path)
        if entry.kind is Kind.WRITE:
            self.rule("allow", f"{_READING} {_WRITING}", "WRITE", subpath=places)
        elif entry.kind is Kind.READ:
            if entry.origin is Origin.EXACT:
                self.rule("allow", _READING, "READ", subpath=places)
            self.rule("deny", _WRITING, "READ", subpath=places, regex=filters.refused_below(entry.path))
        elif entry.kind is Kind.HIDDEN:
            refused = filters.refused_below(entry.path)
            self.rule("deny", f"{_READING} {_WRITING}", "HIDDEN", subpath=places, regex=refused)
        else:
            raise UnenforceableRule(entry.path, f"macOS has nothing like {entry.kind.name}")

    def pattern(self, pattern: Pattern, own: tuple[str, ...]) -> None:
        """What the matches of one pattern are inside."""
        if pattern.pattern == "":
            self.entry(Entry(pattern.base, pattern.kind, Origin.EXACT))
            return
        writable = pattern.kind is Kind.WRITE
        expression = filters.glob(pattern.base, pattern.pattern, any_case=not writable)
        if writable:
            self.rule("allow", f"{_READING} {_WRITING}", "WRITE", regex=(expression,))
            stem = expression.removesuffix("(/|$)")
            names = tuple(f"{stem}/{filters.quote(name, True)}(/|$)" for name in own)
            if names:
                self.rule("deny", _WRITING, "OWN", regex=names)
        elif pattern.kind is Kind.READ:
            self.rule("deny", _WRITING, "READ", regex=(expression,))
        else:
            self.rule("deny", f"{_READING} {_WRITING}", "HIDDEN", regex=(expression,))

    def profile(self) -> Profile:
        """What was collected. Raises UnenforceableRule if it is more than a program can be given."""
        text = "".join(self._text)
        size = len(text) + sum(len(key) + 4 * len(value) + 4 for key, value in self._parameters)
        if size > _LARGEST:
            raise UnenforceableRule(
                f"{len(self._parameters)} path rules",
                f"together they are {size >> 10} KiB, more than sandbox-exec can be given",
                "Use patterns or directories in place of single files.",
            )
        return Profile(text, tuple(self._parameters))


def pattern_of(kind: Kind, entry: str, directory: str) -> Pattern:
    """The pattern in a rule's text `entry`, whose fixed part is `directory` once resolved."""
    return Pattern(kind, directory, split_glob(entry)[1])

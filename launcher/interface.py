"""What goes into a platform's door and what comes out, as values. What the door itself offers is in `protocols`."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    Network = Literal["off", "proxied", "full"]

    Layer = Literal["kernel", "env-only", "none"]

    Require = Literal["full", "best-effort"]

    UndoneHow = Literal["removed", "link restored", "settings removed", "could not be undone"]
else:
    Network = Layer = Require = UndoneHow = str

# The proxy's port inside a sandbox with its own network namespace, on 127.0.0.1 and on ::1.
# Nothing else lives in that namespace, so it can be fixed.
PROXY_PORT = 3128
# Where redirected connections arrive, likewise.
TRANSPARENT_PORT = 3129


class Mode(StrEnum):
    """How much of the file system may be written."""

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    DANGER_FULL_ACCESS = "danger-full-access"
    # The bypass flag: no sandbox at all, only the closing of descriptors and the end of the whole tree.
    UNCONFINED = "unconfined"


class Identity(NamedTuple):
    """Whom a command runs as when that is not the caller; `groups` are the supplementary ones."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


class Limits(NamedTuple):
    """What a run may use; None is no limit. `memory` is in bytes, `cpu_time` in seconds, `pids` counts threads too,
    `files` are open files of each process. docs/sandbox.md says which are of the run and which of each process."""

    memory: int | None = None
    pids: int | None = None
    cpu_time: float | None = None
    files: int | None = None

    def set_values(self) -> dict[str, int | float]:
        """Those that are set, by name."""
        return {name: value for name, value in zip(self._fields, self, strict=True) if value is not None}


class LimitHit(NamedTuple):
    """A limit the run reached. `by` is what held it: `cgroup` or `doorward`."""

    limit: str
    value: int | float
    by: str
    message: str


class Door(NamedTuple):
    """What the sandbox's network namespace holds besides the proxy's own port. `transparent`: connections of programs
    that know no proxy are redirected, and names are answered; `udp`: ports whose datagrams are relayed; `loopback`:
    ports of the host's loopback that appear at the same port inside; `on_demand`: more sockets of the namespace may be
    asked for while the command runs."""

    transparent: bool = False
    udp: tuple[int, ...] = ()
    loopback: tuple[int, ...] = ()
    on_demand: bool = False


class SandboxPolicy(NamedTuple):
    """What a run may touch. Paths are absolute, relative to the workspace, or start with `~/`;
    `write`, `read_only` and `deny_read` may be globs (`*`, `?`, `[...]`, `**`). `user` is another user than the
    caller, who must be root then."""

    mode: Mode
    workspace: str
    home: str  # $DOORWARD_HOME: never writable from inside
    cache_dir: str  # where the seccomp filter and the mask files are kept, 0700
    network: Network = "proxied"
    write: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()
    allow_unix: tuple[str, ...] = ()
    require: Require = "full"
    # files of ours that stand in the place of others, read-only, as (source, target): existing files, links followed
    replaced: tuple[tuple[str, str], ...] = ()
    user: Identity | None = None
    limits: Limits = Limits()
    explain: bool = False  # watch calls that change something, to tell which of them the sandbox refused
    # macOS has no network namespace and one trust service for the whole machine
    local_binding: bool = False  # servers on localhost may be bound, and every port there dialled
    trust_service: bool = True  # the system verifies certificates for programs that have no store of their own
    door: Door = Door()  # for network "proxied"


class Enforcement(NamedTuple):
    """What really holds, layer by layer."""

    filesystem: Layer
    network: Layer
    process: Layer
    syscalls: Layer


class Command(NamedTuple):
    """What to run. `env` is the complete environment for inside; nothing is added to it but `PWD`."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]


class Stdio(NamedTuple):
    """The three descriptors of the command; -1 stands for /dev/null. `terminal` is the slave side of a
    pseudo-terminal that becomes the command's controlling terminal (usually the same three times)."""

    stdin: int
    stdout: int
    stderr: int
    terminal: int | None = None


class Undone(NamedTuple):
    """Something the command made or changed under a protected name, and that was put back."""

    path: str
    what: UndoneHow
    detail: str = ""


class Denied(NamedTuple):
    """Something the sandbox refused while the command ran. `why` is `outside` (of what may be written), `protected`
    (or read-only, in the midst of it), `hidden`, `private` (the sandbox has a folder of its own there) or `socket`;
    `grant` is the path that would have to be granted."""

    path: str
    operation: str
    why: str
    grant: str


class LaunchFailure(NamedTuple):
    """Why the command did not start. Nothing of it ran, and what stands on its stderr is not its own."""

    kind: Literal["sandbox", "not-found", "not-executable", "too-large", "directory", "malformed"]
    sentence: str
    remedy: str = ""


class Outcome(NamedTuple):
    """How a run ended. `exit_code` is what doorward exits with (128+n for a signal); `signal` is the n of
    it, read off the code as shells do, since bubblewrap reports no more than that."""

    exit_code: int
    signal: int | None = None
    failure: LaunchFailure | None = None
    undone: tuple[Undone, ...] = ()
    limits_hit: tuple[LimitHit, ...] = ()
    denied: tuple[Denied, ...] = ()


class SandboxUnavailable(Exception):
    """The machine cannot hold the policy; the command was not run. Maps to exit status 125."""

    def __init__(self, sentence: str, remedy: str = "") -> None:
        super().__init__(f"{sentence} {remedy}".rstrip())
        self.sentence = sentence
        self.remedy = remedy


class UnenforceableRule(ValueError):
    """A path rule that cannot hold as written. Maps to exit status 2."""

    def __init__(self, entry: str, sentence: str, remedy: str = "") -> None:
        super().__init__(f"{entry}: {sentence}")
        self.entry = entry
        self.sentence = sentence
        self.remedy = remedy

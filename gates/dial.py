"""Everything the gates read: autonomy is a dial, and this is where it stands."""

from __future__ import annotations

from os.path import normpath

from doorward.gates.action import Action
from doorward.gates.command_knowledge import Knowledge, knowledge_of
from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:  # most runs have neither a rule nor a reviewer, and start without loading them
    from collections.abc import Callable, Sequence

    from doorward.gates.command_knowledge import Locate
    from doorward.gates.policy_match import PolicyMatch
    from doorward.gates.review import Review


class SandboxMode(StrEnum):
    """How far the operating system's sandbox reaches; strictest first."""

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    DANGER_FULL_ACCESS = "danger-full-access"


class ApprovalPolicy(StrEnum):
    """When somebody is asked; strictest first."""

    UNTRUSTED = "untrusted"
    ON_REQUEST = "on-request"
    ON_FAILURE = "on-failure"
    NEVER = "never"


class NetworkMode(StrEnum):
    """What the sandbox can reach; strictest first."""

    OFF = "off"
    LIMITED = "limited"  # proxied, and requests may only read
    PROXIED = "proxied"
    FULL = "full"


class Trust(StrEnum):
    """What the person said about the project. Nothing said is a state of its own."""

    TRUSTED = "trusted"
    UNKNOWN = "unknown"
    UNTRUSTED = "untrusted"


NETWORK_OF_MODE = {
    SandboxMode.READ_ONLY: NetworkMode.OFF,
    SandboxMode.WORKSPACE_WRITE: NetworkMode.PROXIED,
    SandboxMode.DANGER_FULL_ACCESS: NetworkMode.FULL,
}
"""The network mode where none was given (DESIGN.md §6)."""


PRIVATE_TEMP = ("/tmp", "/dev/shm")
"""What a command has of its own, gone with the run (DESIGN.md §6)."""


def no_rules(action: Action) -> Sequence[PolicyMatch]:
    """A policy without a rule."""
    return ()


def nothing_listed(host: str, port: int) -> str:
    """An empty allowlist."""
    return "deny"


class Dial(NamedTuple):
    """The configuration of one decision. Enums may be given as their text; a text that is no member raises
    ValueError in `resolve`, so that a typing mistake never reads as the looser setting.

    Paths are absolute and canonical. `writable_roots` are `--add-dir` and `filesystem.write`; `read_only` and
    `hidden` are `filesystem.read_only` and `filesystem.deny_read` as paths, the protected names under the writable
    roots among the former (without those granted by name). `home` is $DOORWARD_HOME, "" where there is none.
    `network` None means that it follows the sandbox mode. `features` are those in effect, `known_features` all that
    can be switched on (None: not known). `trusted_hooks` holds
    content hashes, `approvals` the keys of `approval_key` that were given in this session.

    `policy` gives the rules an action matches (the strictest counts, their order does not); `knowledge` says what
    is known of a command, given the folders whose programs are not to be believed and `locate`, which finds a program
    (its name, PATH, the working folder; None: nothing is looked up); `decide_host` is the allowlist:
    "allow", "ask" or "deny" by name alone; `reviewer` judges a risky action in a person's place;
    `canonical` makes an absolute path canonical (the supervisor passes `os.path.realpath`).
    """

    workspace: str
    sandbox_mode: str = SandboxMode.WORKSPACE_WRITE
    approval_policy: str = ApprovalPolicy.ON_REQUEST
    writable_roots: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    private_temp: tuple[str, ...] = PRIVATE_TEMP
    home: str = ""
    network: str | None = None
    features: frozenset[str] = frozenset()
    known_features: frozenset[str] | None = None
    project_trust: str = Trust.UNKNOWN
    trusted_hooks: frozenset[str] = frozenset()
    approvals: frozenset[str] = frozenset()
    bypass_approvals_and_sandbox: bool = False
    bypass_hook_trust: bool = False
    policy: Callable[[Action], Sequence[PolicyMatch]] = no_rules
    knowledge: Callable[[Action, Sequence[str], Locate | None], Knowledge] = knowledge_of
    locate: Locate | None = None
    decide_host: Callable[[str, int], str] = nothing_listed
    reviewer: Callable[[Action, Sequence[str]], Review] | None = None
    canonical: Callable[[str], str] = normpath

    @property
    def network_mode(self) -> NetworkMode:
        """The network mode in effect."""
        return NETWORK_OF_MODE[SandboxMode(self.sandbox_mode)] if self.network is None else NetworkMode(self.network)

    @property
    def network_switch(self) -> str:
        """The setting that decided the network mode."""
        return f"sandbox_mode={self.sandbox_mode}" if self.network is None else f"network.mode={self.network}"

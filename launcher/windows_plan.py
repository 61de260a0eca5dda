"""From a policy to what Windows is told: which access control entries, which token, which job. Pure but for two looks.

A write-restricted token may write only where both the user and one of its restricting SIDs may. So a capability SID of
the workspace's own gets entries on what may be written, and denying ones on what may not; reading is the user's.

What that cannot hold is refused here by name: hidden paths (reading is not restricted), the network, patterns.
"""

import hashlib
import ntpath
from collections.abc import Callable
from typing import Literal

from doorward.launcher import windows_paths as paths
from doorward.launcher import windows_structures as w
from doorward.launcher.globs import is_glob
from doorward.launcher.interface import Mode, SandboxPolicy, SandboxUnavailable, UnenforceableRule
from doorward.launcher.protected import PROTECTED_NAMES
from doorward.named_tuple import NamedTuple

EVERYONE = "S-1-1-0"
LOW_INTEGRITY = "S-1-16-4096"
# Mandatory label: low, no write up, inherited by what is below.
LOW_LABEL = "S:(ML;OICI;NW;;;LW)"
NO_LABEL = "S:"

TOKEN_FLAGS = w.DISABLE_MAX_PRIVILEGE | w.LUA_TOKEN | w.WRITE_RESTRICTED
JOB_LIMITS = w.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | w.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION

_USING = w.FILE_GENERIC_READ | w.FILE_GENERIC_WRITE | w.FILE_GENERIC_EXECUTE
# Not FILE_DELETE_CHILD: with it a parent lets go of a child that itself may not be deleted.
_REFUSED = w.FILE_WRITING | w.DELETE | w.FILE_DELETE_CHILD | w.WRITE_DAC | w.WRITE_OWNER

_GIT = (".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir")
_SYSTEM = (
    *("windows", "program files", "program files (x86)", "programdata"),
    *("$recycle.bin", "system volume information"),
)

Found = Literal["file", "directory", ""]


class Change(NamedTuple):
    """One entry in the access control list of `path`, or (`access` 0) its integrity label."""

    path: str
    access: int = 0
    mode: int = 0
    inheritance: int = 0
    label: str = ""


class WindowsPlan(NamedTuple):
    """`capability` is the SID that the entries name, empty where nothing is held back. `absent` are protected names
    that do not exist yet, to be removed when the run has ended; `restricting` are the token's SIDs less the logon's."""

    capability: str
    changes: tuple[Change, ...]
    absent: tuple[str, ...]
    restricted: bool

    @property
    def restricting(self) -> tuple[str, ...]:
        """Everyone, or not even the null device could be written."""
        return (self.capability, EVERYONE)


def capability_sid(workspace: str) -> str:
    """The SID of a workspace: the same for every spelling of its path, and no account's."""
    digest = hashlib.sha256(b"doorward workspace\0" + paths.key(workspace).encode("utf-8", "surrogatepass")).digest()
    return "S-1-5-21-" + "-".join(str(int.from_bytes(digest[at : at + 4], "little")) for at in (0, 4, 8, 12))


def check_network(policy: SandboxPolicy) -> tuple[str, ...]:
    """Notices about the network. Raises SandboxUnavailable where it was to be held, since no token holds it."""
    if policy.network == "full" or policy.mode is Mode.UNCONFINED:
        return ()
    sentence = "On Windows the network cannot be held: a restricted token has no say there."
    if policy.require == "full":
        raise SandboxUnavailable(
            sentence,
            "--network full says that it need not be; --require best-effort goes on with proxy variables only.",
        )
    return (f"{sentence} Programs are only told of the proxy by variables.",)


def make_plan(
    policy: SandboxPolicy, temporary: str, look: Callable[[str], Found], resolve: Callable[[str], str]
) -> WindowsPlan:
    """The plan of one start. `look` says what a path is, `resolve` follows links and junctions.

    Raises UnenforceableRule naming the entry.
    """
    workspace = _path(policy.workspace, policy.workspace, resolve)
    if look(workspace) != "directory":
        raise UnenforceableRule(policy.workspace, "the workspace is not a directory")
    if policy.mode in (Mode.UNCONFINED, Mode.DANGER_FULL_ACCESS):
        for entry in (*policy.read_only, *policy.deny_read):
            raise UnenforceableRule(entry, f"{policy.mode} has no file boundary, so this path cannot be held back")
        return WindowsPlan("", (), (), False)
    for entry in policy.deny_read:
        raise UnenforceableRule(
            entry, "Windows cannot hide a path from a restricted process, which reads what the user reads"
        )
    for entry in policy.allow_unix:
        raise UnenforceableRule(entry, "unix sockets are not told apart on Windows")
    home = _path(policy.home, policy.home, resolve)
    roots: dict[str, str] = {}
    if policy.mode is Mode.WORKSPACE_WRITE:
        _refuse_system(policy.workspace, workspace, home)
        roots[paths.key(workspace)] = workspace
    granted: dict[str, str] = {}
    for entry in policy.write:
        path = _exact(entry, workspace, resolve)
        _refuse_system(entry, path, home)
        if not look(path):
            raise UnenforceableRule(entry, f"{path} does not exist, so it cannot be made writable")
        granted[paths.key(path)] = path
    refused: dict[str, str] = {}
    for entry in policy.read_only:
        path = _exact(entry, workspace, resolve)
        if not look(path):
            raise UnenforceableRule(entry, f"{path} does not exist: Windows protects only what is there")
        if paths.key(path) not in granted:
            refused[paths.key(path)] = path
    absent: dict[str, str] = {}
    for root in (*roots.values(), *granted.values()):
        if look(root) == "directory":
            for path in _protected(root, look):
                if paths.key(path) not in granted:
                    (refused if look(path) else absent)[paths.key(path)] = path
    if any(paths.is_below(home, root) for root in (*roots.values(), *granted.values())) and look(home):
        refused[paths.key(home)] = home
    roots |= granted
    return WindowsPlan(
        capability_sid(workspace),
        (*_changes(roots, refused, look), *_writable(temporary, "directory")),
        tuple(absent.values()),
        True,
    )


def _protected(root: str, look: Callable[[str], Found]) -> list[str]:
    git = ntpath.join(root, ".git")
    names = list(PROTECTED_NAMES)
    # a worktree's or submodule's .git is a file that names another folder; a new repository is sifted as a whole
    names += _GIT if look(git) == "directory" else [".git"]
    return [ntpath.join(root, name.replace("/", "\\")) for name in names]


def _changes(roots: dict[str, str], refused: dict[str, str], look: Callable[[str], Found]) -> list[Change]:
    """Shallow before deep. What lies in a refused folder and is granted by name gets its own entry there."""
    changes: list[Change] = []
    for path in sorted(roots.values(), key=paths.depth):
        changes += _writable(path, look(path))
    for path in sorted(refused.values(), key=paths.depth):
        inherited = w.SUB_CONTAINERS_AND_OBJECTS_INHERIT if look(path) == "directory" else w.NO_INHERITANCE
        changes.append(Change(path, _REFUSED, w.DENY_ACCESS, inherited))
    pinned: dict[str, str] = {}
    for path in refused.values():
        above = ntpath.dirname(path)
        while any(paths.is_below(above, root) for root in roots.values()):
            pinned[paths.key(above)] = above
            above = ntpath.dirname(above)
    # or a parent could be renamed away and another put in its place
    changes += [
        Change(path, w.DELETE, w.DENY_ACCESS, w.NO_INHERITANCE) for name, path in pinned.items() if name not in refused
    ]
    return changes


def _writable(path: str, found: Found) -> list[Change]:
    if found == "file":
        return [Change(path, _USING, w.GRANT_ACCESS), Change(path, label=LOW_LABEL.replace("OICI", ""))]
    below = w.SUB_CONTAINERS_AND_OBJECTS_INHERIT | w.INHERIT_ONLY
    return [
        # the folder itself keeps its name and place
        Change(path, _USING, w.GRANT_ACCESS, w.NO_INHERITANCE),
        Change(path, _USING | w.DELETE, w.GRANT_ACCESS, below),
        Change(path, label=LOW_LABEL),
    ]


def _exact(entry: str, workspace: str, resolve: Callable[[str], str]) -> str:
    if is_glob(entry.replace("\\\\?\\", "")):
        raise UnenforceableRule(entry, "patterns cannot be held on Windows", "Name the folder.")
    return _path(entry, entry if paths.is_absolute(entry) else ntpath.join(workspace, entry), resolve)


def _path(entry: str, path: str, resolve: Callable[[str], str]) -> str:
    try:
        return paths.plain(resolve(paths.plain(path)))
    except ValueError as error:
        raise UnenforceableRule(entry.replace("\0", "\\0"), str(error)) from None


def _refuse_system(entry: str, path: str, home: str) -> None:
    drive, rest = ntpath.splitdrive(paths.key(path))
    names = [name for name in rest.split("\\") if name]
    if not names or names == ["users"] or (len(drive) == 2 and names[0] in _SYSTEM):
        raise UnenforceableRule(entry, f"{path} is a system folder, which is never made writable")
    if paths.key(path) == paths.key(home) or paths.is_below(path, home):
        raise UnenforceableRule(entry, "doorward's own folder is never made writable")

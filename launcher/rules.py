"""Reads the path rules of a policy: resolved once, checked, ready for the planner.

- Symlinks and `..` are resolved when the policy is read, not at each start: a command may not move a later
  one's boundary by planting a link.
- A path that leaves the workspace through a link inside it is refused for everything that grants: there,
  whoever ran last decides where a link points.
- An existing path is taken literally even if its name holds pattern characters (`[id].tsx`).
"""

from __future__ import annotations

import os

from doorward.launcher.globs import is_glob, split_glob, translate
from doorward.launcher.interface import Mode, SandboxPolicy, UnenforceableRule
from doorward.launcher.mounts import Kind
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# Never writable as a whole, neither as workspace nor by rule. A folder below (but see _KERNEL) may be.
_SYSTEM = frozenset(
    ("/", "/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/run", "/sbin", "/usr", "/var")
)
# Never writable, nor anything below.
_KERNEL = ("/dev", "/proc", "/sys")


def is_system_folder(path: str) -> bool:
    """Whether the resolved path is one that no rule makes writable as a whole."""
    return path in _SYSTEM


class PathRule(NamedTuple):
    """One rule. `pattern` is matched against paths relative to `path`; None means `path` itself."""

    kind: Kind
    entry: str
    path: str
    pattern: re.Pattern[str] | None = None


class Rules(NamedTuple):
    """A policy's paths, resolved."""

    workspace: str
    home: str
    rules: tuple[PathRule, ...]
    sockets: tuple[str, ...]


def read_rules(policy: SandboxPolicy) -> Rules:
    """Resolves and checks every path of `policy`. Raises UnenforceableRule naming the entry."""
    workspace = os.path.realpath(policy.workspace)
    if not os.path.isdir(workspace):
        raise UnenforceableRule(policy.workspace, "the workspace is not a directory")
    home = os.path.realpath(policy.home)
    if policy.mode in (Mode.DANGER_FULL_ACCESS, Mode.UNCONFINED):
        for entry in (*policy.read_only, *policy.deny_read):
            raise UnenforceableRule(
                entry,
                f"{policy.mode} has no file boundary, so this path cannot be held back",
                "Use --sandbox workspace-write.",
            )
        return Rules(workspace, home, (), ())
    if policy.mode is Mode.WORKSPACE_WRITE:
        _refuse_system(policy.workspace, workspace, home)

    rules: list[PathRule] = []
    for kind, entries in (
        (Kind.HIDDEN, policy.deny_read),
        (Kind.READ, policy.read_only),
        (Kind.WRITE, policy.write),
    ):
        for entry in entries:
            rule = _read_rule(kind, entry, workspace)
            if kind is Kind.WRITE:
                _refuse_system(entry, rule.path, home, pattern=rule.pattern is not None)
            elif kind is Kind.HIDDEN and rule.path == "/" and rule.pattern is None:
                raise UnenforceableRule(entry, "hiding / would leave nothing to run")
            rules.append(rule)
    roots = [rule.path for rule in rules if rule.kind is Kind.WRITE and rule.pattern is None]
    if policy.mode is Mode.WORKSPACE_WRITE:
        roots.append(workspace)
    for rule in rules:
        if rule.kind is not Kind.WRITE or rule.pattern is not None or os.path.lexists(rule.path):
            continue
        # below a writable directory it may name a protected path that is not there yet
        if not any(is_below(rule.path, root) for root in roots):
            raise UnenforceableRule(rule.entry, f"{rule.path} does not exist, so it cannot be made writable")
    return Rules(workspace, home, tuple(rules), tuple(_read_socket(e, workspace) for e in policy.allow_unix))


def is_below(path: str, directory: str) -> bool:
    """Whether `path` lies below `directory` (and is not `directory` itself)."""
    return path.startswith(directory if directory == "/" else directory + "/") and path != directory


def _absolute(entry: str, workspace: str) -> str:
    if "\0" in entry:
        raise UnenforceableRule(entry.replace("\0", "\\0"), "a path cannot hold a NUL byte")
    if not entry:
        raise UnenforceableRule("''", "an empty path names nothing")
    if entry == "~" or entry.startswith("~/"):
        entry = os.path.expanduser(entry)
    return entry if entry.startswith("/") else f"{workspace}/{entry}"


def _read_rule(kind: Kind, entry: str, workspace: str) -> PathRule:
    import re  # not needed by most runs

    pattern = ""
    text = entry
    if is_glob(entry) and not os.path.lexists(_absolute(entry, workspace)):
        text, pattern = split_glob(entry)
    path = _absolute(text, workspace)
    resolved = os.path.realpath(path)
    if kind is not Kind.HIDDEN:
        _refuse_link_out(entry, path, resolved, workspace)
    if not pattern:
        return PathRule(kind, entry, resolved)
    try:
        return PathRule(kind, entry, resolved, re.compile(translate(pattern)))
    except re.error as error:
        raise UnenforceableRule(entry, f"not a pattern that can be matched ({error.msg})") from error


def _read_socket(entry: str, workspace: str) -> str:
    path = _absolute(entry, workspace)
    resolved = os.path.realpath(path)
    _refuse_link_out(entry, path, resolved, workspace)
    if not os.path.exists(resolved):
        raise UnenforceableRule(entry, f"there is no socket at {resolved}", "Start its service first.")
    return resolved


def _refuse_link_out(entry: str, path: str, resolved: str, workspace: str) -> None:
    if resolved != workspace and not is_below(resolved, workspace) and _crosses_link_in(workspace, path):
        raise UnenforceableRule(
            entry,
            f"goes through a link inside the workspace and lands on {resolved}",
            f"Name {resolved} itself if that is meant.",
        )


def _crosses_link_in(directory: str, path: str) -> bool:
    """Whether following `path` (absolute) passes a symlink that lies in `directory` or below."""
    ahead = path.split("/")[::-1]
    at = "/"
    links = 0
    while ahead and links < 40:  # as many as the kernel follows, path_resolution(7)
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            at = os.path.dirname(at)
            continue
        here = os.path.join(at, part)
        try:
            target = os.readlink(here)
        except OSError:
            at = here
            continue
        if at == directory or is_below(at, directory):
            return True
        links += 1
        ahead.extend(target.split("/")[::-1])
        if target.startswith("/"):
            at = "/"
    return False


def _refuse_system(entry: str, path: str, home: str, pattern: bool = False) -> None:
    landing = "" if os.path.normpath(entry) == path else f" (it is {path})"
    if path in _SYSTEM and not (pattern and path == "/"):
        raise UnenforceableRule(entry, f"a system folder is never made writable{landing}")
    if any(path == top or is_below(path, top) for top in _KERNEL):
        raise UnenforceableRule(entry, f"nothing below {path.split('/')[1]!r} is ever made writable{landing}")
    if path == home or is_below(path, home):
        raise UnenforceableRule(entry, f"doorward's own folder is never made writable{landing}")

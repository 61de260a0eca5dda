"""A hint where a command was kept from writing and nobody watched its calls: what it printed, held against the mounts.

`--explain-denials` knows every call. Without it there are the C library's words for EROFS, which most programs print
beside the path; whether that path is one the sandbox keeps, and which grant would open it, its own plan tells.
"""

from __future__ import annotations

import os
import re
import sys

from doorward.hint import Hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from doorward.hints import Ended
    from doorward.launcher.interface import Denied, SandboxPolicy
    from doorward.launcher.mounts import MountPlan

_READ_ONLY: Final = ("Read-only file system", "read-only file system", "EROFS")  # glibc, Go, Node
_MOUNTED: Final = ("Device or resource busy", "device or resource busy", "EBUSY")  # what is mounted cannot be replaced
_QUOTED: Final = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"|`([^`'\n]+)['`]|\u2018([^\u2019\n]+)\u2019")
_BARE: Final = re.compile(r"[^\s'\"`:,;()<>\u2018\u2019]+")
_MOST_LINES: Final = 20
_NAME_MAX: Final = 255  # <linux/limits.h>; what is longer was no path


def hint(ended: Ended, policy: SandboxPolicy) -> Hint | None:
    """One hint for the first path that was printed and is kept; a way to find out where none can be told."""
    from doorward.launcher.interface import Mode

    if sys.platform != "linux" or policy.mode not in (Mode.READ_ONLY, Mode.WORKSPACE_WRITE):
        return None
    printed = ended.output.splitlines()
    lines = [line for line in printed if any(word in line for word in (*_READ_ONLY, *_MOUNTED))][:_MOST_LINES]
    if not lines:
        return None
    plan = _plan(policy)
    if plan is not None:
        from doorward.launcher.mounts import Kind

        for path in (each for line in lines for each in _paths(line, ended)):
            if plan.kind(path) is Kind.READ:
                denied = _judged(path, plan)
                return None if denied is None else _told(denied, policy)
    if policy.explain or not any(word in line for word in _READ_ONLY for line in lines):
        return None  # it was watched, and nothing was the sandbox's; or it may be busy indeed
    return Hint(
        "protected_path",
        "something could not be written (read-only file system): with --explain-denials the run says what, and which "
        "option allows it",
        "--explain-denials",
    )


def _told(denied: Denied, policy: SandboxPolicy) -> Hint | None:
    from doorward.sandbox_refusal import refusal_of_denied

    told = refusal_of_denied(denied, policy)
    if not told["hint"]:
        return None
    return Hint("protected_path", f"{told['message']}; to allow it: {told['hint']}", str(told["hint"]))


def _plan(policy: SandboxPolicy) -> MountPlan | None:
    """The mounts as they would be made now; None where what a rule names is gone."""
    from doorward.launcher.interface import SandboxUnavailable, UnenforceableRule
    from doorward.launcher.rules import read_rules
    from doorward.launcher.survey import survey

    uid = os.geteuid() if policy.user is None else policy.user.uid
    try:
        return survey(policy, read_rules(policy), uid=uid).plan
    except (OSError, SandboxUnavailable, UnenforceableRule):
        return None


def _paths(line: str, ended: Ended) -> Iterator[str]:
    """What in `line` may be the path, absolute: quoted words, then others from the last, since a program's own name
    stands at the beginning."""
    quoted = [next(filter(None, found)) for found in _QUOTED.findall(line)]
    bare = [
        word for word in _BARE.findall(line)
        if "/" in word or word.startswith(".") or os.path.lexists(os.path.join(ended.cwd, word))
    ]  # fmt: skip
    for word in (*quoted, *reversed(bare)):
        if "\0" in word:
            continue
        if word.startswith("~/"):
            word = os.path.expanduser(word)
        path = os.path.normpath(os.path.join(ended.cwd, word))
        folder, name = os.path.split(path)
        if 0 < len(name.encode("utf-8", "surrogatepass")) <= _NAME_MAX and os.path.isdir(folder):
            yield os.path.join(os.path.realpath(folder), name)


def _judged(path: str, plan: MountPlan) -> Denied | None:
    """As `launcher.denials` judges a write, by the plan where that asks the mounts."""
    from doorward.launcher.interface import Denied

    folder = os.path.dirname(path)
    if not os.access(path if os.path.lexists(path) else folder, os.W_OK):
        return None  # the same user may not write it outside either
    above = path
    while above != "/" and not plan.mounted(above):
        above = os.path.dirname(above)
    if above != "/" and plan.writable(os.path.dirname(above)):
        return Denied(path, "write", "protected", above)
    return Denied(path, "write", "outside", folder)

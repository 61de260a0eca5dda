"""Plain sentences about a run that ended: what cut it short, and what it may have missed where it failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.launcher.interface import LimitHit, Limits

_MOST_NAMES = 12
_OPTIONS = {"memory": "--memory", "pids": "--pids", "cpu_time": "--cpu-time", "files": "--files"}


def limit_notes(hit: Sequence[LimitHit]) -> list[str]:
    """One sentence a limit that was reached, with the option that raises it."""
    return [f"{each.message}; {_OPTIONS[each.limit]} sets this limit" for each in hit]


def failure_notes(withheld: Sequence[str], limits: Limits, held: Mapping[str, str]) -> list[str]:
    """For a command that failed: variables it did not get (names only), and limits that may have been in its way."""
    notes = []
    if withheld:
        shown = ", ".join(withheld[:_MOST_NAMES])
        more = f" and {len(withheld) - _MOST_NAMES} more" if len(withheld) > _MOST_NAMES else ""
        notes.append(f"the command did not get these variables: {shown}{more}; --pass-env NAME hands one over")
    if held:
        from doorward.launcher.limits import unseen

        if quiet := unseen(limits, held):
            notes.append(f"the command was limited to {', '.join(quiet)}; nobody can see whether that was reached")
    return notes

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


def watched_notes(watched: Sequence[Mapping[str, object]], session: str, *, refused: bool = False) -> list[str]:
    """For a run that only observed: each place that would have been refused, most often first, and what to do now.
    `refused`: something was refused all the same."""
    from doorward.summary import place_text

    counts: dict[str, int] = {}
    for record in watched:
        place = place_text(record["host"], record["port"])
        counts[place] = counts.get(place, 0) + 1
    if not counts:
        if refused:
            return ["observed: nothing passed that no rule allows; what is refused while observing too stands below"]
        return ["observed: nothing would have been refused"]
    shown = sorted(counts.items(), key=lambda each: -each[1])
    notes = [f"observed: let through what would be refused: {len(counts)} place{'s' if len(counts) != 1 else ''}"]
    notes += [f"  {place}{f'  {count}x' if count > 1 else ''}" for place, count in shown[:_MOST_NAMES]]
    if len(shown) > _MOST_NAMES:
        notes.append(f"  and {len(shown) - _MOST_NAMES} more")
    return [*notes, f"to make rules of it: doorward allowlist learn {session}"]


def quiet_limits(limits: Limits, held: Mapping[str, str]) -> list[str]:
    """For a command that failed: limits that may have been in its way without a sign."""
    from doorward.launcher.limits import unseen

    if quiet := unseen(limits, held):
        return [f"the command was limited to {', '.join(quiet)}; nobody can see whether that was reached"]
    return []

"""Lists the sessions of a home from their files alone."""

from typing import TYPE_CHECKING

from doorward.named_tuple import NamedTuple
from doorward.sessions.folders import Problem, rollouts
from doorward.sessions.home import Home, StoreError
from doorward.sessions.summary import SessionSummary, summarise

if TYPE_CHECKING:
    from doorward.sessions.filters import Filter


class Listing(NamedTuple):
    """Sessions, newest first, and what was not read or is wrong with what was."""

    sessions: tuple[SessionSummary, ...]
    problems: tuple[Problem, ...]


def list_sessions(
    home: Home, *, archived: bool | None = False, limit: int | None = None, only: "Filter | None" = None
) -> Listing:
    """Sessions by time of creation, newest first. `archived`: only active (False), only archived (True), both (None).

    With `limit`, files are looked at only until so many are found. One bad file never hides another.
    """
    sessions: list[SessionSummary] = []
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for folder in (False, True) if archived is None else (archived,):
        taken = 0
        for found in rollouts(home, archived=folder):
            if isinstance(found, Problem):
                problems.append(found)
                continue
            if found.id in seen:
                problems.append(Problem(found.path, f"has the id of {seen[found.id]}, which is listed"))
                continue
            try:
                summary = summarise(found)
                if only and not only.holds(summary):
                    continue
            except StoreError as error:
                problems.append(Problem(found.path, str(error).removeprefix(f"{found.path} is ").strip()))
                continue
            seen[found.id] = found.path
            sessions.append(summary)
            problems.extend(Problem(found.path, note) for note in summary.notes)
            taken += 1
            if taken == limit:
                break
    sessions.sort(key=lambda summary: (summary.created_at, summary.id), reverse=True)
    return Listing(tuple(sessions[:limit]), tuple(problems))

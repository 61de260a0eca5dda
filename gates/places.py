"""Where a write would go: which of the dial's places holds a path. Most specific wins, order never matters."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

SYSTEM_TREES: Final = frozenset(
    ("", "/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/run", "/sbin", "/usr", "/var")
)
"""Folders that are never opened as a whole ("" is the root); a file in them can be named."""

KERNEL_TREES: Final = ("/dev", "/proc", "/sys")
"""Nothing in these is ever opened."""


class Ground(StrEnum):
    """What kind of place a path lies in."""

    WORKSPACE = "workspace"
    ADDED = "added"
    PRIVATE_TEMP = "private-temp"
    HOME = "home"
    LISTED_READ_ONLY = "listed-read-only"
    HIDDEN = "hidden"
    OUTSIDE = "outside"


class Place(NamedTuple):
    """The ground a path lies on, and the folder that makes it so ("" for OUTSIDE)."""

    ground: Ground
    root: str


def inside(path: str, folder: str) -> bool:
    """True if `path` is `folder` or lies below it. Both absolute and canonical; `/a/b2` is not inside `/a/b`."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def place_of(path: str, grounds: Iterable[tuple[Ground, Iterable[str]]], home: str) -> Place:
    """The most specific of `grounds` that holds `path`; of equals the later ground in the list. `home` is
    $DOORWARD_HOME, which no other ground can open."""
    if home and inside(path, home):
        return Place(Ground.HOME, home)
    best = Place(Ground.OUTSIDE, "")
    for ground, folders in grounds:
        for folder in folders:
            if inside(path, folder) and len(folder) >= len(best.root):
                best = Place(ground, folder)
    return best

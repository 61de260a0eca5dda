"""Removes the protected names that a run has made, and sifts a repository that it made. Once, after its end.

No process of the run is left by then. Links and junctions are removed, never followed.
"""

import os
import stat

from doorward.launcher.git_settings import sift
from doorward.launcher.interface import Undone

# winnt.h
_REPARSE_POINT = 0x400


def put_back(absent: tuple[str, ...]) -> tuple[Undone, ...]:
    """Undoes what now stands at paths where nothing stood; tells each."""
    undone: list[Undone] = []
    for path in absent:
        try:
            if not os.path.lexists(path):
                continue
            if os.path.basename(path).lower() == ".git" and os.path.isdir(path) and not _is_link(path):
                undone += _sift_repository(path)
            else:
                _remove(path)
                undone.append(Undone(path, "removed"))
        except OSError as error:
            undone.append(Undone(path, "could not be undone", error.strerror or str(error)))
    return tuple(undone)


def _sift_repository(path: str) -> list[Undone]:
    undone: list[Undone] = []
    for name in ("commondir", "config.worktree"):
        file = os.path.join(path, name)
        if os.path.lexists(file):
            _remove(file)
            undone.append(Undone(file, "removed"))
    hooks = os.path.join(path, "hooks")
    if _is_link(hooks) or (os.path.lexists(hooks) and not os.path.isdir(hooks)):
        _remove(hooks)
        undone.append(Undone(hooks, "removed"))
    elif os.path.isdir(hooks):
        for name in os.listdir(hooks):
            if not name.endswith(".sample"):
                _remove(os.path.join(hooks, name))
                undone.append(Undone(os.path.join(hooks, name), "removed"))
    settings = os.path.join(path, "config")
    if _is_link(settings):
        _remove(settings)
        undone.append(Undone(settings, "removed"))
    elif os.path.isfile(settings):
        with open(settings, encoding="utf-8", errors="surrogateescape", newline="") as written:
            sifted = sift(written.read())
        if sifted.removed:
            with open(settings, "w", encoding="utf-8", errors="surrogateescape", newline="") as cleaned:
                cleaned.write(sifted.text)
            undone.append(Undone(settings, "settings removed", ", ".join(sifted.removed)))
    return undone


def _is_link(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_file_attributes", 0) & _REPARSE_POINT)


def _remove(path: str) -> None:
    if _is_link(path):
        # a junction is a directory to Windows, and rmdir takes away only the junction
        (os.rmdir if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)
    elif os.path.isdir(path):
        for name in os.listdir(path):
            _remove(os.path.join(path, name))
        os.rmdir(path)
    else:
        os.unlink(path)

"""Where a program is found."""

from __future__ import annotations

import os


def which(program: str, path: str, cwd: str = "/") -> str | None:
    """The first executable file of that name in `path`, absolute; None if there is none.

    A name with a slash is a path, relative to `cwd`, as are relative and empty entries of `path` (execvp(3)).
    """
    folders = [""] if "/" in program else path.split(os.pathsep)
    for folder in folders:
        candidate = f"{folder}/{program}" if folder[:1] == "/" else os.path.join(cwd, folder, program)
        # in this order: where there is nothing, which is most often, `access` is told so without an exception
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return os.path.normpath(candidate)
    return None

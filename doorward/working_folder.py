"""Where a command runs: the folder is there, or one sentence says that it is not."""

from __future__ import annotations

import os

from doorward.errors import UsageError

SYSTEM_FOLDERS = frozenset(
    ("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/opt",
     "/proc", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/local", "/var", "/var/tmp")
)  # fmt: skip
"""Never a workspace, never a project."""

SYSTEM_TREES = (
    *("/boot/", "/dev/", "/etc/", "/proc/", "/sys/"),
    *(f"/usr/{part}/" for part in ("bin", "include", "lib", "lib64", "libexec", "sbin", "share")),
)
"""Nor anything below these."""


def working_folder(given: str | None) -> str:
    """The absolute working folder. Raises UsageError if it is gone, or is no folder."""
    try:
        folder = os.path.realpath(given) if given is not None else os.getcwd()
        os.stat(os.path.join(folder, "."))
    except FileNotFoundError:
        where = given if given is not None else "the current folder"
        raise UsageError(f"doorward: {where} does not exist (any more); change to a folder that does") from None
    except NotADirectoryError:
        raise UsageError(f"doorward: {given} is not a folder") from None
    except PermissionError:
        raise UsageError(f"doorward: {given or 'the current folder'} cannot be entered: permission denied") from None
    return folder

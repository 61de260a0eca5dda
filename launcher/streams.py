"""What the three descriptors of a command may be.

A descriptor carries the mount it was opened through, and `/proc/self/fd/N` opens its file anew through that
mount. So a directory would lead out of the sandbox, and a file that was opened for reading could be written.
"""

from __future__ import annotations

import fcntl
import os
import stat

from doorward.launcher.interface import LaunchFailure, Stdio
from doorward.launcher.mounts import MountPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = ("standard input", "standard output", "standard error")


def check_streams(stdio: Stdio) -> LaunchFailure | None:
    """Refuses directories, and descriptors that only name a file (O_PATH)."""
    for name, descriptor in zip(_NAMES, stdio[:3], strict=True):
        if descriptor < 0:
            continue
        try:
            mode = os.fstat(descriptor).st_mode
            flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        except OSError as error:
            return LaunchFailure("malformed", f"The {name} cannot be used: {error.strerror}.")
        if stat.S_ISDIR(mode) or flags & os.O_PATH:
            return LaunchFailure("malformed", f"The {name} is a directory, which would lead out of the sandbox.")
    return None


def files_to_hold(stdio: Stdio, plan: MountPlan) -> Iterator[tuple[int, str]]:
    """Each regular file that was opened for reading only and that the policy does not make writable: its place
    (0, 1 or 2) and its path. One without a name, such as a here-document's, holds nothing of anyone's."""
    for place, descriptor in enumerate(stdio[:3]):
        if descriptor < 0 or not stat.S_ISREG(os.fstat(descriptor).st_mode):
            continue
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
            continue
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if path.startswith("/") and not path.endswith(" (deleted)") and not plan.writable(path):
            yield place, path

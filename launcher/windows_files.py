"""What the Windows door asks the file system, in one place: tests put another one there."""

import os
import shutil
import tempfile

from doorward.launcher.interface import Undone
from doorward.launcher.windows_plan import Found
from doorward.launcher.windows_repository import put_back

# IO_REPARSE_TAG_APPEXECLINK (winnt.h)
_STORE_ALIAS = 0x8000001B


class WindowsFiles:
    """See the module."""

    def look(self, path: str) -> Found:
        """What a path is."""
        return "directory" if os.path.isdir(path) else "file" if os.path.lexists(path) else ""

    def resolve(self, path: str) -> str:
        """`path` with links and junctions followed, and its letters as on the disk."""
        return os.path.realpath(path)

    def is_store_alias(self, path: str) -> bool:
        """Whether `path` is an execution alias of the Microsoft Store, which only the user's own shell can follow."""
        try:
            found = os.lstat(path)
        except OSError:
            return False
        return getattr(found, "st_reparse_tag", 0) == _STORE_ALIAS

    def make_temporary(self) -> str:
        """A new folder of the user's own."""
        return tempfile.mkdtemp(prefix="doorward-")

    def remove_temporary(self, path: str) -> None:
        """Removes what `make_temporary` made, and all in it."""
        shutil.rmtree(path, ignore_errors=True)

    def put_back(self, absent: tuple[str, ...]) -> tuple[Undone, ...]:
        """See `windows_repository`."""
        return put_back(absent)

r"""Windows paths by the file they mean: one key for every spelling of it. Pure, on any system.

`\\?\C:\a`, `C:/a` and `c:\A` are one file; a share stays a share. Sources: "Naming Files, Paths, and Namespaces"
(learn.microsoft.com, fileio/naming-a-file).
"""

import ntpath

_VERBATIM = "\\\\?\\"
_VERBATIM_SHARE = "\\\\?\\UNC\\"


def plain(path: str) -> str:
    r"""`path` without the verbatim prefix and with backslashes: what people write. Case is kept.

    Raises ValueError for a device path (`\\.\`), a NUL byte, and a verbatim path that means something else once
    its prefix is gone.
    """
    if "\0" in path:
        raise ValueError("a path cannot hold a NUL byte")
    text = path
    upper = path[: len(_VERBATIM_SHARE)].upper()
    if upper == _VERBATIM_SHARE:
        return _verbatim("\\\\" + path[len(_VERBATIM_SHARE) :], path)
    if upper.startswith(_VERBATIM):
        return _verbatim(path[len(_VERBATIM) :], path)
    text = path.replace("/", "\\")
    if text.startswith(("\\\\.\\", "\\??\\")):
        raise ValueError("this names a device, not a file")
    if text.startswith(_VERBATIM):
        raise ValueError("a verbatim path is written with backslashes")
    drive, rest = ntpath.splitdrive(text)
    # Windows drops dots and blanks at the end of each name
    parts = [part if part in (".", "..") else part.rstrip(". ") for part in rest.split("\\")]
    return ntpath.normpath(drive + "\\".join(parts))


def _verbatim(text: str, path: str) -> str:
    drive, rest = ntpath.splitdrive(text)
    names = [name for name in rest.split("\\") if name]
    if not drive or any(name != name.rstrip(". ") or "/" in name for name in names):
        # such a file exists only under its verbatim name
        raise ValueError(f"{path} cannot be named without its verbatim prefix")
    return drive + "\\" + "\\".join(names)


def key(path: str) -> str:
    """What every spelling of one path has in common. Raises ValueError as `plain` does."""
    return plain(path).casefold().rstrip("\\") or "\\"


def is_absolute(path: str) -> bool:
    r"""Whether the path names its drive or share: `\a` and `C:a` depend on where one stands."""
    drive, rest = ntpath.splitdrive(path.replace("/", "\\"))
    return (bool(drive) and rest.startswith("\\")) or path.startswith(_VERBATIM)


def is_below(path: str, directory: str) -> bool:
    """Whether `path` lies below `directory` (and is not `directory` itself)."""
    return key(path).startswith(key(directory) + "\\")


def depth(path: str) -> int:
    """The number of names in the path: what is more specific has more."""
    return key(path).count("\\")

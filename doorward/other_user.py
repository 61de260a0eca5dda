"""`--user NAME`: who that is, by the machine's user database, and what its programs expect to find set."""

from __future__ import annotations

import os
from collections.abc import Mapping

from doorward.errors import UsageError
from doorward.launcher.interface import Identity
from doorward.named_tuple import NamedTuple

_OF_THE_STARTER = ("MAIL", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Variables that lead into the starter's own home, where another user has no business."""


class OtherUser(NamedTuple):
    """A user of the database."""

    identity: Identity
    home: str
    shell: str

    def variables(self, outer: Mapping[str, str], passed: tuple[str, ...]) -> dict[str, str]:
        """The starter's environment as this user is to find it: HOME, USER, LOGNAME and SHELL are the user's own, as
        with su(1). Names in `passed` were asked for and stay as they are."""
        own = {"HOME": self.home, "USER": self.identity.name, "LOGNAME": self.identity.name, "SHELL": self.shell}
        kept = {name: value for name, value in outer.items() if name not in _OF_THE_STARTER or name in passed}
        return kept | {name: value for name, value in own.items() if name not in passed}


def other_user(text: str) -> OtherUser | None:
    """The user called `text`, or with that number; None where that is whoever started doorward.

    Raises UsageError where there is no such user.
    """
    import pwd  # for few runs only

    try:
        found = pwd.getpwnam(text)
    except (KeyError, ValueError):
        found = None
        if text.isascii() and text.isdigit() and len(text) <= 10:
            try:
                found = pwd.getpwuid(int(text))
            except (KeyError, OverflowError):
                pass
    if found is None:
        raise UsageError(f"doorward: --user {text}: there is no such user; `getent passwd` lists those there are")
    if found.pw_uid == os.geteuid():
        return None
    groups = tuple(sorted({*os.getgrouplist(found.pw_name, found.pw_gid)}))
    return OtherUser(
        Identity(found.pw_name, found.pw_uid, found.pw_gid, groups), found.pw_dir or "/", found.pw_shell or "/bin/sh"
    )


def give_streams(user: Identity, descriptors: tuple[int, ...]) -> None:
    """Makes pipes and terminals of ours the user's, so that /dev/stdout and /dev/stderr can be opened anew inside."""
    import stat

    for descriptor in descriptors:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode) or os.isatty(descriptor):
            os.fchown(descriptor, user.uid, -1)

"""Whom the command runs as, where root started it for another user. Runs in the forked processes only.

Root outside stays root in the shim and only lends itself the user's rights, so that the user's other processes can
neither signal nor trace it, and what it took from doorward's own folder it can give back.
"""

import os

from doorward.launcher.interface import Identity

# What the shim and the starter load later. An interpreter in root's own home is out of reach for the user then.
_LOADED_LATER = (
    *("ctypes", "resource", "warnings"),
    *("doorward.launcher.cpu_time", "doorward.launcher.denial_filter", "doorward.launcher.denial_listener"),
    *("doorward.launcher.git_directories", "doorward.launcher.git_index", "doorward.launcher.git_settings"),
    "doorward.launcher.new_repository",
)


def act_as(user: Identity | None) -> None:
    """Takes the user's rights for what follows; `become_root` ends it. Nothing happens without a user."""
    if user is not None:
        _load()
        os.setgroups(user.groups)
        os.setegid(user.gid)
        os.seteuid(user.uid)


def become_root(user: Identity | None) -> None:
    """Root again after `act_as`; nothing happens without a user."""
    if user is not None:
        os.seteuid(0)
        os.setegid(0)


def become(user: Identity) -> None:
    """Turns this process into the user's for good. Raises OSError."""
    _load()
    os.setgroups(user.groups)
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)


def _load() -> None:
    for name in _LOADED_LATER:
        __import__(name)

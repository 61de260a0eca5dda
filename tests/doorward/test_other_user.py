"""Who `--user NAME` is, and what that user's programs find set."""

import os
import pwd

import pytest

from doorward.errors import UsageError
from doorward.launcher.interface import Identity
from doorward.other_user import OtherUser, other_user

SOMEBODY = OtherUser(Identity("ann", 1001, 1002, (1002, 27)), "/home/ann", "/bin/zsh")


def test_the_four_names_are_the_users_own() -> None:
    outer = {"HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh", "LANG": "C"}
    assert SOMEBODY.variables(outer, ()) == {
        "HOME": "/home/ann", "USER": "ann", "LOGNAME": "ann", "SHELL": "/bin/zsh", "LANG": "C",
    }  # fmt: skip


def test_they_are_set_where_the_starter_had_none() -> None:
    assert set(SOMEBODY.variables({}, ())) == {"HOME", "USER", "LOGNAME", "SHELL"}


def test_folders_of_the_starters_home_are_not_passed_on_unless_asked_for() -> None:
    outer = {"XDG_CONFIG_HOME": "/home/root/.config", "XDG_CACHE_HOME": "/c", "MAIL": "/m", "HOME": "/root"}
    assert set(SOMEBODY.variables(outer, ())) == {"HOME", "USER", "LOGNAME", "SHELL"}
    kept = SOMEBODY.variables(outer, ("XDG_CACHE_HOME", "HOME"))
    assert (kept["XDG_CACHE_HOME"], kept["HOME"]) == ("/c", "/root")


def test_whoever_starts_it_is_no_other_user() -> None:
    own = pwd.getpwuid(os.geteuid())
    assert other_user(own.pw_name) is None
    assert other_user(str(own.pw_uid)) is None


def test_a_name_is_looked_up_before_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = pwd.struct_passwd(("1000", "x", 1700, 1701, "", "/home/1000", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda name: entry)
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid, 50])
    found = other_user("1000")
    assert found == OtherUser(Identity("1000", 1700, 1701, (50, 1701)), "/home/1000", "/bin/sh")


@pytest.mark.parametrize("text", ["no-such-user", "", "a\0b", "-1", "4294967290"])
def test_nobody_is_a_usage_error_with_a_remedy(text: str) -> None:
    with pytest.raises(UsageError, match="getent passwd"):
        other_user(text)

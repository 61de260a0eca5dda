"""What systemd passes, where it passes nothing for us; the rest is in integration/proxy_command."""

from __future__ import annotations

import os

import pytest

from doorward.systemd import notify, take_sockets


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"LISTEN_FDS": "1"},
        {"LISTEN_PID": str(os.getpid())},
        {"LISTEN_FDS": "1", "LISTEN_PID": "1"},
        {"LISTEN_FDS": "many", "LISTEN_PID": str(os.getpid())},
        {"LISTEN_FDS": "-1", "LISTEN_PID": str(os.getpid())},
        {"LISTEN_FDS": "0", "LISTEN_PID": str(os.getpid()), "LISTEN_FDNAMES": "x", "LISTEN_PIDFDID": "7"},
    ],
)
def test_nothing_is_taken_and_no_child_will_try(env: dict[str, str]) -> None:
    env["PATH"] = "/bin"
    assert take_sockets(env) == []
    assert env == {"PATH": "/bin"}


@pytest.mark.parametrize("path", ["", "relative", "/nowhere/at/all", "@nobody-listens-there"])
def test_nobody_to_tell_is_no_error(path: str) -> None:
    notify({"NOTIFY_SOCKET": path}, "READY=1")
    notify({}, "READY=1")

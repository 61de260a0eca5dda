"""Sockets that systemd opened, and what it is told (sd_listen_fds(3), sd_notify(3))."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Start = Callable[..., Any]

# Moves the descriptors to 3 and up and becomes the program, so that its process id is the one that was announced.
_ACTIVATE = """
import os, sys
count = int(sys.argv[1])
fds = [os.dup(int(fd)) for fd in sys.argv[2:2 + count]]
for at, fd in enumerate(fds):
    os.dup2(fd, 3 + at)
    os.set_inheritable(3 + at, True)
os.environ.update(LISTEN_FDS=str(count), LISTEN_PID=sys.argv[2 + count].replace("self", str(os.getpid())))
os.execv(sys.argv[3 + count], sys.argv[3 + count:])
"""


def activated(*sockets: socket.socket, pid: str = "self") -> dict[str, Any]:
    fds = [sock.fileno() for sock in sockets]
    wrap = [sys.executable, "-c", _ACTIVATE, str(len(fds)), *map(str, fds), pid]
    return {"wrap": wrap, "fds": fds, "listen": False}


def test_it_accepts_on_a_socket_it_was_given(start: Start, there: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        early = socket.create_connection(listener.getsockname(), 20)  # waits in the queue for the service to start
        proxy = start("--allow", there, **activated(listener))
        assert proxy.ports == [listener.getsockname()[1]]
        assert proxy.status(there) == 200
        early.sendall(b"CONNECT blocked.test:443 HTTP/1.1\r\nHost: blocked.test:443\r\n\r\n")
        assert early.recv(12) == b"HTTP/1.1 403"
        early.close()


def test_several_workers_take_turns_on_it(start: Start, there: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        proxy = start("--allow", there, "--workers", "2", **activated(one, two))
        for at in (0, 1) * 5:
            assert proxy.status(there, at) == 200


def test_it_adds_to_listen(start: Start, there: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = start("--allow", there, **{**activated(listener), "listen": True})
        assert len(proxy.ports) == 2
        assert [proxy.status(there, at) for at in (0, 1)] == [200, 200]


def test_sockets_of_another_process_are_not_its(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = start(**activated(listener, pid="1"))
        assert proxy.wait() == 2
        assert "nowhere to listen" in proxy.lines[0]


def test_a_socket_that_other_machines_reach_needs_the_option(start: Start, there: str) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        proxy = start("--allow", there, **activated(listener))
        assert proxy.wait() == 2
        assert "ListenStream 0.0.0.0" in proxy.lines[0]
        proxy = start("--allow", there, "--dangerously-listen-on-any-address", **activated(listener))
        assert proxy.status(there) == 200


def test_what_is_no_listening_socket_is_refused(start: Start) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        proxy = start(**activated(other))
        assert proxy.wait() == 2
        assert "ListenStream=" in proxy.lines[0]


def test_systemd_is_told_when_it_accepts_and_when_it_ends(start: Start, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify"))
        told.settimeout(20)
        proxy = start(env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert told.recv(100) == b"READY=1"
        assert proxy.status("blocked.test:443") == 403
        proxy.kill()
        assert told.recv(100) == b"STOPPING=1"
        assert proxy.wait() == 0

"""No name service of the host is asked behind the door's back."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

CONNECT = (
    "import os, socket, sys\n"
    "s = socket.socket(socket.AF_UNIX)\n"
    "try: s.connect(sys.argv[1]); print('connected')\n"
    "except OSError as error: print('refused')\n"
    "print(os.path.exists('/run/nscd/socket'), os.path.exists('/var/run/nscd/socket'))\n"
)


def test_the_socket_of_a_name_cache_is_out_of_reach(everywhere: Any, folder: Path) -> None:
    """P-DN-06: glibc asks nscd through a path like this, and would get answers from outside the namespace."""
    place = folder / "run" / "nscd"
    place.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "socket"))
        os.chmod(place / "socket", 0o777)
        listener.listen()
        listener.settimeout(0)
        seen = everywhere.run("--", "/usr/bin/python3", "-c", CONNECT, str(place / "socket"))
        assert seen.out == "refused\nFalse False\n", seen
        try:
            listener.accept()
        except BlockingIOError:
            return
        raise AssertionError("somebody came through")


def test_names_are_found_by_the_files_the_command_sees(everywhere: Any) -> None:
    """Its own hosts file and name server, whatever the host's say; it can change neither."""
    seen = everywhere.run(
        "--allow", "a.test", "--", "sh", "-c",
        "exec 2>&1; getent hosts localhost a.test; grep -c . /etc/resolv.conf; grep '^[^#]' /etc/hosts | grep -v '^127\\|^::1'; "
        "echo 8.8.8.8 x > /etc/hosts; echo nameserver 8.8.8.8 > /etc/resolv.conf; getent ahostsv4 a.test | head -1",
    )  # fmt: skip
    lines = seen.out.splitlines()
    assert lines[0].split()[1] == "localhost" and lines[0].split()[0] in ("127.0.0.1", "::1"), seen
    assert lines[1].split() == ["fd64:6f6f:7277::c612:1", "a.test"]
    assert lines[2] == "2" and lines[-1].startswith("198.18.0.1 "), seen
    assert sum("ead-only" in line or "denied" in line for line in lines[3:-1]) == len(lines[3:-1]) == 2, seen

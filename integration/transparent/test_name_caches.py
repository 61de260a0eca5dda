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
        "exec 2>&1; getent hosts localhost a.test; grep -c . /etc/resolv.conf; "
        "grep '^[^#]' /etc/hosts | grep -v '^127\\|^::1'; "
        "echo 8.8.8.8 x > /etc/hosts; echo nameserver 8.8.8.8 > /etc/resolv.conf; getent ahostsv4 a.test | head -1",
    )  # fmt: skip
    lines = seen.out.splitlines()
    assert lines[0].split()[1] == "localhost" and lines[0].split()[0] in ("127.0.0.1", "::1"), seen
    assert lines[1].split() == ["fd64:6f6f:7277::c612:1", "a.test"]
    assert lines[2] == "2" and lines[-1].startswith("198.18.0.1 "), seen
    assert sum("ead-only" in line or "denied" in line for line in lines[3:-1]) == len(lines[3:-1]) == 2, seen


def test_programs_that_ask_for_addresses_they_can_use_get_them(everywhere: Any) -> None:
    """P-EV-08: AI_ADDRCONFIG gives nothing where an interface has none but loopback addresses."""
    code = (
        "import socket\n"
        "for family in (0, socket.AF_INET, socket.AF_INET6):\n"
        "    found = socket.getaddrinfo('a.test', 80, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)\n"
        "    print(sorted(each[4][0] for each in found))\n"
    )
    seen = everywhere.run("--allow", "a.test", "--", "/usr/bin/python3", "-c", code)
    ipv4, ipv6 = "198.18.0.1", "fd64:6f6f:7277::c612:1"
    assert seen.out.splitlines() == [str([ipv4, ipv6]), str([ipv4]), str([ipv6])], seen


def test_a_server_is_reached_by_the_sandbox_s_own_address(everywhere: Any) -> None:
    """P-EV-13: the one its interface shows, which is nobody's name."""
    code = (
        "import socket\n"
        "for host in ('198.19.255.254', 'fd64:6f6f:7277::1'):\n"
        "    s = socket.create_server(('::', 0), family=socket.AF_INET6, dualstack_ipv6=True)\n"
        "    c = socket.create_connection((host, s.getsockname()[1]), 5); a, _ = s.accept(); a.send(b'own')\n"
        "    print(c.recv(9).decode())\n"
    )
    seen = everywhere.run("--", "/usr/bin/python3", "-c", code)
    assert (seen.out, seen.refusals) == ("own\nown\n", []), seen


def test_whatever_name_server_is_asked_answers_from_its_own_address(everywhere: Any) -> None:
    """P-DN-01: over IPv4 and IPv6."""
    code = (
        "import socket\n"
        "query = b'\\0\\7\\1\\0\\0\\1' + bytes(6) + b'\\1a\\4test\\0\\0\\1\\0\\1'\n"
        "servers = (socket.AF_INET, '8.8.8.8'), (socket.AF_INET6, '2001:db8::53'), (socket.AF_INET6, '::1')\n"
        "for family, server in servers:\n"
        "    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(10); s.sendto(query, (server, 53))\n"
        "    data, sender = s.recvfrom(600); print(sender[0] == server, data[3] & 15, data[-4:])\n"
    )
    seen = everywhere.run("--allow", "a.test", "--", "/usr/bin/python3", "-c", code)
    assert seen.out == "True 0 b'\\xc6\\x12\\x00\\x01'\n" * 3, seen

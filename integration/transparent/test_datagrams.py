"""Datagrams: relayed to what a `udp:` rule names, and to nothing else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

TALK = """
import socket, sys
for each in sys.argv[1:]:
    host, _, port = each.rpartition(':')
    for family, _, _, _, address in sorted(socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)):
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(10); s.connect(address)
            try:
                for number in range(3):
                    s.send(b'%d' % number)
                    data, sender = s.recvfrom(2000)
                    assert sender[:2] == address[:2], (sender, address)
                    print(data.decode(), end=' ')
                print()
            except OSError as error: print(type(error).__name__)
"""


class Echo:
    """A server of datagrams on the host's loopback that says each back, and counts."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.heard = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            data, sender = self.socket.recvfrom(2000)
            if data == b"end":
                return
            self.heard += 1
            self.socket.sendto(b"echo " + data, sender)

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"end", ("127.0.0.1", self.port))
        self._thread.join(10)
        self.socket.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.close()


def hosts(*names: str) -> tuple[str, ...]:
    pins = ", ".join(f'"{name}" = "127.0.0.1"' for name in names)
    return ("-c", f"network.hosts={{{pins}}}")


def test_datagrams_go_where_a_rule_says_and_nowhere_else(everywhere: Any, echo: Echo) -> None:
    """What is refused is so at once: the sender's next call says so."""
    seen = everywhere.run(
        *hosts("a.test", "b.test"), "--allow", f"udp:a.test:{echo.port}", "--allow", f"b.test:{echo.port}", "--",
        "/usr/bin/python3", "-c", TALK, f"a.test:{echo.port}", f"b.test:{echo.port}", f"192.0.2.7:{echo.port}",
    )  # fmt: skip
    # IPv4, then IPv6: a name has both inside
    assert seen.out == "echo 0 echo 1 echo 2 \n" * 2 + "ConnectionRefusedError\n" * 3, seen
    assert echo.heard == 6
    told = {(each["host"], each["protocol"], each["hint"]) for each in seen.refusals}
    assert told == {
        ("b.test", "udp", f"--allow udp:b.test:{echo.port}"),
        ("192.0.2.7", "udp", f"--allow udp:192.0.2.7:{echo.port}"),
    }  # fmt: skip
    records = [r for r in everywhere.records(seen.document["session"]) if r["protocol"] == "udp"]
    flow, other = [r for r in records if r["decision"] == "allow"]
    assert other["host"] == "a.test"
    assert (flow["host"], flow["address"], flow["requests"]) == ("a.test", "127.0.0.1", 3)
    assert (flow["bytes_up"], flow["bytes_down"], flow["content"]) == (3, 18, "uninspected")
    assert all(r["process"]["argv"][0] == "/usr/bin/python3" for r in records)


def test_what_the_other_side_refuses_is_refused_here(doorward: Any) -> None:
    """Nobody listens there; and each further one is refused too, without another record."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    code = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10)\n"
        "s.connect((sys.argv[1], int(sys.argv[2])))\n"
        "for _ in range(3):\n"
        "    try: s.send(b'x'); s.recv(9)\n"
        "    except OSError as error: print(type(error).__name__)\n"
    )
    for name, refusals in (("a.test", 0), ("192.0.2.7", 1)):
        seen = doorward.run(
            *hosts("a.test"), "--allow", f"udp:a.test:{port}", "--", "/usr/bin/python3", "-c", code, name, str(port)
        )
        assert seen.out == "ConnectionRefusedError\n" * 3, seen
        assert len(seen.refusals) == refusals


def test_a_rule_for_datagrams_opens_no_connection(doorward: Any, echo: Echo) -> None:
    code = f"import socket; socket.create_connection(('a.test', {echo.port}), 5).recv(1)"
    rule = (*hosts("a.test"), "--allow", f"udp:a.test:{echo.port}")
    seen = doorward.run(*rule, "--", "/usr/bin/python3", "-c", code)
    assert seen.status == 1
    assert [(each["protocol"], each["port"]) for each in seen.refusals] == [("transparent_tcp", echo.port)]


def test_too_many_ports_are_an_error(doorward: Any) -> None:
    """Bad input."""
    done = doorward._run(doorward.argv("check", "--allow", "udp:a.test:1-1000", "--", "true")[1:], {})
    assert done.returncode == 2 and b"1000 ports" in done.stderr, done

"""Loopback for local development: the host's ports inside, servers inside on the host, and a refusal that helps."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ports import free_port

from doorward import open_session

SAY = """
import socket, sys
for each in sys.argv[1:]:
    host, _, port = each.rpartition(':')
    try:
        with socket.create_connection((host.strip('[]'), int(port)), 5) as c: print(c.recv(9).decode())
    except OSError as error: print(type(error).__name__)
"""

SERVE = """
import socket, sys
listeners = [socket.create_server((host, int(port)), family=socket.AF_INET6 if ':' in host else socket.AF_INET)
             for host, port in (each.rsplit(' ', 1) for each in sys.argv[1:])]
print('listening', flush=True)
sys.stdin.readline()
"""


def test_a_granted_port_appears_inside_and_no_other(everywhere: Any, speaker: Callable[..., Any]) -> None:
    """P-EV-13, P-EV-17: IPv4 and IPv6; the canary on another port stays untouched."""
    server, canary = speaker(b"granted"), speaker(b"canary")
    places = [f"{host}:{each.port}" for each in (server, canary) for host in ("127.0.0.1", "[::1]", "localhost")]
    seen = everywhere.run("--allow-loopback", str(server.port), "--", "/usr/bin/python3", "-c", SAY, *places)
    assert seen.out.split() == ["granted"] * 3 + ["ConnectionRefusedError"] * 3, seen
    assert (server.touched, canary.touched) == (3, 0)
    records = [r for r in everywhere.records(seen.document["session"]) if r["protocol"] == "loopback_tcp"]
    assert {(r["host"], r["port"], r["decision"]) for r in records} == {("localhost", server.port, "allow")}
    assert all(r["process"]["argv"][0] == "/usr/bin/python3" for r in records)


def test_without_a_grant_the_failure_names_the_option(doorward: Any, speaker: Callable[..., Any]) -> None:
    """P-EV-06, P-EV-13, P-EV-17: fast, and with a hint."""
    server = speaker(b"x")
    dial = f"import socket; socket.create_connection(('127.0.0.1', {server.port}), 5)"
    seen = doorward.run("--", "/usr/bin/python3", "-c", dial)
    assert seen.status == 1 and server.touched == 0
    (note,) = seen.document["notes"]
    assert "another machine" in note and "--allow-loopback " in note


def test_a_deny_beats_a_grant(doorward: Any, speaker: Callable[..., Any]) -> None:
    server = speaker(b"x")
    grant = ("--allow-loopback", str(server.port), "--deny", f"localhost:{server.port}")
    seen = doorward.run(*grant, "--", "/usr/bin/python3", "-c", SAY, f"127.0.0.1:{server.port}")
    assert seen.out == "ConnectionResetError\n", seen
    assert [each["reason"] for each in seen.refusals] == ["denied"] and server.touched == 0


def test_all_of_the_hosts_loopback_is_there_also_what_comes_later(
    everywhere: Any, speaker: Callable[..., Any]
) -> None:
    early = speaker(b"early")
    code = SAY + (
        "import select\n"
        "print('ready', flush=True)\n"
        "port = int(sys.stdin.readline())\n"
        "for _ in range(200):\n"
        "    try:\n"
        "        with socket.create_connection(('127.0.0.1', port), 5) as c: print(c.recv(9).decode()); break\n"
        "    except ConnectionRefusedError: select.select([], [], [], 0.05)\n"
    )
    words = ("--allow-loopback", "all", "--", "/usr/bin/python3", "-c", code, f"127.0.0.1:{early.port}")
    with everywhere.start("run", *words, stdin=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"early\n"
        assert run.stdout.readline() == b"ready\n"
        late = speaker(b"late")
        out, err = run.communicate(f"{late.port}\n".encode(), timeout=60)
    assert out == b"late\n", err


def read_until(stream: Any, pattern: bytes) -> re.Match[bytes]:
    seen = b""
    while (found := re.search(pattern, seen)) is None:
        data = os.read(stream.fileno(), 4096)
        assert data, seen
        seen += data
    return found


def asked(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, 10) as sock:
        return sock.recv(100)


GREET = SERVE.replace("print('listening', flush=True)\nsys.stdin.readline()\n", (
    "import threading\n"
    "def greet(listener):\n"
    "    while True:\n"
    "        c, _ = listener.accept(); c.sendall(b'from inside'); c.close()\n"
    "for each in listeners: threading.Thread(target=greet, args=(each,), daemon=True).start()\n"
    "print('listening', flush=True)\nsys.stdin.readline()\n"
))  # fmt: skip


@contextlib.contextmanager
def greeting(everywhere: Any, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run whose server listens by now."""
    with everywhere.start(*words, stdin=subprocess.PIPE) as run:
        heard = run.stdout.readline()
        assert heard == b"listening\n", (heard, run.stderr.read())
        yield run


@pytest.mark.parametrize("inner", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_published_server_is_reached_from_the_host(everywhere: Any, inner: str) -> None:
    outside = free_port()
    words = ("run", "--publish", f"4711:{outside}", "--", "/usr/bin/python3", "-c", GREET, f"{inner} 4711")
    with greeting(everywhere, *words) as run:
        assert asked(("127.0.0.1", outside)) == b"from inside"
        run.communicate(b"\n", timeout=60)
    with pytest.raises(ConnectionRefusedError):
        asked(("127.0.0.1", outside))


def test_auto_follows_what_the_run_listens_on_and_says_where(everywhere: Any) -> None:
    inside = free_port()
    words = ("run", "--publish", "auto", "--", "/usr/bin/python3", "-c", GREET, f"127.0.0.1 {inside}")
    with greeting(everywhere, *words) as run:
        said = read_until(run.stderr, rb"port (\d+) inside is reached at http://127\.0\.0\.1:(\d+)/")
        assert int(said[1]) == inside
        assert asked(("127.0.0.1", int(said[2]))) == b"from inside"
        run.communicate(b"\n", timeout=60)


def test_a_published_port_that_is_taken_is_an_error_before_anything_runs(
    doorward: Any, speaker: Callable[..., Any]
) -> None:
    """Bad input."""
    taken = speaker()
    done = doorward._run(doorward.argv("run", "--publish", f"8000:{taken.port}", "--", "touch", "ran")[1:], {})
    assert done.returncode == 2
    assert b"cannot be listened on: address already in use" in done.stderr and b"--publish 8000:PORT" in done.stderr
    assert not (doorward.workspace / "ran").exists()


@pytest.mark.parametrize("words", [
    ("--allow-loopback", "0"), ("--allow-loopback", "3128"), ("--allow-loopback", "1,x"), ("--publish", "8000:"),
    ("--publish", "80000"), ("--allow-loopback", "5432", "--network", "off"),
    ("--publish", "8000", "--network", "full"),
])  # fmt: skip
def test_what_is_no_port_or_would_not_hold_is_an_error(doorward: Any, words: tuple[str, ...]) -> None:
    """Bad input."""
    done = doorward._run(doorward.argv("check", *words, "--", "true")[1:], {})
    assert done.returncode == 2, done
    assert words[0].encode() in done.stderr


def test_the_library_grants_the_same(folder: Any, speaker: Callable[..., Any]) -> None:
    server = speaker(b"granted")
    for name in ("session-work", "session-home"):
        (folder / name).mkdir()
    with open_session(
        allow_loopback=[server.port], cwd=folder / "session-work", home=folder / "session-home"
    ) as session:
        for _ in range(2):
            seen = session.exec(["/usr/bin/python3", "-c", SAY, f"127.0.0.1:{server.port}"])
            assert seen.output == "granted\n", json.dumps(seen.to_json())

"""`doorward proxy` with rules that need inspection: the same answers and evidence as in a run."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TOKEN = "ghp_0123456789abcdefABCDEF0123456789"
WAIT = 30.0


@pytest.fixture
def proxy(tmp_path: Path, authority: Any) -> Iterator[Callable[..., Any]]:
    """Starts one on a free port; what its file of rules says comes first."""
    from integration.proxy_command.conftest import Proxy

    running = []
    (tmp_path / "home").mkdir(mode=0o700)

    def start(rules: str, *args: str, settle: bool = True, **env: str) -> Any:
        write(tmp_path, rules)
        outside = {"SSL_CERT_FILE": str(authority.path), "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **env}
        words = ("--listen", "127.0.0.1:0", "--client-env", str(tmp_path / "client.env"), *args)
        running.append(Proxy(tmp_path, words, outside, [], []))
        if settle:
            running[-1].settles()
        return running[-1]

    yield start
    for each in running:
        each.close()


def write(folder: Path, rules: str) -> None:
    names = ", ".join(f'"{name}" = "127.0.0.1"' for name in ("api.test", "other.test"))
    (folder / "home" / "config.toml").write_text(f"{rules}\n[network.hosts]\n{names.replace(', ', chr(10))}\n")
    (folder / "home" / "config.toml").chmod(0o600)


def inspectors(door: Any) -> list[int]:
    """Processes of the supervisor's that run the inspection worker."""
    found = []
    for pid in door.workers:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if b"inspection.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def get(door: Any, folder: Path, port: int, request: bytes, host: str = "api.test") -> bytes:
    """The answer to one request inside TLS, by a client that trusts what the door says."""
    context = ssl.create_default_context(cafile=str(folder / "home" / "inspect" / "bundle.pem"))
    head, sock = door.ask(f"{host}:{port}")
    assert head.startswith(b"HTTP/1.1 200"), head
    with context.wrap_socket(sock, server_hostname=host) as tls:
        tls.sendall(request % port)
        parts = []
        while data := tls.recv(65536):
            parts.append(data)
    return b"".join(parts)


GET = b"GET /in HTTP/1.1\r\nHost: api.test:%d\r\nConnection: close\r\n\r\n"
OTHER = GET.replace(b"api", b"other")


def test_it_inspects_reloads_and_ends(start: Any, proxy: Any, tmp_path: Path) -> None:
    """Two workers (SO_REUSEPORT), each with an inspection worker of its own; a client with nothing but the file of
    variables; new rules get new workers, and what was open stays open."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    server = start.server("api.test", "other.test")
    rule = f'{{host = "api.test:{server.port}", methods = ["GET"], credential = "forge"}}'
    credentials = '[inspect]\nrecord = "headers"\n[credentials.forge]\nenv = "FORGE_TOKEN"'
    log = tmp_path / "log.jsonl"
    from integration.proxy_command.conftest import Control

    control = Control(f"unix:{tmp_path}/control")
    door = proxy(
        f"[network]\nallow = [{rule}]\n{credentials}",
        *("--workers", "2", "--log-json", str(log), "--control", control.where),
        FORGE_TOKEN=TOKEN,
    )

    def reload(rules: str) -> None:
        write(tmp_path, rules)
        assert control("/reload", "POST")[0] == 200  # when every worker has them

    door.says(rf"clients must trust {tmp_path}/home/inspect/bundle\.pem")
    before = inspectors(door)
    assert len(before) == 2

    there = f"https://api.test:{server.port}/in"
    script = (
        f'. ./client.env; curl -sS -o /dev/null -w "%{{http_code}} " -H "Authorization: Bearer $FORGE_TOKEN" {there}; '
        f"curl -sS -i -X DELETE {there}"
    )
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, timeout=WAIT, check=True
    )
    assert done.stdout.startswith(b"200 ") and b"HTTP/1.1 403 Blocked (method_not_allowed)" in done.stdout, done
    assert [each[0] for each in server.seen] == ["GET"]
    assert server.seen[0][2]["Authorization"] == f"Bearer {TOKEN}"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    kinds = [line.get("type") for line in lines]
    assert "http_exchange" in kinds and "credential_used" in kinds
    refused = next(line for line in lines if line.get("reason") == "method_not_allowed")
    assert (refused["protocol"], refused["method"]) == ("https_connect", "DELETE")
    assert TOKEN not in log.read_text() and TOKEN not in (tmp_path / "client.env").read_text()

    # a tunnel that is open while the rules change goes on under the worker it has
    context = ssl.create_default_context(cafile=str(tmp_path / "home" / "inspect" / "bundle.pem"))
    _, sock = door.ask(f"api.test:{server.port}")
    with context.wrap_socket(sock, server_hostname="api.test") as tls:
        more = f'{{host = "other.test:{server.port}", methods = ["GET"]}}'
        reload(f"[network]\nallow = [{rule}, {more}]\n{credentials}")
        # below an issuer for both names, so other workers
        assert get(door, tmp_path, server.port, OTHER, "other.test").startswith(b"HTTP/1.1 200 ")
        tls.sendall(GET % server.port)
        assert tls.recv(65536).startswith(b"HTTP/1.1 200 ")
    ended(set(before) & set(inspectors(door)))

    # nothing that needs it: no worker stays
    left = set(inspectors(door))
    assert control.json("/healthz")["inspection"] == "ready"
    reload(f'[network]\nallow = ["api.test:{server.port}"]')
    assert control.json("/healthz")["inspection"] == "off"
    ended(left)
    reload(f"[network]\nallow = [{rule}]\n{credentials}")
    last = set(inspectors(door))
    assert len(last) == 2
    door.kill(signal.SIGTERM)
    assert door.wait() == 0
    ended(last)


def ended(pids: set[int]) -> None:
    """Wait until they are gone."""
    until = time.monotonic() + WAIT
    for pid in pids:
        while True:
            try:
                pidfd = os.pidfd_open(pid)
            except ProcessLookupError:
                break
            try:
                assert select.select([pidfd], [], [], max(0.0, until - time.monotonic()))[0], pid
                break
            finally:
                os.close(pidfd)


def test_a_worker_that_dies_opens_nothing_and_is_replaced(start: Any, proxy: Any, tmp_path: Path) -> None:
    server = start.server("api.test", "other.test")
    rule = f'{{host = "api.test:{server.port}", methods = ["GET"]}}'
    door = proxy(f'[network]\nallow = [{rule}, "other.test:{server.port}"]')
    for number in (1, 2):
        (pid,) = inspectors(door)
        # held, so that the next one does not come before it was seen that nothing opens meanwhile
        os.kill(door.process.pid, signal.SIGSTOP)
        try:
            os.kill(pid, signal.SIGKILL)
            refused(door, f"api.test:{server.port}")
            assert door.status(f"other.test:{server.port}") == 200
        finally:
            os.kill(door.process.pid, signal.SIGCONT)
        door.says("an inspection worker died; what it must look into is refused until there is another", number)
        door.becomes(f"api.test:{server.port}", 200)
        assert get(door, tmp_path, server.port, GET).startswith(b"HTTP/1.1 200 ")
    assert [each[1] for each in server.seen] == ["/in", "/in"]
    # so is the door's worker, and the one that served it ends
    (pid,) = inspectors(door)
    os.kill(next(each for each in door.workers if each != pid), signal.SIGKILL)
    ended({pid})
    door.becomes(f"api.test:{server.port}", 200)
    assert get(door, tmp_path, server.port, GET).startswith(b"HTTP/1.1 200 ")


def refused(door: Any, authority: str) -> None:
    """Until the door has noticed a connection may be accepted and cut; none is ever let through."""
    until = time.monotonic() + WAIT
    while True:
        head, sock = door.ask(authority)
        with sock:
            if head.startswith(b"HTTP/1.1 403 "):
                assert b"x-proxy-error: blocked-by-mitm-required" in head
                return
            sock.settimeout(WAIT)
            sock.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
            assert not received(sock)
        assert time.monotonic() < until


def received(sock: socket.socket) -> bytes:
    try:
        return sock.recv(100)
    except ConnectionResetError:
        return b""


def test_what_cannot_be_inspected_is_not_served(start: Any, proxy: Any, tmp_path: Path) -> None:
    """At the start nothing is accepted; at a reload the rules in force stay."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'raise SystemExit(3)'\n")
    python.chmod(0o755)
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    needs = '[network]\nallow = [{host = "api.test", methods = ["GET"]}]\n'
    broken = f'{needs}[inspect]\npython = "{python}"\n'
    door = proxy(broken)
    assert door.wait() == 125
    assert any("did not become ready" in line and "DOORWARD_DEBUG=1" in line for line in door.lines)
    # one that is not ready yet keeps nobody from ending it
    door = proxy(f'{needs}[inspect]\npython = "{slow}"\n', settle=False)
    until = time.monotonic() + WAIT
    while len(door.workers) < 2:
        assert time.monotonic() < until
        select.select([], [], [], 0.02)
    door.kill(signal.SIGTERM)
    assert door.wait() == 0
    assert not any("nothing is served" in line for line in door.lines)
    door = proxy('[network]\nallow = ["other.test"]\n')
    write(tmp_path, broken)
    door.kill(signal.SIGHUP)
    door.says("the rules in force stay, since the inspection worker did not become ready")
    assert door.status("api.test:443") == 403
    write(tmp_path, f'{needs}[credentials.forge]\nenv = "NOT_SET"\nhosts = ["api.test"]\n')
    door.kill(signal.SIGHUP)
    door.says(r"the rules in force stay, since the new configuration is wrong: credentials\.forge: .*is not set")

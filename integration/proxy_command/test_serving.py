"""`doorward proxy`: what it serves, where it listens, and what it refuses to start with."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ports import free_port

Start = Callable[..., Any]


def test_it_serves_what_its_rules_allow(start: Start, echo: Any, there: str) -> None:
    proxy = start("--allow", there)
    head, sock = proxy.ask(there)
    assert head.startswith(b"HTTP/1.1 200 ")
    sock.sendall(b"through")
    assert sock.recv(100) == b"through"
    sock.close()
    head, sock = proxy.ask("blocked.test:443")
    assert head.startswith(b"HTTP/1.1 403 ")
    assert b"x-proxy-error: blocked-by-allowlist" in head
    sock.close()
    assert echo.touched == 1


def test_socks5_on_the_same_port(start: Start, echo: Any, there: str) -> None:
    proxy = start("--allow", there)
    sock = proxy.connect()
    name = b"allowed.test"
    sock.sendall(b"\5\1\0\5\1\0\3" + bytes((len(name),)) + name + echo.port.to_bytes(2, "big"))
    answer = b""
    while len(answer) < 12:
        answer += sock.recv(100)
    assert answer[2:4] == b"\5\0"
    sock.sendall(b"socks")
    assert sock.recv(100) == b"socks"
    sock.close()


def test_several_addresses(start: Start) -> None:
    proxy = start("--listen", "127.0.0.2:0", "--listen", "[::1]:0")
    assert len(proxy.ports) == 3
    for host, port in zip(("127.0.0.1", "127.0.0.2", "::1"), proxy.ports, strict=True):
        socket.create_connection((host, port), 10).close()


def test_without_a_rule_everything_is_refused_and_it_says_so(start: Start) -> None:
    proxy = start()
    proxy.says("no rule allows anything")
    assert proxy.status("example.com:443") == 403


def test_a_record_is_in_the_log_before_the_answer(start: Start, tmp_path: Path, there: str) -> None:
    log = tmp_path / "log"
    proxy = start("--allow", there, "--log-json", str(log))
    assert proxy.status("blocked.test:443") == 403
    record = json.loads(log.read_text())
    assert (record["host"], record["decision"], record["reason"]) == ("blocked.test", "deny", "not_allowed")
    assert log.stat().st_mode & 0o777 == 0o600


def test_records_on_standard_output(start: Start) -> None:
    proxy = start("--log-json", "-")
    assert proxy.status("blocked.test:443") == 403
    line = proxy.process.stdout.readline()
    assert json.loads(line)["host"] == "blocked.test"


def test_it_is_no_way_to_itself(start: Start) -> None:
    proxy = start("--allow", "127.0.0.1:*")
    head, sock = proxy.ask(f"127.0.0.1:{proxy.ports[0]}")
    assert b"this proxy itself" in head
    sock.close()


WRONG = [
    (["--listen", "0.0.0.0:0"], "dangerously-listen-on-any-address"),
    (["--listen", "[::]:0"], "dangerously-listen-on-any-address"),
    (["--listen", "192.0.2.1:0"], "dangerously-listen-on-any-address"),
    (["--listen", "192.0.2.1:0", "--dangerously-listen-on-any-address"], "this machine has no address 192.0.2.1"),
    (["--listen", "localhost:3128"], "--listen 127.0.0.1:3128"),
    (["--listen", "3128"], "--listen 127.0.0.1:3128"),
    (["--listen", ":3128"], "--listen 127.0.0.1:3128"),
    (["--listen", "::1:3128"], "brackets"),
    (["--listen", "127.0.0.1:65536"], "ADDRESS:PORT"),
    ([], "--listen 127.0.0.1:3128"),
    (["--listen", "127.0.0.1:0", "--allow", "http://a.test"], "--allow"),
    (["--listen", "127.0.0.1:0", "--allow", "*.com"], "--allow"),
    (["--listen", "127.0.0.1:0", "-c", "network.alow=[]"], "did you mean network.allow"),
    (["--listen", "127.0.0.1:0", "--profile", "none"], "no such profile"),
    (["--listen", "127.0.0.1:0", "--workers", "0"], "--workers"),
    (["--listen", "127.0.0.1:0", "--drain", "soon"], "--drain"),
    (["--listen", "127.0.0.1:0", "--log-json", "/nowhere/log"], "--log-json"),
    (["--listen", "127.0.0.1:0", "--control", "0.0.0.0:0"], "for this machine alone"),
    (["--listen", "127.0.0.1:0", "--control", "unix:/nowhere/socket"], "--control"),
    (["--listen", "127.0.0.1:0", "--lisen", "x"], "did you mean --listen"),
    (["--listen", "127.0.0.1:0", "curl"], "doorward run -- CMD"),
]


@pytest.mark.parametrize(("args", "told"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_is_wrong_is_said_with_a_remedy(start: Start, args: list[str], told: str) -> None:
    proxy = start(*args, listen=False)
    assert proxy.wait() == 2
    assert told in "\n".join(proxy.lines)
    assert not [line for line in proxy.lines if "accepting" in line or "Traceback" in line]


def test_a_wrong_file_is_named_with_its_line_and_nothing_listens(start: Start, configure: Any) -> None:
    path = configure('[network]\nallow = [\n  "a.test",\n  "http://b.test",\n]\n')
    proxy = start()
    assert proxy.wait() == 2
    assert "config.toml:4" in "\n".join(proxy.lines)
    path.write_text("[network]\nallow = 7\n")
    proxy = start()
    assert proxy.wait() == 2
    assert f"{path}:2: network.allow" in "\n".join(proxy.lines)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_that_is_taken(start: Start, workers: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        proxy = start("--listen", f"127.0.0.1:{port}", "--workers", workers, listen=False)
        assert proxy.wait() == 2
    assert f"127.0.0.1:{port} is taken" in proxy.lines[0]
    assert "--listen 127.0.0.1:0" in proxy.lines[0]


def test_another_doorward_with_workers_does_not_share_its_port(start: Start) -> None:
    first = start("--workers", "2")
    second = start("--listen", f"127.0.0.1:{first.ports[0]}", "--workers", "2", listen=False)
    assert second.wait() == 2


def test_any_address_with_the_option(start: Start, there: str) -> None:
    proxy = start(
        "--listen", "0.0.0.0:0", "--dangerously-listen-on-any-address", "--allow", there, listen=False
    )
    assert proxy.status(there) == 200


def test_the_network_mode_of_commands_is_not_its_own(start: Start, configure: Any, there: str) -> None:
    configure('sandbox_mode = "danger-full-access"\n')
    proxy = start("--allow", there)
    assert proxy.status(there) == 200


def test_nothing_is_left(start: Start) -> None:
    proxy = start("--workers", "2")
    workers = proxy.workers
    assert len(workers) == 2
    proxy.kill(signal.SIGTERM)
    assert proxy.wait() == 0
    for pid in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_worker_holds_no_descriptor_it_does_not_need(start: Start, control: Any) -> None:
    proxy = start("--workers", "2", "--control", control.where)
    kept = Path(f"/proc/{proxy.workers[0]}/fd")
    links = [os.readlink(each) for each in kept.iterdir()]
    assert len([link for link in links if link.startswith("socket:")]) == 3, "its listener, its wire, the one for links"
    assert not [link for link in links if "pidfd" in link]
    assert len([link for link in links if "eventpoll" in link]) == 1


def test_with_every_stream_closed(start: Start, there: str, echo: Any, tmp_path: Path) -> None:
    """No socket takes the number of standard error, where a message would then go."""
    port = free_port()
    wrap = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"]
    log = tmp_path / "log"
    args = ("--listen", f"127.0.0.1:{port}", "--allow", there, "--log-json", str(log))
    proxy = start(*args, wrap=wrap, listen=False, settle=False)
    deadline = time.monotonic() + 20
    while True:
        try:
            sock = socket.create_connection(("127.0.0.1", port), 10)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            assert proxy.process.poll() is None
    sock.sendall(b"CONNECT blocked.test:443 HTTP/1.1\r\nHost: blocked.test:443\r\n\r\n")
    assert sock.recv(12) == b"HTTP/1.1 403"
    sock.close()
    proxy.kill()
    assert proxy.wait() == 0

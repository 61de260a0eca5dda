"""`--log-json`: one record a connection, as docs/schema says; and what happens when it cannot be written."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

Start = Callable[..., Any]

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs/schema/connection.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def records(log: Path, count: int) -> list[dict[str, Any]]:
    """The records of a log, once there are that many."""
    deadline = time.monotonic() + 20
    while True:
        lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
        if len(lines) >= count:
            break
        assert time.monotonic() < deadline, lines
    assert all(line.endswith(b"\n") for line in lines)
    return [json.loads(line) for line in lines]


def test_every_kind_of_record_is_as_the_schema_says(start: Start, echo: Any, there: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    proxy = start("--allow", there, "--deny", "denied.test", "--allow", "127.0.0.1:1", "--log-json", str(log))
    _, sock = proxy.ask(there)
    sock.sendall(b"twelve bytes")
    assert len(sock.recv(100)) == 12
    sock.close()
    for authority in ("blocked.test:443", "denied.test:443", "allowed.test:1", "127.0.0.1:1", "[::1]:443"):
        proxy.status(authority)
    sock = proxy.connect()
    sock.sendall(b"GET http://blocked.test/ HTTP/1.1\r\nHost: blocked.test\r\n\r\n")
    assert sock.recv(12) == b"HTTP/1.1 403"
    sock.close()
    sock = proxy.connect()
    sock.sendall(b"\5\1\0\5\1\0\3\x0cblocked.test\0\x50")
    while sock.recv(100):
        pass
    sock.close()
    found = records(log, 8)
    for record in found:
        VALIDATOR.validate(record)
    by_host = {(record["host"], record["port"], record["protocol"]): record for record in found}
    through = by_host["allowed.test", echo.port, "https_connect"]
    assert (through["decision"], through["bytes_up"], through["bytes_down"]) == ("allow", 12, 12)
    assert through["address"] == "127.0.0.1"
    assert through["closed_by"] == "client"
    assert by_host["127.0.0.1", 1, "https_connect"]["error"].startswith("upstream-failed")
    assert {record["reason"] for record in found} >= {"allowed", "not_allowed", "denied", "port_not_allowed"}
    assert {record["protocol"] for record in found} == {"https_connect", "http", "socks5_tcp"}


def test_the_schema_is_no_open_door() -> None:
    """It would notice a key that is new, gone or of another kind."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    good = {
        "version": 1, "connection": "x-1", "decision": "deny", "reason": "denied", "source": "baseline_policy",
        "rule": "a.test", "host": "a.test", "port": 443, "protocol": "http", "method": "GET", "address": None,
        "bytes_up": 0, "bytes_down": 0, "duration_s": 0.1, "requests": 1, "closed_by": "proxy",
    }  # fmt: skip
    VALIDATOR.validate(good)
    for change in ({"version": 2}, {"more": 1}, {"bytes_up": "0"}, {"reason": "allowed"}, {"decision": "perhaps"}):
        assert not VALIDATOR.is_valid({**good, **change})
    for name in good:
        assert not VALIDATOR.is_valid({key: value for key, value in good.items() if key != name}), name


def test_workers_write_whole_lines(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    proxy = start("--workers", "3", "--log-json", str(log))
    for index in range(40):
        assert proxy.status(f"blocked{index}.test:443") == 403
    found = records(log, 40)
    assert len({record["host"] for record in found}) == 40
    assert len({record["connection"] for record in found}) == 40


def test_sighup_goes_on_in_a_new_file(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    proxy = start("--log-json", str(log))
    proxy.status("one.test:443")
    log.rename(tmp_path / "old")
    proxy.kill(signal.SIGHUP)
    proxy.says("SIGHUP: configuration reloaded")
    deadline = time.monotonic() + 20
    while not log.exists():
        assert time.monotonic() < deadline
    proxy.status("two.test:443")
    assert [record["host"] for record in records(log, 1)] == ["two.test"]
    assert [record["host"] for record in records(tmp_path / "old", 1)] == ["one.test"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_what_cannot_be_recorded_is_not_let_through(start: Start, there: str, control: Any, echo: Any) -> None:
    proxy = start("--allow", there, "--log-json", "/dev/full", "--control", control.where)
    assert proxy.status(there) == 200  # nothing is wrong yet
    proxy.says("records cannot be written, so nothing is let through: /dev/full: No space left on device")
    touched = echo.touched
    assert proxy.status("blocked.test:443") == 0
    assert proxy.status(there) == 0
    status, body = control("/healthz")
    assert status == 503
    assert "No space left" in json.loads(body)["log"]
    assert echo.touched <= touched + 1, "what was dialled is closed unanswered"


def test_a_log_whose_reader_left(start: Start) -> None:
    proxy = start("--log-json", "-")
    proxy.process.stdout.close()
    assert proxy.status("blocked.test:443") == 0
    proxy.says("nothing is let through: -: Broken pipe")

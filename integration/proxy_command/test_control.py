"""The control listener: health, metrics, refusals, and who may ask."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]


@pytest.fixture
def on_tcp(start: Start, control: Any) -> Callable[..., tuple[Any, Any]]:
    """A proxy with a control listener on a port that is said, and a client for it."""

    def make(*args: str) -> tuple[Any, Any]:
        proxy = start("--control", "127.0.0.1:0", *args)
        return proxy, type(control)(proxy.says(r"control on (127\.0\.0\.1:\d+)$")[1])

    return make


def test_health(start: Start, control: Any, there: str) -> None:
    proxy = start("--control", control.where, "--allow", there)
    status, body = control("/healthz")
    assert status == 200
    assert json.loads(body) == {
        "ok": True, "state": "accepting", "workers": 1, "ready": 1, "log": "", "inspection": "off",
        "configuration": "current",
    }  # fmt: skip
    _, tunnel = proxy.ask(there)
    proxy.kill(signal.SIGTERM)
    proxy.says("no longer accepting")
    status, body = control("/healthz")
    assert (status, json.loads(body)["state"]) == (503, "draining")
    tunnel.close()


def test_refusals_are_there_when_the_client_has_its_answer(start: Start, control: Any) -> None:
    proxy = start("--control", control.where, "--workers", "2")
    for index in range(5):
        assert proxy.status(f"blocked{index}.test:443") == 403
        last = control.json("/decisions")["decisions"][-1]
        assert last["host"] == f"blocked{index}.test"
    assert last["status"] == "blocked"
    assert last["reason"] == "not_allowed"
    assert last["hint"] == f"--allow blocked{index}.test"
    assert last["timestamp"].endswith("Z")


def test_the_last_200_are_kept(start: Start, control: Any) -> None:
    proxy = start("--control", control.where)
    for index in range(205):
        proxy.status(f"blocked{index}.test:443")
    hosts = [each["host"] for each in control.json("/decisions")["decisions"]]
    assert hosts == [f"blocked{index}.test" for index in range(5, 205)]


@pytest.mark.parametrize("events", [True, False])
def test_a_live_stream(start: Start, control: Any, events: bool) -> None:
    proxy = start("--control", control.where)
    proxy.status("earlier.test:443")
    client = control.connect()
    client.request("GET", "/decisions?stream=1", headers={"Accept": "text/event-stream"} if events else {})
    answer = client.getresponse()
    assert answer.getheader("Content-Type") == ("text/event-stream" if events else "application/x-ndjson")
    for index in range(3):
        proxy.status(f"live{index}.test:443")
        line = answer.readline()
        if events:
            assert line == b"event: refusal\n"
            line = answer.readline().removeprefix(b"data: ")
            assert answer.readline() == b"\n"
        assert json.loads(line)["host"] == f"live{index}.test"
    proxy.kill(signal.SIGTERM)
    assert answer.read() == b"", "it ends with the door"
    assert proxy.wait() == 0
    client.close()


def test_metrics_count(start: Start, control: Any, there: str) -> None:
    proxy = start("--control", control.where, "--allow", there, "--deny", "denied.test")
    _, tunnel = proxy.ask(there)
    tunnel.sendall(b"x" * 100)
    assert tunnel.recv(1000)
    assert control.metric("open_tunnels") == 1
    assert control.metric('open_connections{protocol="https_connect"}') == 1
    assert control.metric('decisions_total{decision="allow",reason="allowed"}') == 1
    proxy.status("blocked.test:443")
    proxy.status("denied.test:443")
    proxy.status("denied.test:443")
    assert control.metric('decisions_total{decision="deny",reason="not_allowed"}') == 1
    assert control.metric('decisions_total{decision="deny",reason="denied"}') == 2
    assert control.metric('connections_total{protocol="https_connect",decision="deny"}') == 3
    sock = proxy.connect()
    sock.sendall(b"nonsense\r\n\r\n")
    assert sock.recv(12) == b"HTTP/1.1 400"
    sock.close()
    assert control.metric("malformed_requests_total") == 1
    tunnel.close()
    proxy.kill(signal.SIGHUP)
    proxy.says("reloaded")
    control.becomes('connections_total{protocol="https_connect",decision="allow"}', 1)
    assert control.metric('bytes_total{direction="up"}') == 100
    assert control.metric('bytes_total{direction="down"}') == 100
    assert control.metric("connection_duration_seconds_count") == 1
    assert control.metric('connection_duration_seconds_bucket{le="+Inf"}') == 1
    assert control.metric('reloads_total{result="ok"}') == 1
    assert control.metric("workers") == 1


def test_metrics_are_text_prometheus_reads(start: Start, control: Any) -> None:
    start("--control", control.where)
    client = control.connect()
    client.request("GET", "/metrics")
    answer = client.getresponse()
    assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    told = answer.read().decode()
    client.close()
    families = [line.split()[2] for line in told.splitlines() if line.startswith("# TYPE ")]
    assert len(families) == len(set(families))
    for line in told.splitlines():
        if not line.startswith("#"):
            float(line.rpartition(" ")[2])
            assert any(line.startswith(family) for family in families)


@pytest.mark.parametrize(
    "host", ["rebound.test", "rebound.test:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.nip.test:{port}", ""]
)
def test_a_host_that_was_rebound_is_refused(on_tcp: Any, host: str) -> None:
    """A page's own name that resolves to loopback gets nothing, whatever it asks for."""
    _, control = on_tcp()
    host = host.format(port=control.where.rpartition(":")[2])
    for path, method in (("/healthz", "GET"), ("/metrics", "GET"), ("/decisions", "GET"), ("/reload", "POST")):
        assert control(path, method, Host=host)[0] in (403, 400)
    assert control.metric('reloads_total{result="ok"}') == 0


def test_its_own_host_is_served_and_a_page_is_not(on_tcp: Any) -> None:
    _, control = on_tcp()
    port = control.where.rpartition(":")[2]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}"):
        assert control("/healthz", Host=host)[0] == 200
    assert control("/reload", "POST", Origin="https://page.test")[0] == 403
    assert control("/decisions", Origin="null")[0] == 403
    assert control("/reload")[0] == 405
    assert control("/elsewhere")[0] == 404


def test_the_door_does_not_lead_to_it(on_tcp: Any) -> None:
    """Also where the rules allow all of loopback."""
    proxy, control = on_tcp("--allow", "127.0.0.1:*")
    head, sock = proxy.ask(control.where)
    assert b"proxy_loop" in head
    sock.close()


def test_a_unix_socket_is_its_owners_alone(start: Start, control: Any) -> None:
    start("--control", control.where)
    mode = os.stat(control.where.removeprefix("unix:")).st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_a_socket_that_was_left_is_replaced_and_a_living_one_is_not(start: Start, control: Any) -> None:
    first = start("--control", control.where)
    second = start("--control", control.where)
    assert second.wait() == 2
    assert "another program listens there" in second.lines[0]
    first.kill(signal.SIGKILL)
    first.wait()
    start("--control", control.where)
    assert control("/healthz")[0] == 200


def test_a_file_in_its_place_stays(start: Start, control: Any, tmp_path: Any) -> None:
    (tmp_path / "control").write_text("mine")
    proxy = start("--control", control.where)
    assert proxy.wait() == 2
    assert (tmp_path / "control").read_text() == "mine"

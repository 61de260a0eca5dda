"""The forked proxy process, spoken to as the supervisor does: policies, listeners, receipts, runs, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from doorward.proxy.alone import open_listener

WAIT = 30.0


class Supervisor:
    """The other side of a proxy process."""

    def __init__(self) -> None:
        control, theirs = socket.socketpair()
        handover, their_handover = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                control.close()
                handover.close()
                from doorward.proxy.process import run_proxy

                run_proxy(theirs, their_handover)
                code = 0
            finally:
                os._exit(code)
        theirs.close()
        their_handover.close()
        control.settimeout(WAIT)
        self.control = control
        self.handover = handover
        self._kept = b""
        self.records: list[dict[str, Any]] = []
        self.status: int | None = None

    def tell(self, **message: Any) -> None:
        self.control.sendall(json.dumps(message).encode() + b"\n")

    def receipt(self, record: dict[str, Any]) -> None:
        self.control.sendall(b"%d\n" % record["id"])

    def hear(self, *, receipts: bool = True) -> dict[str, Any]:
        """The next message; records get their receipt."""
        while b"\n" not in self._kept:
            data = self.control.recv(65536)
            assert data, "the proxy closed the control channel"
            self._kept += data
        line, _, self._kept = self._kept.partition(b"\n")
        if not line.startswith(b"{"):
            number, waits, run, *told = line.decode().split("\t")
            pairs = zip(told[::2], told[1::2], strict=True)
            items = [{"type": kind, "payload": json.loads(text)} for kind, text in pairs]
            line = json.dumps({"type": "record", "id": int(number), "run": run, "wait": bool(waits), "items": items})
        message: dict[str, Any] = json.loads(line)
        if message["type"] == "record":
            self.records.append(message)
            if message["wait"] and receipts:
                self.receipt(message)
        return message

    def hear_type(self, wanted: str) -> dict[str, Any]:
        while (message := self.hear())["type"] != wanted:
            pass
        return message

    def configure(self, policy: str, allow: list[Any], **more: Any) -> dict[str, Any]:
        rules = [{"rule": rule, "source": "flag", "where": "--allow"} for rule in allow]
        self.tell(type="configure", policy=policy, settings={"allow": rules, "deny": [], **more})
        return self.hear()

    def listen(self, run: str, policy: str, **more: Any) -> int:
        """Hand a listener over; its port."""
        with open_listener("127.0.0.1", 0) as listener:
            port: int = listener.getsockname()[1]
            message = {"run": run, "policy": policy, "listener": "proxy", "port": port, **more}
            socket.send_fds(self.handover, [json.dumps(message).encode()], [listener.fileno()])
        return port

    def wait(self) -> int:
        if self.status is None:
            _, status = os.waitpid(self.pid, 0)
            self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def close(self) -> None:
        self.control.close()
        self.handover.close()
        self.wait()


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    made = Supervisor()
    try:
        yield made
    finally:
        made.close()
        assert made.status == 0


@pytest.fixture
def origin() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT)
        yield server


def connect(port: int, authority: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), WAIT)
    sock.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    return sock


def read_all(sock: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while data := sock.recv(65536):
            parts.append(data)
    return b"".join(parts)


def test_ready_comes_with_the_notices(supervisor: Supervisor) -> None:
    ready = supervisor.configure("p1", ["*"])
    assert ready["type"] == "ready"
    assert ready["policy"] == "p1"
    assert "EVERY public host" in ready["notices"][0]


def test_a_bad_rule_names_itself_and_its_place(supervisor: Supervisor) -> None:
    error = supervisor.configure("p1", ["a.test", "http://b.test/"])
    assert error["type"] == "error"
    assert error["policy"] == "p1"
    assert error["entry"] == "http://b.test/"
    assert error["where"] == "--allow"
    assert "scheme" in error["message"]


@pytest.mark.parametrize(
    "settings",
    [
        {"limits": {"no_such_limit": 1}},
        {"limits": {"head_time": -1}},
        {"upstream_proxy": "ftp://user:s3cret@proxy.test"},
        {"upstream_resolves": ["corp.example"]},
        {"upstream_proxy": "http://proxy.test:3128", "upstream_resolves": ["10.0.0.1"]},
        {"hosts": {"a.test": "nonsense"}},
        {"allow": "nonsense"},
    ],
)
def test_bad_settings_are_one_error_and_the_process_lives(supervisor: Supervisor, settings: dict[str, Any]) -> None:
    supervisor.tell(type="configure", policy="p1", settings=settings)
    error = supervisor.hear()
    assert error["type"] == "error"
    assert error["message"]
    assert "s3cret" not in json.dumps(error)
    assert supervisor.configure("p1", [])["type"] == "ready"


def test_a_refusal_is_told_after_its_receipt(supervisor: Supervisor) -> None:
    supervisor.configure("p1", [])
    sock = connect(supervisor.listen("r1", "p1"), "blocked.test:443")
    record = supervisor.hear(receipts=False)
    assert record["type"] == "record"
    assert record["run"] == "r1"
    assert record["wait"] is True
    assert [item["type"] for item in record["items"]] == ["network", "refusal"]
    sock.settimeout(0.05)
    with pytest.raises(TimeoutError):
        sock.recv(1)
    sock.settimeout(WAIT)
    supervisor.receipt(record)
    assert read_all(sock).startswith(b"HTTP/1.1 403 ")
    sock.close()


def test_an_allowed_tunnel_is_opened_and_closed_in_the_record(supervisor: Supervisor, origin: socket.socket) -> None:
    port = origin.getsockname()[1]
    supervisor.configure("p1", [f"a.test:{port}"], hosts={"a.test": "127.0.0.1"})
    sock = connect(supervisor.listen("r1", "p1"), f"a.test:{port}")
    opened = supervisor.hear()
    assert opened["items"][0]["payload"]["type"] == "connection_opened"
    accepted, _ = origin.accept()
    assert sock.recv(12) == b"HTTP/1.1 200"
    sock.close()
    accepted.close()
    closed = supervisor.hear()
    assert closed["wait"] is False
    assert [item["type"] for item in closed["items"]] == ["network"]
    assert closed["items"][0]["payload"]["address"] == "127.0.0.1"


def test_runs_are_told_apart_by_their_listener(supervisor: Supervisor) -> None:
    supervisor.configure("open", ["a.test"], hosts={"a.test": "192.0.2.1"})
    supervisor.configure("shut", [])
    ports = {run: supervisor.listen(run, policy) for run, policy in (("r1", "shut"), ("r2", "open"), ("r3", "shut"))}
    for run in ("r3", "r1"):
        sock = connect(ports[run], "a.test:25")
        assert supervisor.hear()["run"] == run
        assert b"403" in read_all(sock)
        sock.close()
    sock = connect(ports["r2"], "a.test:25")
    record = supervisor.hear()
    assert record["run"] == "r2"
    assert record["items"][0]["payload"]["reason"] == "port_not_allowed"
    sock.close()


def test_a_run_may_have_several_listeners(supervisor: Supervisor) -> None:
    supervisor.configure("p1", [])
    for port in (supervisor.listen("r1", "p1"), supervisor.listen("r1", "p1")):
        sock = connect(port, "a.test:443")
        assert supervisor.hear()["run"] == "r1"
        assert b"403" in read_all(sock)
        sock.close()
    supervisor.tell(type="finish", run="r1")
    assert supervisor.hear() == {"type": "finished", "run": "r1"}


def test_a_listener_may_come_before_its_policy(supervisor: Supervisor) -> None:
    port = supervisor.listen("r1", "p1")
    sock = connect(port, "a.test:443")
    assert supervisor.configure("p1", [])["type"] == "ready"
    supervisor.hear_type("record")
    assert b"403" in read_all(sock)
    sock.close()


def test_finishing_a_run_closes_it_and_leaves_the_others(supervisor: Supervisor, origin: socket.socket) -> None:
    port = origin.getsockname()[1]
    supervisor.configure("p1", [f"127.0.0.1:{port}"])
    one, two = supervisor.listen("r1", "p1"), supervisor.listen("r2", "p1")
    socks = [connect(each, f"127.0.0.1:{port}") for each in (one, two)]
    for sock in socks:
        supervisor.hear()
        assert sock.recv(12) == b"HTTP/1.1 200"
    supervisor.tell(type="finish", run="r1")
    last = supervisor.hear()
    assert last["run"] == "r1"
    assert last["items"][0]["payload"]["closed_by"] == "proxy"
    assert supervisor.hear() == {"type": "finished", "run": "r1"}
    read_all(socks[0])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", one), WAIT)
    socket.create_connection(("127.0.0.1", two), WAIT).close()
    supervisor.tell(type="finish", run="never-was")
    assert supervisor.hear() == {"type": "finished", "run": "never-was"}
    for sock in socks:
        sock.close()


def test_a_policy_configured_again_is_a_reload(supervisor: Supervisor) -> None:
    supervisor.configure("p1", [])
    port = supervisor.listen("r1", "p1")
    for allow, reason in (([], "not_allowed"), (["a.test:80"], "port_not_allowed")):
        supervisor.configure("p1", allow)
        sock = connect(port, "a.test:443")
        assert supervisor.hear()["items"][0]["payload"]["reason"] == reason
        read_all(sock)
        sock.close()
    assert supervisor.configure("p1", ["http://"])["type"] == "error"
    sock = connect(port, "a.test:443")
    assert supervisor.hear()["items"][0]["payload"]["reason"] == "port_not_allowed", "the old rules stay"
    sock.close()


def test_what_is_no_listener_is_closed_and_told(supervisor: Supervisor, origin: socket.socket) -> None:
    supervisor.configure("p1", [])
    with socket.socket() as unbound:
        message = {"run": "r1", "policy": "p1", "listener": "proxy", "port": 1}
        socket.send_fds(supervisor.handover, [json.dumps(message).encode()], [unbound.fileno()])
        assert supervisor.hear()["type"] == "error"
        socket.send_fds(supervisor.handover, [json.dumps(message).encode()], [unbound.fileno(), origin.fileno()])
        assert supervisor.hear()["type"] == "error"
    supervisor.listen("r1", "p1", listener="no-such-kind")
    assert supervisor.hear()["type"] == "error"


def test_shutdown_and_signals(supervisor: Supervisor) -> None:
    supervisor.configure("p1", [])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(supervisor.pid, number)  # they reach the whole group; the supervisor decides
    assert supervisor.configure("p2", [])["type"] == "ready"
    supervisor.tell(type="shutdown")
    assert supervisor.wait() == 0


def test_when_the_supervisor_is_gone_everything_is_closed(origin: socket.socket) -> None:
    supervisor = Supervisor()
    port = origin.getsockname()[1]
    supervisor.configure("p1", [f"127.0.0.1:{port}"])
    listening = supervisor.listen("r1", "p1")
    open_one, waiting = connect(listening, f"127.0.0.1:{port}"), connect(listening, "blocked.test:443")
    supervisor.hear(receipts=False)
    supervisor.hear(receipts=False)
    supervisor.control.close()
    assert supervisor.wait() == 0
    assert read_all(open_one) == b"", "what was not recorded is not answered"
    assert read_all(waiting) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", listening), WAIT)
    supervisor.close()
    open_one.close()
    waiting.close()


def test_a_supervisor_that_reads_slowly_loses_nothing(supervisor: Supervisor) -> None:
    supervisor.control.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    supervisor.configure("p1", [])
    port = supervisor.listen("r1", "p1")
    socks = [connect(port, f"blocked{index}.test:443") for index in range(300)]
    hosts = set()
    for _ in socks:
        record = supervisor.hear()
        hosts.add(record["items"][0]["payload"]["host"])
    assert len(hosts) == 300
    for sock in socks:
        assert read_all(sock).startswith(b"HTTP/1.1 403 ")
        sock.close()


def test_a_policy_on_hold_is_served_when_it_is_said(supervisor: Supervisor) -> None:
    supervisor.tell(type="configure", policy="p1", settings={"allow": [], "deny": []}, hold=True)
    assert supervisor.hear()["type"] == "ready"
    sock = connect(supervisor.listen("r1", "p1"), "a.test:443")
    supervisor.tell(type="finish", run="never-was")
    assert supervisor.hear() == {"type": "finished", "run": "never-was"}  # and no record came before it
    supervisor.tell(type="serve")
    assert supervisor.hear()["items"][0]["payload"]["reason"] == "not_allowed"
    assert b"403" in read_all(sock)
    sock.close()
    # from then on listeners are served as they come
    sock = connect(supervisor.listen("r2", "p1"), "a.test:443")
    assert supervisor.hear()["run"] == "r2"
    assert b"403" in read_all(sock)
    sock.close()


def test_a_run_that_was_over_before_it_was_served_keeps_what_was_asked(supervisor: Supervisor) -> None:
    supervisor.tell(type="configure", policy="p1", settings={"allow": [], "deny": []}, hold=True)
    assert supervisor.hear()["type"] == "ready"
    quiet = supervisor.listen("r1", "p1")
    sock = connect(supervisor.listen("r2", "p1"), "a.test:443")
    supervisor.tell(type="finish", run="r1")
    assert supervisor.hear() == {"type": "finished", "run": "r1"}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", quiet), WAIT)
    supervisor.tell(type="finish", run="r2")
    assert [item["type"] for item in supervisor.hear()["items"]] == ["network", "refusal"]
    assert supervisor.hear() == {"type": "finished", "run": "r2"}
    sock.close()

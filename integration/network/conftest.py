"""A door on loopback in a thread of its own, with a resolver and a dialler that record, and servers to reach or not."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from doorward.allowlists.host import Name
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet
from doorward.proxy.admission import Way
from doorward.proxy.alone import open_listener
from doorward.proxy.channel import Channel
from doorward.proxy.control import SupervisorGone
from doorward.proxy.dial import SocketDialler
from doorward.proxy.limits import DEFAULT, Limits
from doorward.proxy.loop import Loop, Promise
from doorward.proxy.own_listeners import OwnListeners
from doorward.proxy.parent import Parent
from doorward.proxy.policy import Policy
from doorward.proxy.records import items_of
from doorward.proxy.resolver import IP, LookupFailed
from doorward.proxy.server import Server
from doorward.proxy.splice import PipePool
from doorward.start_json import Encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.asking import Decider
    from doorward.proxy.record_form import Form
    from doorward.proxy.records import Item

WAIT = 30.0
"""Seconds after which a test that waits for something has failed."""

ORIGIN = Origin("flag", "--allow")


class StubResolver:
    """Answers from a table, a list of answers one after the other, and counts what it was asked."""

    def __init__(self) -> None:
        self.table: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    def set(self, name: str, *answers: list[str]) -> None:
        self.table[name] = list(answers)

    async def resolve(self, name: Name, seconds: float) -> tuple[IP, ...]:
        self.asked.append(name.text)
        answers = self.table.get(name.text)
        if not answers:
            raise LookupFailed(f"{name.text} does not resolve: no answer.")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return tuple(ipaddress.ip_address(text) for text in answer)


class RecordingDialler:
    """Dials where `routes` says, and what is loopback; anything else is noted and fails as unreachable."""

    def __init__(self) -> None:
        self.routes: dict[tuple[str, int], tuple[str, int]] = {}
        self.attempts: list[tuple[str, int]] = []
        self._real = SocketDialler()

    def begin(self, loop: Loop, ip: IP, port: int) -> Channel:
        self.attempts.append((str(ip), port))
        there = self.routes.get((str(ip), port))
        if there is None:
            if not ip.is_loopback and not ip.is_unspecified:
                raise OSError(101, "network is unreachable")
            there = (str(ip), port)
        return self._real.begin(loop, ipaddress.ip_address(there[0]), there[1])


class MemorySink:
    """Keeps the records; `hold` delays receipts until `release`; `gone`: as if nobody kept them any more."""

    keeps = True

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.items: list[Item] = []
        self.hold = self.gone = False
        self._held: list[Promise[None]] = []
        self.changed = threading.Condition()

    def post(self, run: str, items: list[Item]) -> None:
        with self.changed:
            for item in items:
                payload = item["payload"]
                text = payload if isinstance(payload, Encoded) else json.dumps(payload)
                self.items.append({"type": item["type"], "payload": json.loads(text)})
            self.changed.notify_all()

    def submit(self, run: str, items: list[Item], *, hurry: bool = False, unless: int = -1) -> Promise[None]:
        promise: Promise[None] = Promise(self.loop)
        if self.gone:
            promise.fail(SupervisorGone())
            return promise
        if self.hold:
            self._held.append(promise)
        else:
            promise.set(None)
        self.post(run, items)
        return promise

    def submit_form(
        self, run: str, form: Form, strings: list[str], *, hurry: bool = False, unless: int = -1
    ) -> Promise[None]:
        return self.submit(run, items_of(form, strings))

    def hurry(self) -> None:
        pass

    def release(self) -> None:
        """From the loop's thread."""
        self.hold = False
        for promise in self._held:
            promise.set(None)

    def wait_for(self, wanted: Callable[[list[Item]], bool]) -> list[Item]:
        with self.changed:
            assert self.changed.wait_for(lambda: wanted(self.items), WAIT), self.items
            return list(self.items)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [item["payload"] for item in list(self.items) if item["type"] == kind]

    def network(self, count: int = 1) -> list[dict[str, Any]]:
        self.wait_for(lambda items: sum(item["type"] == "network" for item in items) >= count)
        return self.of("network")


class Door:
    """A running `Server`."""

    def __init__(
        self,
        allow: list[Any],
        deny: list[Any],
        *,
        limits: Limits = DEFAULT,
        hosts: dict[str, str] | None = None,
        decider: Decider | None = None,
        answer_time: float = 300.0,
        parent: Parent | None = None,
        parent_resolves: frozenset[str] = frozenset(),
        splice: bool = True,
    ) -> None:
        self.loop = Loop()
        self.resolver = StubResolver()
        self.dialler = RecordingDialler()
        self.sink = MemorySink(self.loop)
        self.own = OwnListeners()
        self.faults: list[BaseException] = []
        self._hosts = hosts or {}
        self._extra = (limits, parent, parent_resolves)
        self.can_ask = decider is not None
        pipes = PipePool(usable=splice)
        way = Way(self.loop, self.own, resolver=self.resolver, dialler=self.dialler, pipes=pipes)
        self.server = Server(
            way,
            "run-1",
            self.policy(allow, deny),
            self.sink,
            via=b"doorward-test",
            decider=decider,
            answer_time=answer_time,
            on_error=self.faults.append,
        )
        listener = open_listener("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        self.server.add_listener(listener)
        self._pipes = pipes
        self._thread = threading.Thread(target=self._run, name="door")
        self._thread.start()

    def policy(self, allow: list[Any], deny: list[Any] | None = None) -> Policy:
        rules = RuleSet.build(
            [parse_rule(entry, "allow", ORIGIN) for entry in allow],
            [parse_rule(entry, "deny", ORIGIN) for entry in deny or []],
            hosts=self._hosts,
            can_ask=self.can_ask,
        )
        limits, parent, parent_resolves = self._extra
        return Policy(rules, limits, parent, parent_resolves)

    def _run(self) -> None:
        self.loop.run(self.server.serve())

    def call(self, function: Callable[[], Any]) -> Any:
        """Call it in the loop's thread and give its value."""
        done = threading.Event()
        values: list[Any] = []

        def work() -> None:
            values.append(function())
            done.set()

        self.loop.post(work)
        assert done.wait(WAIT)
        return values[0]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), WAIT)

    def close(self) -> None:
        self.loop.post(self.server.close)
        self._thread.join(WAIT)
        assert not self._thread.is_alive(), "the door does not end"
        self._pipes.close()
        self.loop.close()
        if self.faults:
            raise self.faults[0]


class Listener:
    """A TCP server in threads: `handle` gets each connection. Counts and keeps what was read for whoever asks."""

    def __init__(self, handle: Callable[[socket.socket], None], host: str = "127.0.0.1") -> None:
        self._handle = handle
        self._socket = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self.touched = 0
        self.errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._stop_read, self._stop_write = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, name="listener")
        self._thread.start()

    def _accept(self) -> None:
        while True:
            ready, _, _ = select.select([self._socket, self._stop_read], [], [])
            if self._stop_read in ready:
                return
            sock, _ = self._socket.accept()
            sock.settimeout(WAIT)
            self.touched += 1
            self._sockets.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            try:
                self._handle(sock)
            except (ConnectionError, TimeoutError):
                pass
            except BaseException as error:
                self.errors.append(error)

    def close(self) -> None:
        """Also a second time, for a test that frees the port earlier."""
        if self._stop_write.fileno() < 0:
            return
        self._stop_write.send(b"x")
        self._thread.join(WAIT)
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(WAIT)
        for sock in (self._socket, self._stop_read, self._stop_write):
            sock.close()
        if self.errors:
            raise self.errors[0]


def read_head(sock: socket.socket, kept: bytes = b"") -> tuple[bytes, bytes]:
    """The bytes up to an empty line, and what came behind."""
    while b"\r\n\r\n" not in kept:
        data = sock.recv(65536)
        if not data:
            return kept, b""
        kept += data
    head, _, rest = kept.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def read_all(sock: socket.socket) -> bytes:
    """Everything to the end of the stream."""
    parts = []
    while data := sock.recv(65536):
        parts.append(data)
    return b"".join(parts)


def read_exactly(sock: socket.socket, count: int, kept: bytes = b"") -> bytes:
    while len(kept) < count:
        data = sock.recv(count - len(kept))
        if not data:
            break
        kept += data
    return kept


def length_of(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


class OriginServer:
    """Origin A: a small HTTP server that keeps the heads and bodies it got and answers 200 with a fixed body."""

    def __init__(self, body: bytes = b"A", host: str = "127.0.0.1") -> None:
        self.heads: list[bytes] = []
        self.changed = threading.Condition()
        self.bodies: list[bytes] = []
        self.body = body
        self.listener = Listener(self._serve, host)
        self.port = self.listener.port

    @property
    def touched(self) -> int:
        return self.listener.touched

    def _read_chunks(self, sock: socket.socket, rest: bytes) -> tuple[bytes, bytes]:
        """The content of a chunked body and what came behind; trailers are read over."""
        body = b""
        while True:
            line, rest = self._line(sock, rest)
            size = int(line, 16)
            if not size:
                break
            chunk = read_exactly(sock, size + 2, rest[: size + 2])
            rest = rest[size + 2 :]
            body += chunk[:size]
        while True:
            line, rest = self._line(sock, rest)
            if not line:
                return body, rest

    @staticmethod
    def _line(sock: socket.socket, rest: bytes) -> tuple[bytes, bytes]:
        while b"\r\n" not in rest:
            data = sock.recv(65536)
            if not data:
                raise ConnectionError("the body ended")
            rest += data
        line, _, rest = rest.partition(b"\r\n")
        return line, rest

    def wait_for_heads(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.bodies) >= count, WAIT), self.heads

    def _serve(self, sock: socket.socket) -> None:
        rest = b""
        while True:
            head, rest = read_head(sock, rest)
            if not head:
                return
            self.heads.append(head)
            count = length_of(head)
            body = read_exactly(sock, count, rest[:count]) if count else b""
            rest = rest[count:]
            if b"transfer-encoding: chunked" in head.lower():
                body, rest = self._read_chunks(sock, rest)
            with self.changed:
                self.bodies.append(body)
                self.changed.notify_all()
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.body)
            sock.sendall(answer if head.startswith(b"HEAD ") else answer + self.body)


def client_hello(server_name: str | None, alpn: list[str] | None = None) -> bytes:
    """A real ClientHello."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(alpn)
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=server_name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def named(port: int | str, name: str = "allowed.test", **more: Any) -> dict[str, Any]:
    """A rule for a name that leads to loopback."""
    return {"host": f"{name}:{port}", "addresses": ["127.0.0.0/8", "::1"], **more}


def error_class(answer: bytes) -> str:
    for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n"):
        name, _, value = line.partition(b": ")
        if name == b"x-proxy-error":
            return value.decode()
    return ""


class Network:
    """Everything a test may open; closed at its end, last first."""

    client_hello = staticmethod(client_hello)
    error_class = staticmethod(error_class)
    named = staticmethod(named)
    wait = WAIT
    read_all = staticmethod(read_all)
    read_head = staticmethod(read_head)
    read_exactly = staticmethod(read_exactly)

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def door(self, allow: list[Any] | None = None, deny: list[Any] | None = None, **options: Any) -> Door:
        """A door whose resolver knows `allowed.test` and `a.allowed.test`, both loopback."""
        limits = options.pop("limits", {})
        door = Door(allow or [], deny or [], limits=DEFAULT._replace(**limits), **options)
        door.resolver.set("allowed.test", ["127.0.0.1"])
        door.resolver.set("a.allowed.test", ["127.0.0.1"])
        self._stack.callback(door.close)
        return door

    def listener(self, handle: Callable[[socket.socket], None], host: str = "127.0.0.1") -> Listener:
        listener = Listener(handle, host)
        self._stack.callback(listener.close)
        return listener

    def origin(self, body: bytes = b"A", host: str = "127.0.0.1") -> OriginServer:
        origin = OriginServer(body, host)
        self._stack.callback(origin.listener.close)
        return origin

    def canary(self, host: str = "127.0.0.1") -> Listener:
        """A listener nobody may touch: look at `touched`."""
        return self.listener(lambda sock: None, host)

    def client(self, door: Door) -> socket.socket:
        return self._stack.enter_context(door.connect())

    def ask(self, door: Door, request: bytes, *, end: bool = False) -> bytes:
        """Send raw bytes, give everything up to the end; `end`: end our side behind them."""
        with door.connect() as sock:
            sock.sendall(request)
            if end:
                sock.shutdown(socket.SHUT_WR)
            return read_all(sock)

    def tunnel(self, door: Door, authority: str) -> socket.socket:
        """A client whose CONNECT was answered with 200."""
        sock = self.client(door)
        sock.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):  # not a byte more: the server may have spoken already
            byte = sock.recv(1)
            assert byte, head
            head += byte
        assert head.startswith(b"HTTP/1.1 200 "), head + sock.recv(1000)
        return sock


@pytest.fixture
def network() -> Iterator[Network]:
    with contextlib.ExitStack() as stack:
        yield Network(stack)


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate for 127.0.0.1 that this process trusts."""
    file = tmp_path / "pair.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=parent", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", file, "-out", tmp_path / "c.pem"],
        capture_output=True,
        check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no openssl command to make a certificate with")
    file.write_text(file.read_text() + (tmp_path / "c.pem").read_text())
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "c.pem"))
    return file

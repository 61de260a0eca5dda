"""A door in its own process with a real inspection worker, a certificate authority of the test's own, and servers."""

from __future__ import annotations

import array
import contextlib
import datetime
import importlib.util
import ipaddress
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

WAIT = 40.0
"""Seconds after which a test that waits for something has failed."""

UNABLE = (
    f"inspection needs Python 3.12 or later, and this is {sys.version_info[0]}.{sys.version_info[1]}"
    if sys.version_info < (3, 12)
    else "inspection needs mitmproxy, which is not installed"
)


def able() -> bool:
    return sys.version_info >= (3, 12) and importlib.util.find_spec("mitmproxy") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and not able():
            if sys.version_info >= (3, 12) and os.environ.get("CI") == "true":
                raise pytest.UsageError(f"{UNABLE}; install.sh --dev installs it")
            item.add_marker(pytest.mark.skip(reason=UNABLE))


class Authority:
    """Signs the servers' certificates; `pem` is what the worker is told to trust."""

    def __init__(self, folder: Path) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test authority")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(1)
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(True, None), True)
            .add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), False)
            .sign(self._key, hashes.SHA256())
        )
        self._certificate = certificate
        self.path = folder / "authority.pem"
        self.path.write_bytes(_pem(certificate))

    def context(
        self, *names: str, alpn: tuple[str, ...] = ("http/1.1",), days: int = 1, trusted: bool = True
    ) -> ssl.SSLContext:
        """A server's context for these names or addresses; `days` may be negative for one that has expired."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        until = now + datetime.timedelta(days=days)
        names_: list[x509.GeneralName] = []
        for name in names:
            try:
                names_.append(x509.IPAddress(ipaddress.ip_address(name)))
            except ValueError:
                names_.append(x509.DNSName(name))
        issuer_key = self._key if trusted else ec.generate_private_key(ec.SECP256R1())
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")]))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, until) - datetime.timedelta(days=1))
            .not_valid_after(until)
            .add_extension(x509.SubjectAlternativeName(names_), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False)
            .sign(issuer_key, hashes.SHA256())
        )
        file = self._folder / f"server-{certificate.serial_number:x}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + _pem(certificate)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.set_alpn_protocols(list(alpn))
        return context


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization

    found: bytes = certificate.public_bytes(serialization.Encoding.PEM)
    return found


class Door:
    """The proxy process and the worker, on a loopback port; `items` are its records."""

    def __init__(self, folder: Path, authority: Authority, allow: list[Any], **settings: Any) -> None:
        from doorward.inspection_process import InspectionProcess
        from doorward.proxy_process import POLICY, ProxyProcess

        self.items: list[tuple[str, dict[str, Any]]] = []
        self.changed = threading.Condition()
        work = {"folder": str(folder), "names": None, "roots": str(authority.path), **settings.pop("work", {})}
        self.proxy = ProxyProcess()
        self.worker = InspectionProcess(sys.executable, work, self.proxy.inspection)
        rows = [{"rule": rule, "source": "flag", "where": "--allow"} for rule in allow]
        self.proxy.configure(
            {
                "allow": rows,
                "hosts": {"api.test": "127.0.0.1", "other.test": "127.0.0.1", "git.test": "127.0.0.1"},
                "inspection": {"every": False, "credentials": {}},
                **settings,
            }
        )
        self.proxy.await_ready()
        self.trust = self.worker.await_ready()
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        message = json.dumps({"run": "1", "policy": POLICY, "listener": "proxy"}).encode()
        rights = array.array("i", [listener.fileno()])
        self.proxy.handover.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        listener.close()
        self.proxy.serve()
        self._thread = threading.Thread(target=self._read, name="records")
        self._finished = threading.Event()
        self._thread.start()

    def _read(self) -> None:
        from doorward.errors import ProxyStopped

        while True:
            try:
                items, receipts, finished = self.proxy.records()
            except (ProxyStopped, OSError):
                self._finished.set()
                return
            with self.changed:
                self.items += [(kind, payload) for kind, payload, _ in items]
                self.changed.notify_all()
            self.proxy.acknowledge(receipts)
            if finished:
                self._finished.set()
                return

    def of(self, kind: str, type_: str | None = None) -> list[dict[str, Any]]:
        with self.changed:
            return [
                payload for each, payload in self.items
                if each == kind and (type_ is None or payload.get("type") == type_)
            ]  # fmt: skip

    def wait_for(self, kind: str, count: int = 1, type_: str | None = None) -> list[dict[str, Any]]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.of(kind, type_)) >= count, WAIT), self.items
        return self.of(kind, type_)

    def tunnel(self, host: str, port: int) -> socket.socket:
        """A CONNECT that succeeded."""
        sock = socket.create_connection(("127.0.0.1", self.port), WAIT)
        sock.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            data = sock.recv(1)
            if not data:
                break
            head += data
        if not head.startswith(b"HTTP/1.1 200 "):
            sock.close()
        assert head.startswith(b"HTTP/1.1 200 "), head
        return sock

    def tls(self, host: str, port: int, *, alpn: tuple[str, ...] = ("http/1.1",)) -> ssl.SSLSocket:
        """TLS inside such a tunnel, by a client that trusts what the sandbox does."""
        context = ssl.create_default_context(cafile=self.trust["bundle"])
        context.set_alpn_protocols(list(alpn))
        return context.wrap_socket(self.tunnel(host, port), server_hostname=host)

    @staticmethod
    def read_all(sock: socket.socket) -> bytes:
        """To the end of the stream, or to a reset."""
        return read_all(sock)

    def ask(self, host: str, port: int, request: bytes) -> bytes:
        """The whole answer to a request that ends the connection."""
        with self.tls(host, port) as sock:
            sock.sendall(request)
            return read_all(sock)

    def close(self) -> None:
        self.proxy.finish("1")
        assert self._finished.wait(WAIT), "the door does not finish"
        self.proxy.close()
        self.worker.close()
        self._thread.join(WAIT)


def read_all(sock: socket.socket) -> bytes:
    parts = []
    try:
        while data := sock.recv(65536):
            parts.append(data)
    except (ConnectionResetError, ssl.SSLEOFError):
        pass
    return b"".join(parts)


class HttpServer:
    """An HTTPS server that answers with what it was sent, and keeps it."""

    def __init__(self, context: ssl.SSLContext | None, answer: Callable[[Any], None] | None = None) -> None:
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.seen = seen
        gave_up = self.gave_up = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                body = b""
                if size <= 1 << 20:
                    body = self.rfile.read(size)
                elif answer is None:
                    left = size
                    while left:
                        left -= len(self.rfile.read(min(left, 1 << 16)))
                seen.append((self.command, self.path, dict(self.headers), body))
                self.body = body
                if answer is not None:
                    answer(self)
                    return
                said = json.dumps({"method": self.command, "path": self.path, "headers": dict(self.headers)}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(said)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = answer

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                gave_up.set()  # clients that refuse the certificate, have none, or go

            def finish_request(self, request: Any, client_address: Any) -> None:
                if context is None:
                    super().finish_request(request, client_address)
                    return
                with context.wrap_socket(request, server_side=True) as secure:
                    super().finish_request(secure, client_address)

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="http server")
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WAIT)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


class Ran(NamedTuple):
    """One `doorward run --json`: its exit status, its observation, its own lines."""

    status: int
    document: dict[str, Any]
    err: str

    @property
    def output(self) -> str:
        return str(self.document["output"])

    @property
    def reasons(self) -> list[str]:
        return [str(refusal["reason"]) for refusal in self.document["refusals"]]


@pytest.fixture
def run(tmp_path: Path, authority: Authority) -> Callable[..., Ran]:
    """`doorward run --json ARGS`, in a workspace and a home of the test's own; the names of the tests are this
    machine, and servers with the test's certificates are trusted outside."""
    workspace = tmp_path / "work"
    workspace.mkdir()

    def call(*args: str, env: dict[str, str] | None = None) -> Ran:
        hosts = ", ".join(f'"{name}" = "127.0.0.1"' for name in ("api.test", "other.test", "git.test"))
        done = subprocess.run(
            [sys.executable, "-P", "-m", "doorward", "run", "--json", "-c", f"network.hosts={{{hosts}}}", *args],
            cwd=workspace,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
                "HOME": str(workspace),
                "LANG": "C.UTF-8",
                "DOORWARD_HOME": str(tmp_path / "home"),
                "SSL_CERT_FILE": str(authority.path),
                **(env or {}),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        err = done.stderr.decode("utf-8", "backslashreplace")
        assert done.stdout, err
        return Ran(done.returncode, json.loads(done.stdout), err)

    call.workspace = workspace  # type: ignore[attr-defined]
    call.home = tmp_path / "home"  # type: ignore[attr-defined]
    return call


@pytest.fixture
def start(tmp_path: Path, authority: Authority) -> Iterator[Callable[..., Any]]:
    """`start(allow, **settings)` gives a door; `start.server(*names)` an HTTPS server."""
    with contextlib.ExitStack() as stack:

        class Start:
            def __call__(self, allow: list[Any], **settings: Any) -> Door:
                door = Door(tmp_path / "inspect", authority, allow, **settings)
                stack.callback(door.close)
                return door

            def server(self, *names: str, answer: Callable[[Any], None] | None = None, **more: Any) -> HttpServer:
                context = more.pop("context", None)
                if context is None and not more.pop("plain", False):
                    context = authority.context(*(names or ("api.test",)), **more)
                server = HttpServer(context, answer)
                stack.callback(server.close)
                return server

        yield Start()

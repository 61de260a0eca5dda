"""Servers on the host's loopback for a command inside to reach by name."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from typing import Any


class Origin:
    """A small HTTP origin on 127.0.0.1 that answers `hello`, one request a connection, and keeps the heads it got.
    Inside it is called `name`, unless an option or a URL is asked for another."""

    def __init__(self, name: str = "a.test") -> None:
        self.name = name
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                head = b""
                while b"\r\n\r\n" not in head and (data := connection.recv(65536)):
                    head += data
                self.requests.append(head)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")

    def pin(self, name: str | None = None) -> tuple[str, str]:
        """The option under which the name is this machine, and allowed to nobody."""
        return ("-c", f'network.hosts={{"{name or self.name}" = "127.0.0.1"}}')

    def reach(self, name: str | None = None) -> tuple[str, ...]:
        """Options under which `http://NAME:PORT/` is this origin, and allowed."""
        return ("--allow", f"{name or self.name}:{self.port}", *self.pin(name))

    def url(self, name: str | None = None) -> str:
        """The URL a command inside would use."""
        return f"http://{name or self.name}:{self.port}/"

    def close(self) -> None:
        """Stop listening."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._thread.join(5)


class QuietHandler(http.server.BaseHTTPRequestHandler):
    """Answers as the standard library does, but tells nothing: pytest's output is for the tests."""

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""

    def answer(self, body: bytes, kind: str = "application/json", status: int = 200) -> None:
        """A whole response."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class HttpOrigin(http.server.ThreadingHTTPServer):
    """A server on 127.0.0.1 whose requests go to `handler`, from now until `close`."""

    daemon_threads = True

    def __init__(
        self, handler: type[http.server.BaseHTTPRequestHandler], context: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.port = int(self.server_address[1])
        if context is not None:
            # the handshake is the handler's, so that one that fails does not stop the others
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no news."""

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()
        self._thread.join(5)

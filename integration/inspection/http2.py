"""HTTP/2 by hand, for tests: a client and a server over h2, which let through what a decent library would not."""

from __future__ import annotations

import socket
import ssl
import threading
from typing import Any

import h2.config
import h2.connection
import h2.events


class Client:
    """One connection. `ask` sends a request and gives status, headers, body and trailers, or the stream's reset."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        assert sock.selected_alpn_protocol() == "h2"
        self.sock = sock
        config = h2.config.H2Configuration(
            client_side=True, validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.connection = h2.connection.H2Connection(config)
        self.connection.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.sock.sendall(self.connection.data_to_send())

    def begin(self, headers: list[tuple[str, str]], *, end: bool = True) -> int:
        stream = self.connection.get_next_available_stream_id()
        self.connection.send_headers(stream, headers, end_stream=end)
        self.flush()
        return stream

    def send(self, stream: int, data: bytes, *, end: bool = False) -> None:
        self.connection.send_data(stream, data, end_stream=end)
        self.flush()

    def answer(self, stream: int) -> dict[str, Any]:
        found: dict[str, Any] = {"body": b"", "headers": {}, "trailers": {}}
        while True:
            data = self.sock.recv(65536)
            if not data:
                return found | {"closed": True}
            for event in self.connection.receive_data(data):
                if getattr(event, "stream_id", None) not in (stream, None):
                    continue
                if isinstance(event, h2.events.ResponseReceived):
                    found["headers"] = _text(event.headers)
                elif isinstance(event, h2.events.DataReceived):
                    found["body"] += event.data
                    self.connection.acknowledge_received_data(event.flow_controlled_length, stream)
                elif isinstance(event, h2.events.TrailersReceived):
                    found["trailers"] = _text(event.headers)
                elif isinstance(event, h2.events.StreamReset):
                    return found | {"reset": event.error_code}
                elif isinstance(event, h2.events.ConnectionTerminated):
                    return found | {"closed": True}
                elif isinstance(event, h2.events.StreamEnded):
                    self.flush()
                    return found
            self.flush()

    def ask(self, headers: list[tuple[str, str]], body: bytes = b"") -> dict[str, Any]:
        stream = self.begin(headers, end=not body)
        if body:
            self.send(stream, body, end=True)
        return self.answer(stream)


def _text(headers: Any) -> dict[str, str]:
    return {_str(name): _str(value) for name, value in headers}


def _str(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


class Server:
    """Echoes each request's body with trailers, as gRPC does; `seen` are the heads. `hold` reads no more of bodies
    until it is set free."""

    def __init__(self, context: ssl.SSLContext, *, hold: threading.Event | None = None) -> None:
        self.seen: list[dict[str, str]] = []
        self.trailers: list[dict[str, str]] = []
        self._hold = hold
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        self._sockets: list[socket.socket] = []

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,))
            self._threads.append(thread)
            thread.start()

    def adopt(self, sock: socket.socket) -> None:
        """Serve a connection that somebody else accepted."""
        self._sockets.append(sock)
        thread = threading.Thread(target=self._serve, args=(sock,))
        self._threads.append(thread)
        thread.start()

    def cut(self) -> None:
        """End every connection."""
        for sock in self._sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _serve(self, plain: socket.socket) -> None:
        try:
            with self._context.wrap_socket(plain, server_side=True) as sock:
                self._sockets.append(sock)
                self._speak(sock)
        except (OSError, ssl.SSLError):
            pass
        finally:
            plain.close()

    def _speak(self, sock: ssl.SSLSocket) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        sock.sendall(connection.data_to_send())
        bodies: dict[int, bytes] = {}
        while data := sock.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.seen.append(_text(event.headers))
                    bodies[event.stream_id] = b""
                elif isinstance(event, h2.events.DataReceived):
                    if self._hold is not None:
                        self._hold.wait(30)
                    bodies[event.stream_id] += event.data
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.TrailersReceived):
                    self.trailers.append(_text(event.headers))
                elif isinstance(event, h2.events.StreamEnded):
                    body = bodies.pop(event.stream_id)
                    connection.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/grpc")])
                    connection.send_data(event.stream_id, body[:1000])
                    connection.send_headers(event.stream_id, [("grpc-status", "0")], end_stream=True)
            sock.sendall(connection.data_to_send())

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for sock in self._sockets:
            sock.close()
        for thread in self._threads:
            thread.join(15)

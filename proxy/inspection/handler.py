"""One inspected connection: mitmproxy's layers between client and server, and the door asked about every request."""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mitmproxy.connection import ConnectionState, Server
from mitmproxy.proxy import events, layer, mode_specs, server
from mitmproxy.proxy.layers import tls

from doorward.proxy.inspection.door import Door, DoorGone, NoConnection
from doorward.proxy.inspection.requests import Requests
from doorward.proxy.inspection.streams import HttpLayer

if TYPE_CHECKING:
    from doorward.proxy.inspection.worker import Setting

_MODE = mode_specs.ProxyMode.parse("regular")
_ALPN = (b"h2", b"http/1.1")

log = logging.getLogger("doorward.inspection")


class Stream:
    """asyncio's two ends of a connected socket, counted."""

    def __init__(self) -> None:
        self.read = 0
        self.written = 0

    async def open(self, sock: socket.socket, early: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """`early` comes before all that is read."""
        loop = asyncio.get_running_loop()
        reader = _CountedReader(self, loop=loop)
        if early:
            reader.feed_data(early)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.create_connection(lambda: protocol, sock=sock)
        return reader, _CountedWriter(self, transport, protocol, reader, loop)


class _CountedReader(asyncio.StreamReader):
    def __init__(self, stream: Stream, **named: Any) -> None:
        super().__init__(**named)
        self._stream = stream

    def feed_data(self, data: Any) -> None:
        self._stream.read += len(data)
        super().feed_data(data)


class _CountedWriter(asyncio.StreamWriter):
    def __init__(self, stream: Stream, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._stream = stream

    def write(self, data: Any) -> None:
        self._stream.written += len(data)
        super().write(data)


class Inspection(server.LiveConnectionHandler):
    """Made by `start`; `handle_client` runs it to its end."""

    def __init__(
        self,
        setting: Setting,
        door: Door,
        message: Mapping[str, Any],
        stream: Stream,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        super().__init__(reader, writer, setting.options, _MODE)
        self.setting = setting
        self.door = door
        self.name: str = message["tunnel"]
        self.host: str = message["host"]
        self.port: int = message["port"]
        self.tls: bool = message["tls"]
        self.client_stream = stream
        self.server_stream = Stream()
        self.error: str | None = None
        self.requests = Requests(setting, door, message, self.stop)
        self._server_ended_first = False
        client: Any = self.client
        client.doorward_http2 = []
        client.doorward_limits = setting.limits
        client.doorward_malformed = self.requests.malformed
        client.doorward_failure = None
        context = self.layer.context
        top: Any
        context.server.address = (self.host, self.port)
        context.server.sni = self.host
        if self.tls:
            top = tls.ServerTLSLayer(context)
            top.child_layer = tls.ClientTLSLayer(context)
        else:
            top = HttpLayer(context, server.HTTPMode.transparent)
        self.layer: Any = top

    def log(self, message: str, level: int = logging.INFO, exc_info: Any = None) -> None:
        """mitmproxy's own lines: for debugging only, since they may hold what a client sent."""
        if "certificate required" in message:  # in TLS 1.3 that comes after the handshake (RFC 8446 §4.4.2.4)
            self.error = f"upstream-failed: {self._no_client_certificate()}"
            client: Any = self.client
            client.doorward_failure = self._no_client_certificate()
        if exc_info is not None:
            log.error("a fault in mitmproxy's core", exc_info=exc_info)
            self.error = self.error or "a fault of the inspection worker's own"
            self.stop()  # nothing more would come of it

    async def run(self) -> None:
        """To the end; then the door is told how it went."""
        try:
            await self.handle_client()
        finally:
            self.door.closed(
                self.name,
                up=self.server_stream.written,
                down=self.server_stream.read,
                closed_by="server" if self._server_ended_first else "client",
                error=self.error,
            )

    def stop(self) -> None:
        """End it from outside."""
        known = self.transports.get(self.client)
        if known is not None and known.handler is not None:
            known.handler.cancel("closed by the door")

    async def open_connection(self, command: Any) -> None:
        """Connect to the tunnel's server, by a connection of the door's; there is no other destination."""
        connection: Server = command.connection
        if connection.address != (self.host, self.port) or connection.via is not None:
            await self.server_event(events.OpenConnectionCompleted(command, "another destination"))
            return
        try:
            sock, early = await self.door.dial(self.name)
            reader, writer = await self.server_stream.open(sock, base64.b64decode(early))
        except NoConnection as failed:
            self.requests.failed = failed
            connection.error = failed.sentence
            self.error = f"{failed.error_class}: {failed.sentence}"
            await self.server_event(events.OpenConnectionCompleted(command, failed.sentence))
            return
        except (DoorGone, OSError):
            connection.error = "the door is gone"
            await self.server_event(events.OpenConnectionCompleted(command, connection.error))
            return
        except asyncio.CancelledError:
            connection.error = "the connection was given up"
            await self.server_event(events.OpenConnectionCompleted(command, connection.error))
            raise
        connection.timestamp_start = connection.timestamp_tcp_setup = time.time()
        connection.state = ConnectionState.OPEN
        connection.peername = writer.get_extra_info("peername") or (self.host, self.port)
        connection.sockname = writer.get_extra_info("sockname") or ("", 0)
        self.transports[connection] = server.ConnectionIO(asyncio.current_task(), reader, writer)
        await self.server_event(events.OpenConnectionCompleted(command, None))
        try:
            await self.handle_connection(connection)
        finally:
            if self.client.state & ConnectionState.CAN_READ:
                self._server_ended_first = True

    async def handle_hook(self, hook: Any) -> None:
        """What mitmproxy's layers ask."""
        handle = getattr(self, f"_{hook.name}", None) or getattr(self.requests, hook.name, None)
        if handle is None:
            return
        with self.timeout_watchdog.disarm():
            answer = handle(*hook.args())
            if answer is not None:
                await answer

    # --- TLS -------------------------------------------------------------------------------------------------------

    def _next_layer(self, data: layer.NextLayer) -> None:
        data.layer = HttpLayer(data.context, server.HTTPMode.transparent)

    def _tls_clienthello(self, data: Any) -> None:
        data.establish_server_tls_first = True  # what the server speaks decides what the client is offered

    def _tls_start_server(self, data: Any) -> None:
        offered = [each for each in self.client.alpn_offers if each in _ALPN]
        if self.client.timestamp_tls_setup is not None:
            # the client speaks one of them already, and a later connection must not speak another
            offered = [each for each in offered if each == (self.client.alpn or _ALPN[1])]
        data.conn.alpn_offers = offered
        data.ssl_conn = self.setting.server_side.connect(self.host, offered)

    def _tls_start_client(self, data: Any) -> None:
        data.ssl_conn = self.setting.client_side.accept(self.host, data.context.server.alpn)

    def _tls_failed_server(self, data: Any) -> None:
        reason = data.conn.error or "the handshake failed"
        sentence = f"No TLS with {self.host}: {_plain(reason)}."
        if "certificate required" in reason or "handshake failure" in reason:
            sentence += f" {self._no_client_certificate()}"
        self.requests.failed = NoConnection(502, "upstream-failed", sentence)
        self.error = f"upstream-failed: {sentence}"

    def _no_client_certificate(self) -> str:
        return (
            f"{self.host} asks for a client certificate, and inspection has none; allow it by a rule without methods, "
            "paths or other conditions, which is not inspected."
        )

    def _tls_failed_client(self, data: Any) -> None:
        reason = _plain(data.conn.error or "")
        if "does not trust" not in reason and "disconnected during the handshake" not in reason:
            self.error = f"the client's handshake failed: {reason}"
            return
        self.error = (
            f"the client does not take the inspection's certificate for {self.host}: it brings its own list of "
            "authorities, or pins the server's key"
        )
        self.door.note(
            self.name,
            {
                "type": "inspection_not_trusted",
                "host": self.host,
                "port": self.port,
                "message": f"{self.error}; have it trust the file that SSL_CERT_FILE names, or allow the host by a "
                "rule without methods, paths or other conditions, which is not inspected",
            },
        )


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".")

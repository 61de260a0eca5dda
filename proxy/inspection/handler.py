"""One inspected connection: mitmproxy's layers between client and server, and the door asked about every request."""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mitmproxy import http
from mitmproxy.connection import ConnectionState, Server
from mitmproxy.proxy import events, layer, mode_specs, server
from mitmproxy.proxy.layers import tls

from doorward.proxy.http1 import BadMessage
from doorward.proxy.inspection import answers
from doorward.proxy.inspection.credentials import (
    BodyWatch,
    Leak,
    Mirror,
    leak_in,
    replaced_header,
    replaced_target,
)
from doorward.proxy.inspection.door import Door, DoorGone, NoConnection, Refused
from doorward.proxy.inspection.streams import ANSWERED, LEAKED, HttpLayer
from doorward.proxy.inspection.strict import check_http2, names_disagree

if TYPE_CHECKING:
    from doorward.proxy.inspection.worker import Setting

_MODE = mode_specs.ProxyMode.parse("regular")
_ALPN = (b"h2", b"http/1.1")
_USED = "doorward.used"  # key of a flow's metadata: the credentials that were put in
_GRAPHQL_LIMIT = 1024 * 1024

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
        self._wanted = frozenset(message["headers"])
        self._graphql: bool = message["graphql"]
        self._at_home = frozenset(each for each in setting.credentials if each.name in message["credentials"])
        self._mine = tuple(each for each in setting.credentials if self.tls and each in self._at_home)
        self._others = tuple(each for each in setting.credentials if each not in self._mine)
        self._noted: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: NoConnection | None = None
        self._server_ended_first = False
        client: Any = self.client
        client.doorward_http2 = []
        client.doorward_malformed = self._malformed
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
            self._failed = failed
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
        handle = getattr(self, f"_{hook.name}", None)
        if handle is None:
            return
        with self.timeout_watchdog.disarm():
            try:
                answer = handle(*hook.args())
                if answer is not None:
                    await answer
            except DoorGone:
                self.stop()

    # --- TLS -------------------------------------------------------------------------------------------------------

    def _next_layer(self, data: layer.NextLayer) -> None:
        data.layer = HttpLayer(data.context, server.HTTPMode.transparent)

    def _tls_clienthello(self, data: Any) -> None:
        data.establish_server_tls_first = True  # what the server speaks decides what the client is offered

    def _tls_start_server(self, data: Any) -> None:
        offered = [each for each in self.client.alpn_offers if each in _ALPN]
        data.conn.alpn_offers = offered
        data.ssl_conn = self.setting.server_side.connect(self.host, offered)

    def _tls_start_client(self, data: Any) -> None:
        data.ssl_conn = self.setting.client_side.accept(self.host, data.context.server.alpn)

    def _tls_failed_server(self, data: Any) -> None:
        reason = data.conn.error or "the handshake failed"
        sentence = f"No TLS with {self.host}: {_plain(reason)}."
        if "certificate required" in reason or "handshake failure" in reason:
            sentence += f" {self._no_client_certificate()}"
        self._failed = NoConnection(502, "upstream-failed", sentence)
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

    # --- HTTP ------------------------------------------------------------------------------------------------------

    def _malformed(self, error: BadMessage) -> None:
        self.door.note(
            self.name,
            {
                "type": "malformed_request",
                "protocol": "https" if self.tls else "http",
                "status": error.status,
                "message": error.sentence,
            },
        )

    async def _requestheaders(self, flow: http.HTTPFlow) -> None:
        if flow.error is not None:
            return  # mitmproxy refuses it by itself
        try:
            await self._judge(flow)
        except BadMessage as error:
            self._malformed(error)
            _answer(flow, answers.failure(error.status, "bad-request", error.sentence))
        except Refused as refused:
            _answer(flow, answers.refusal(refused.error_class, refused.body))

    async def _judge(self, flow: http.HTTPFlow) -> None:
        request: Any = flow.request
        if request.is_http2:
            check_http2(request)
        said = names_disagree(request, self.host, self.port, tls=self.tls)
        if said is not None:
            message = f"the tunnel was opened to {self.host} port {self.port}, but a request in it names {said}"
            raise await self.door.refuse(self.name, "name_mismatch", message, request.method)
        await self._look_for_leaks(request)
        upgrade = _upgrade(request)
        await self.door.ask(
            self.name,
            {
                "method": request.method,
                "target": request.path,
                "headers": [
                    (name.lower(), value)
                    for name, value in request.headers.items(multi=True)
                    if name.lower() in self._wanted
                ],
                "operations": None,
                "upgrade": upgrade,
            },
        )
        if self._failed is not None and not flow.server_conn.connected:
            failed, self._failed = self._failed, None
            sentence, more = failed.sentence, {"host": self.host, "port": self.port}
            _answer(flow, answers.failure(failed.status, failed.error_class, sentence, **more))
            return
        if self._mine:
            self._put_in(flow)
        request.stream = self._body_watch(flow) if self._others else True

    def _responseheaders(self, flow: http.HTTPFlow) -> None:
        if ANSWERED in flow.metadata or flow.response is None:
            return
        used = flow.metadata.get(_USED)
        if not used:
            flow.response.stream = True
            return
        mirror = Mirror(used)
        flow.response.headers.fields = tuple(
            (name, mirror.header(value)) for name, value in flow.response.headers.fields
        )
        flow.response.stream = mirror

    # --- credentials -----------------------------------------------------------------------------------------------

    async def _look_for_leaks(self, request: Any) -> None:
        if not self._others:
            return
        found = leak_in((request.path, *(value for _, value in request.headers.items(multi=True))), self._others)
        if found is not None:
            raise await self.door.refuse(self.name, "credential_leak", self._leak_message(found), request.method)

    def _leak_message(self, leak: Leak) -> str:
        what = "its value" if leak.real else "what stands for it"
        if leak.credential in self._at_home:
            return f"the credential {leak.credential.name} ({what}) was about to be sent to {self.host} without TLS"
        told = f"the credential {leak.credential.name} ({what}) was about to be sent to {self.host}"
        return f"{told}, which it is not for"

    def _body_watch(self, flow: http.HTTPFlow) -> BodyWatch:
        def leaked(leak: Leak) -> None:
            flow.metadata[LEAKED] = True
            task = asyncio.get_running_loop().create_task(self._leaked(leak, flow.request.method))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return BodyWatch(self._others, leaked)

    async def _leaked(self, leak: Leak, method: str) -> None:
        """A body is under way already, so there is no answer but the end."""
        try:
            await self.door.refuse(self.name, "credential_leak", f"{self._leak_message(leak)}, in a body", method)
        except DoorGone:
            pass
        self.stop()

    def _put_in(self, flow: http.HTTPFlow) -> None:
        request: Any = flow.request
        used = []
        for each in self._mine:
            put = False
            fields = []
            for name, value in request.headers.fields:
                changed = replaced_header(each, name.decode("latin-1").lower(), value.decode("latin-1"))
                put = put or changed is not None
                fields.append((name, value if changed is None else changed.encode("latin-1")))
            request.headers.fields = tuple(fields)
            target = replaced_target(each, request.path)
            if target is not None:
                request.path, put = target, True
            if put:
                used.append(each)
                if each.name not in self._noted:
                    self._noted.add(each.name)
                    event = {"type": "credential_used", "credential": each.name, "place": each.place}
                    self.door.note(self.name, {**event, "host": self.host, "port": self.port})
        if used:
            flow.metadata[_USED] = used
            request.headers["accept-encoding"] = "identity"  # so that an echo can be seen


def _answer(flow: http.HTTPFlow, response: http.Response) -> None:
    if flow.request.is_http2:
        response.headers.pop("connection", None)
    flow.response = response
    flow.metadata[ANSWERED] = True


def _upgrade(request: Any) -> bool:
    """Whether it asks for another protocol; one that would be HTTP/2 in the clear is struck out (RFC 9113 §3.1)."""
    asked = request.headers.get("upgrade", "")
    if not asked or request.is_http2:
        return False
    if "h2c" in asked.lower():
        for name in ("upgrade", "http2-settings"):
            request.headers.pop(name, None)
        return False
    return True


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".")

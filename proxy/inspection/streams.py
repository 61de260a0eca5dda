"""mitmproxy's HTTP layers, where its own ways do not do for a door.

- HTTP/1 heads pass `strict.HeadReader` before mitmproxy sees them; trailers of HTTP/1, which it cannot carry, are
  dropped (RFC 9110 §6.5.1 lets a recipient do that).
- A request that is answered here is answered at its head, and its body read and dropped: mitmproxy would collect it.
- What follows a switch of protocols is passed on and not kept: mitmproxy would collect it too.
- An HTTP/2 sender is given room (RFC 9113 §5.2) as the other side takes what it sent, not before.

The names these classes override are mitmproxy 12's; a change there shows in integration/inspection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h2.connection
import h11
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers import tcp
from mitmproxy.proxy.layers.http import _http1, _http2

from doorward.proxy.http1 import BadMessage
from doorward.proxy.inspection.answers import failure, failure_body, failure_bytes
from doorward.proxy.inspection.operations import LIMIT
from doorward.proxy.inspection.strict import HeadReader

Commands = Iterator[Any]

HELD = 4 * 1024 * 1024
"""Bytes that an HTTP/2 sender may be ahead of the other side, a connection and a direction. HTTP/1 needs no such limit:
there nothing more is read until what was read is with the other side's kernel."""

ANSWERED = "doorward.answered"
"""Key of a flow's metadata: the response was made here."""


HELD_FOR_JUDGEMENT = "doorward.held"
"""The same: it is judged with its body, which is read up to `operations.LIMIT`."""

LEAKED = "doorward.leaked"
"""The same: its body held what must not be sent."""


class _WithoutTrailers:
    """A body reader that gives no trailers."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __call__(self, buffer: Any) -> Any:
        return _without_trailers(self._reader(buffer))

    def read_eof(self) -> Any:
        return _without_trailers(self._reader.read_eof())


def _without_trailers(event: Any) -> Any:
    return h11.EndOfMessage() if isinstance(event, h11.EndOfMessage) and event.headers else event


def _body_reader(size: int | None) -> Any:
    reader = _make_body_reader(size)
    return _WithoutTrailers(reader) if size is None else reader


class Http1Server(_http1.Http1Server):
    """Reads requests as strictly as the door does."""

    _head: HeadReader | None = None

    def send(self, event: Any) -> Commands:
        """See mitmproxy."""
        if isinstance(event, http_layers.ResponseProtocolError):
            event.message = self.context.client.doorward_failure or event.message
        yield from super().send(event)

    def read_headers(self, event: Any) -> Commands:
        """See mitmproxy."""
        if isinstance(event, events.DataReceived) and self.buf:
            self._head = self._head or HeadReader(self.context.client.doorward_limits)
            try:
                head = self._head.feed(bytes(self.buf))
            except BadMessage as error:
                malformed = getattr(self.context.client, "doorward_malformed", None)
                if malformed is not None:
                    malformed(error)
                yield commands.SendData(self.conn, failure_bytes(error.status, error.sentence))
                yield commands.CloseConnection(self.conn)
                self.state = self.done
                return
            if head is None:
                return
            self._head = None
        yield from super().read_headers(event)


class Http1Client(_http1.Http1Client):
    """Frames what came by HTTP/2, where the end of a body is the end of its stream: without that the rest of a body
    would be another request to the server. Holds no more of a response's head than the door does."""

    def send(self, event: Any) -> Commands:
        """See mitmproxy."""
        if isinstance(event, http_layers.RequestHeaders) and event.request.is_http2 and not event.end_stream:
            headers = event.request.headers
            if "content-length" not in headers:
                headers["transfer-encoding"] = "chunked"
        if isinstance(event, http_layers.RequestTrailers):
            return  # HTTP/1 trailers are dropped everywhere here
        yield from super().send(event)

    def read_headers(self, event: Any) -> Commands:
        """See mitmproxy."""
        most: int = self.context.client.doorward_limits.head
        if self.stream_id is not None and len(self.buf) > most and b"\r\n\r\n" not in bytes(self.buf)[:most]:
            code = http_layers.ErrorCode.GENERIC_SERVER_ERROR
            error = http_layers.ResponseProtocolError(self.stream_id, "The server's response head is too long.", code)
            yield commands.CloseConnection(self.conn)
            yield http_layers.ReceiveHttp(error)
            self.state = self.done
            return
        yield from super().read_headers(event)


class _RoomAsTaken:
    """For both HTTP/2 sides: room is given back by `give_room`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._owed: list[tuple[int, int]] = []
        connection = self.h2_conn  # type: ignore[attr-defined]
        connection.local_settings.initial_window_size = HELD  # mitmproxy's own is 2 GB
        limits = self.context.client.doorward_limits  # type: ignore[attr-defined]
        connection.local_settings.max_header_list_size = limits.head
        # counted with 32 bytes a header (RFC 9113 §6.5.2); what is a little more gets an answer, see `strict`
        connection.decoder.max_header_list_size = 2 * limits.head + 32 * limits.header_count
        connection.local_settings.acknowledge()
        connection.initiate_connection = lambda: _initiate(connection)
        self._acknowledge = connection.acknowledge_received_data
        connection.acknowledge_received_data = lambda size, stream: self._owed.append((size, stream))
        self.context.client.doorward_http2.append(self)  # type: ignore[attr-defined]

    @property
    def held(self) -> int:
        """Bytes that wait for the peer to take them."""
        buffers = self.h2_conn.stream_buffers  # type: ignore[attr-defined]
        return sum(len(each.data) for waiting in buffers.values() for each in waiting)

    def give_room(self) -> Commands:
        """Let the peer send as much again as it sent."""
        if self._owed:
            owed, self._owed = self._owed, []
            for size, stream in owed:
                self._acknowledge(size, stream)
            data = self.h2_conn.data_to_send()  # type: ignore[attr-defined]
            if data:
                yield commands.SendData(self.conn, data)  # type: ignore[attr-defined]


def _initiate(connection: Any) -> None:
    h2.connection.H2Connection.initiate_connection(connection)
    connection.increment_flow_control_window(HELD - connection.inbound_flow_control_window)


class Http2Server(_RoomAsTaken, _http2.Http2Server):
    """The client's side."""


class Http2Client(_RoomAsTaken, _http2.Http2Client):
    """The server's side."""


class HttpStream(http_layers.HttpStream):
    """One request and its response."""

    _told = False

    def state_wait_for_request_headers(self, event: Any) -> Commands:
        """See mitmproxy."""
        yield from super().state_wait_for_request_headers(event)
        if self.client_state == self.state_consume_request_body and ANSWERED in self.flow.metadata:
            yield from self._tell()

    def _tell(self) -> Commands:
        """Send the answer that was made here, before the request is whole."""
        self._told = True
        yield from self.send_response()
        if self.flow.request.is_http2:
            yield http_layers.SendHttp(http_layers.ResponseEndOfMessage(self.stream_id), self.context.client)

    def _beyond(self, event: Any) -> bool:
        return (
            not self._told
            and HELD_FOR_JUDGEMENT in self.flow.metadata
            and isinstance(event, http_layers.RequestData)
            and len(self.request_body_buf) + len(event.data) > LIMIT
        )

    def state_stream_request_body(self, event: Any) -> Commands:
        """See mitmproxy."""
        if LEAKED in self.flow.metadata and isinstance(event, http_layers.RequestEndOfMessage):
            # what passed of the body must not look whole to the server
            error = http_layers.RequestProtocolError(self.stream_id, "given up", http_layers.ErrorCode.CANCEL)
            yield http_layers.SendHttp(error, self.context.server)
            self.client_state = self.server_state = self.state_errored
            return
        yield from super().state_stream_request_body(event)

    def state_consume_request_body(self, event: Any) -> Commands:
        """See mitmproxy."""
        if self._beyond(event):
            self.flow.response = failure(413, "bad-request", "The body is too long to be judged.")
            self.flow.metadata[ANSWERED] = True
            self.request_body_buf.clear()
            yield from self._tell()
        elif not self._told:
            yield from super().state_consume_request_body(event)
        elif isinstance(event, http_layers.RequestEndOfMessage):
            self.client_state = self.state_done
            yield from self.flow_done()

    def flow_done(self) -> Commands:
        """See mitmproxy."""
        if self._told and self.flow.request.is_http2:
            self.flow.live = False
            yield http_layers.DropStream(self.stream_id)
        elif self.flow.response is not None and self.flow.response.status_code == 101:
            self.child_layer = tcp.TCPLayer(self.context, ignore=True)
            self._handle_event = self.passthrough
            yield from self.child_layer.handle_event(events.Start())
            yield http_layers.SendHttp(http_layers.ResponseEndOfMessage(self.stream_id), self.context.client)
        else:
            yield from super().flow_done()


class HttpLayer(http_layers.HttpLayer):
    """All requests of a connection."""

    def make_stream(self, stream_id: int) -> Commands:
        """See mitmproxy."""
        self.streams[stream_id] = HttpStream(self.context.fork(), stream_id)
        yield from self.event_to_child(self.streams[stream_id], events.Start())

    def _handle_event(self, event: Any) -> Commands:
        yield from super()._handle_event(event)
        sides = self.context.client.doorward_http2
        if sides and sum(side.held for side in sides) < HELD:
            for side in sides:
                yield from side.give_room()


_make_body_reader = _http1.make_body_reader


def install() -> None:
    """Have mitmproxy's layers make these."""
    _http1.make_body_reader = _body_reader
    _http1.make_error_response = failure_bytes
    _http2.format_error = failure_body
    http_layers.Http1Server = Http1Server
    http_layers.Http1Client = Http1Client
    http_layers.Http2Server = Http2Server
    http_layers.Http2Client = Http2Client

"""mitmproxy's TLS layers, with one thing mended: the end of a connection is told after a fatal alert too.

OpenSSL counts a fatal alert as a shutdown received (SSL_get_shutdown(3)), and mitmproxy takes that for a close that it
has passed on already, which it has only for a close_notify. Whoever waited for an answer then waited for ever: a server
that wants a client certificate says so in an alert behind the handshake (RFC 8446 §4.4.2.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mitmproxy.proxy import events
from mitmproxy.proxy.layers import tls

Commands = Iterator[Any]


class _ToldOnce:
    """The child layer hears of the end exactly once."""

    _told = False

    def event_to_child(self, event: Any) -> Commands:
        """See mitmproxy."""
        if isinstance(event, events.ConnectionClosed) and event.connection == self.conn:  # type: ignore[attr-defined]
            if self._told:
                return
            self._told = True
        yield from super().event_to_child(event)  # type: ignore[misc]

    def receive_close(self) -> Commands:
        """See mitmproxy."""
        yield from self.event_to_child(events.ConnectionClosed(self.conn))  # type: ignore[attr-defined]


class ServerTLSLayer(_ToldOnce, tls.ServerTLSLayer):
    """Towards the server."""


class ClientTLSLayer(_ToldOnce, tls.ClientTLSLayer):
    """Towards the client."""


def install() -> None:
    """Have mitmproxy's layers make these."""
    tls.ServerTLSLayer = ServerTLSLayer
    tls.ClientTLSLayer = ClientTLSLayer

"""Serves a connection that was redirected to the door: its client believes it is connected to where it wanted.

- The kernel says where that was (SO_ORIGINAL_DST). An address the door's name server handed out stands for the name
  that was asked; any other address is judged as an address.
- From there on it is a tunnel like any other: decided by name, looked up once, its first bytes held against the name.
- There is no protocol to say no in. Whoever has already begun to speak HTTP is told as HTTP, whoever began TLS gets an
  alert (access_denied); everyone else gets a reset, at once.
"""

from __future__ import annotations

import _socket
from ipaddress import IPv4Address, IPv6Address

from doorward.allowlists.host import address_host
from doorward.proxy import records
from doorward.proxy.admission import Unreachable
from doorward.proxy.http1_write import simple_response
from doorward.proxy.refusal import Refusal, http_refusal
from doorward.proxy.resolver import IP
from doorward.proxy.task import DeadlinePassed
from doorward.proxy.tunnelling import serve_tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from doorward.proxy.connection import Connection

PROTOCOL: Final = "transparent_tcp"

_SO_ORIGINAL_DST: Final = 80  # <linux/netfilter_ipv4.h>; the same number for IPv6
_SOL_IPV6: Final = 41
_PATIENCE: Final = 0.03
"""Seconds a refused client gets to show which protocol it speaks, so that it can be told in it."""

_HTTP_METHODS: Final = (b"GET ", b"POST ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ")
_TLS_HANDSHAKE: Final = 22  # RFC 8446 §5.1
_ACCESS_DENIED: Final = bytes((21, 3, 1, 0, 2, 2, 49))  # a fatal alert, RFC 8446 §6.2
_INTERNAL_ERROR: Final = bytes((21, 3, 1, 0, 2, 2, 80))


async def serve_captured(connection: Connection) -> None:
    """Serve the connection to its end."""
    server = connection.server
    original = original_destination(connection.channel.sock)
    if original is None:
        sentence = "A client connected to the port of redirected connections itself, which leads nowhere."
        server.sink.post(server.run, [records.malformed(PROTOCOL, 400, sentence)])
        connection.channel.abort()
        return
    ip, port = original
    connection.original = original
    name = None if server.stand_ins is None else server.stand_ins.name_of(ip)
    answers = CapturedAnswers(connection, name or str(ip), port)
    await serve_tunnel(connection, PROTOCOL, address_host(ip), port, answers, b"")


def original_destination(sock: _socket.socket) -> tuple[IP, int] | None:
    """Where a redirected connection was going; None for one that came straight to us. IPv4 clients' mapped form is
    IPv4 here already."""
    try:
        if sock.family == _socket.AF_INET:
            raw = sock.getsockopt(_socket.SOL_IP, _SO_ORIGINAL_DST, 16)  # struct sockaddr_in
            found: tuple[IP, int] = IPv4Address(raw[4:8]), int.from_bytes(raw[2:4], "big")
        else:
            raw = sock.getsockopt(_SOL_IPV6, _SO_ORIGINAL_DST, 28)  # struct sockaddr_in6
            found = IPv6Address(raw[8:24]), int.from_bytes(raw[2:4], "big")
        own = sock.getsockname()
    except OSError:
        return None
    return None if (str(found[0]), found[1]) == (own[0], own[1]) else found


class CapturedAnswers:
    """What a redirected client is told, in what seems to be its protocol."""

    established = b""  # it believes to be connected since long

    def __init__(self, connection: Connection, host: str, port: int) -> None:
        self._connection = connection
        self._host = host
        self._port = port

    async def say_refused(self, refusal: Refusal) -> None:
        """The door said no."""
        await self._say(http_refusal(refusal), _ACCESS_DENIED)

    async def say_failed(self, failure: Unreachable) -> None:
        """The way there failed."""
        answer = simple_response(
            failure.status, failure.error_class, failure.sentence, host=self._host, port=self._port, method="GET"
        )
        await self._say(answer, _INTERNAL_ERROR)

    async def _say(self, http: bytes, tls: bytes) -> None:
        channel = self._connection.channel
        try:
            first = await channel.recv(deadline=channel.loop.now + _PATIENCE)
        except (OSError, DeadlinePassed):
            first = b""
        if first.startswith(_HTTP_METHODS):
            await self._connection.say_last(http)
        elif first[:1] == bytes((_TLS_HANDSHAKE,)):
            await self._connection.say_last(tls)
        else:
            channel.abort()

"""What a sandbox's sockets are for, besides the proxy's own port: each kind gets what serves it.

What serves a kind is imported when the first client comes, since most runs have none of it; or once the run has lasted
longer than most, while nobody waits for it.
"""

from __future__ import annotations

import _socket

from doorward.proxy import records
from doorward.proxy.handover import Handover
from doorward.proxy.task import DeadlinePassed, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from doorward.proxy.connection import Connection
    from doorward.proxy.server import Server

_SHORT: Final = 0.03
"""Seconds from when a door is open; most commands have ended by then, and need nothing more."""

_LONGER: Final = 0.2
"""Seconds more after which what only some clients need is worth its time."""

# What one look-up or captured connection waits for, and finding out who asked.
_OF_FIRST_CLIENTS: Final = (
    *("doorward.proxy.stand_ins", "doorward.proxy.dns_message", "doorward.proxy.sibling_names"),
    *("doorward.proxy.name_judgement", "doorward.proxy.name_server"),
    *("doorward.proxy.socket_diagnosis", "doorward.proxy.socket_owner", "doorward.proxy.attribution"),
    "doorward.proxy.transparent",
)
# Command lines that may hold a credential: `re`, and patterns that are compiled.
_OF_SOME_CLIENTS: Final = ("doorward.proxy.withheld_arguments",)
_OF_DATAGRAMS: Final = ("doorward.proxy.quic_initial", "doorward.proxy.quic_judge", "doorward.proxy.udp_relay")


def add(server: Server, brought: Handover) -> None:
    """One more socket of the server's sandbox."""
    sock = brought.socket
    if sock is None:
        server.sink.post(server.run, [records.no_capture(brought.refused)])
    elif brought.kind == "diagnosis":
        server.diagnosis = sock, brought.root
    elif brought.kind == "unreachable":
        sock.setblocking(False)
        server.unreachable[sock.family] = sock
    elif brought.kind == "transparent":
        server.has_ipv6 = server.has_ipv6 or sock.family == _socket.AF_INET6
        server.add_listener(sock, _captured)
    elif brought.kind == "dns_tcp":
        server.add_listener(sock, _asked_over_tcp)
    elif brought.kind == "loopback":
        server.add_listener(sock, _granted)
    elif brought.kind in ("maker", "published"):
        from doorward.proxy import loopback

        loopback.attach(server, brought.kind, sock, brought.port)
    elif brought.kind == "dns_udp":
        server.add_service(_asked_over_udp(server, sock))
    elif brought.kind == "udp":
        server.add_service(_relayed(server, sock, brought.port))
    else:
        sock.close()


async def _captured(connection: Connection) -> None:
    from doorward.proxy.transparent import serve_captured

    await serve_captured(connection)


async def _granted(connection: Connection) -> None:
    from doorward.proxy.loopback import serve_granted

    await serve_granted(connection)


async def _asked_over_tcp(connection: Connection) -> None:
    from doorward.proxy.name_server import serve_stream

    await serve_stream(connection)


async def _asked_over_udp(server: Server, sock: _socket.socket) -> None:
    sock.setblocking(False)
    watch = Watch(server.loop, sock.fileno(), only_read=True)
    watch.can_read = False
    watch.first = True
    try:
        await _prepare(server, watch)
        await watch.readable()
        from doorward.proxy.name_server import serve_datagrams

        await serve_datagrams(server, sock, watch)
    finally:
        watch.forget(shared=True)
        sock.close()


async def _prepare(server: Server, watch: Watch) -> None:
    """Do ahead what the first clients of each kind would wait for, a few milliseconds at a time, until one comes."""
    relayed = () if server.policy.rules.udp is None else _OF_DATAGRAMS
    for after, parts in ((_SHORT, (*_OF_FIRST_CLIENTS, *relayed)), (_LONGER, _OF_SOME_CLIENTS)):
        try:
            await watch.readable(server.loop.now + after)
            return
        except DeadlinePassed:
            pass
        for part in parts:
            __import__(part)
            await server.loop.turn()
            if watch.can_read:
                return
        server.attribution  # noqa: B018 - made when it is asked for


async def _relayed(server: Server, sock: _socket.socket, port: int) -> None:
    sock.setblocking(False)
    watch = Watch(server.loop, sock.fileno(), only_read=True)
    watch.can_read = False
    try:
        await watch.readable()
        from doorward.proxy.udp_relay import serve_relayed

        await serve_relayed(server, sock, watch, port)
    finally:
        watch.forget(shared=True)
        sock.close()

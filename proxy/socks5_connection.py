"""Serves SOCKS5 on a client connection: the handshake, then a tunnel."""

from __future__ import annotations

from doorward.proxy import records
from doorward.proxy.admission import Unreachable
from doorward.proxy.refusal import Refusal
from doorward.proxy.socks5 import Reply, Socks5Event, Socks5Request, Socks5Server, reply
from doorward.proxy.task import DeadlinePassed
from doorward.proxy.tunnelling import serve_tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.connection import Connection

PROTOCOL = "socks5_tcp"


async def serve_socks5(connection: Connection, first: bytes) -> None:
    """Serve the connection, whose first bytes are `first`, to its end."""
    channel = connection.channel
    server = Socks5Server()
    events: list[Socks5Event] = server.feed(first)
    while not events:
        answer = server.to_send()
        if answer:
            await channel.send(answer, connection.deadline)
        try:
            data = await channel.recv(deadline=connection.deadline)
        except DeadlinePassed:
            _note(connection, "The SOCKS5 handshake was not whole in time.")
            return
        events = server.feed(data) if data else server.eof()
    connection.idle = False
    event = events[0]
    if not isinstance(event, Socks5Request):
        _note(connection, event.sentence)
        await connection.say_last(server.to_send())
        return
    answer = server.to_send()
    if answer:
        await channel.send(answer, connection.deadline)
    await serve_tunnel(connection, PROTOCOL, event.host, event.port, SocksAnswers(connection), server.leftover())


def _note(connection: Connection, sentence: str) -> None:
    connection.server.sink.post(connection.server.run, [records.malformed(PROTOCOL, 400, sentence)])


class SocksAnswers:
    """What a SOCKS5 request is answered (RFC 1928 §6): there is no room for a reason."""

    established = reply(Reply.SUCCEEDED)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def say_refused(self, refusal: Refusal) -> None:
        """The door said no."""
        await self._connection.say_last(reply(Reply.NOT_ALLOWED))

    async def say_failed(self, failure: Unreachable) -> None:
        """The way there failed."""
        unknown = failure.error_class.startswith("dns")
        await self._connection.say_last(reply(Reply.HOST_UNREACHABLE if unknown else Reply.CONNECTION_REFUSED))

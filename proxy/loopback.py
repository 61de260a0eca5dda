"""Loopback both ways: ports of the host's that appear inside, and servers inside that are published on the host's.

- A granted port of the host is a listener inside, at the same port; what comes in on it is dialled on the host's
  loopback, IPv4 or IPv6. It is a rule like any other: a deny shuts it, and each connection is a record.
- `all` follows the host: every port of its loopback that has a server is opened inside, unless a server inside has it.
- A published port is a listener on the host's loopback; what comes in on it is connected to the server inside, by a
  socket of the sandbox's namespace. `auto` follows what the run listens on.
- Nothing of such a connection is inspected: there is no name to hold it against.
"""

from __future__ import annotations

import _socket

from doorward.allowlists.host import Name
from doorward.proxy import records
from doorward.proxy.admission import Unreachable
from doorward.proxy.listening import Listening
from doorward.proxy.loop import Promise
from doorward.proxy.refusal import Refusal
from doorward.proxy.socket_maker import SocketMaker
from doorward.proxy.tunnel import Tunnel
from doorward.proxy.tunnelling import serve_tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.connection import Connection
    from doorward.proxy.server import Server

PROTOCOL = "loopback_tcp"

_LOOK = 0.1
"""Seconds between two looks at who listens; one costs about 0.05 ms."""

_OWN = frozenset({53, 3128, 3129})
"""Ports of the door's own inside, which are neither published nor taken for the host's."""


def attach(server: Server, kind: str, sock: _socket.socket, port: int) -> None:
    """The channel to the process that makes sockets inside ("maker"), or a listener on the host's loopback for `port`
    inside ("published"), in either order."""
    publisher = server.publisher
    if publisher is None:
        publisher = server.publisher = Publisher(server)
    if kind == "published":
        publisher.add(sock, port)
        return
    maker = SocketMaker(server.loop, sock)
    publisher.made(maker)
    follow = server.policy.follow
    if "publish" in follow and server.attribution is not None:
        server.add_service(publisher.follow(server.attribution.listening))
    if "loopback" in follow:
        server.add_service(follow_host(server, maker))


async def serve_granted(connection: Connection) -> None:
    """A client inside connected to a port of the host's loopback."""
    port = int(connection.channel.sock.getsockname()[1])
    await serve_tunnel(connection, PROTOCOL, Name("localhost"), port, _Answers(connection), b"", judged=False)


class _Answers:
    """A client that believes it is connected gets a reset for a no."""

    established = b""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def say_refused(self, refusal: Refusal) -> None:
        """The door said no."""
        self._connection.channel.abort()

    async def say_failed(self, failure: Unreachable) -> None:
        """No server of the host's is there."""
        self._connection.channel.abort()


async def follow_host(server: Server, maker: SocketMaker) -> None:
    """Open inside what the host's loopback has, for as long as the door is open."""
    host = Listening(_socket.socket(16, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, 4))  # AF_NETLINK, NETLINK_SOCK_DIAG
    opened: dict[int, list[_socket.socket]] = {}
    try:
        while True:
            there = {port for port in host.ports() if port not in _OWN}
            for port in there - opened.keys():
                opened[port] = []
                for family in (4, 6):
                    try:
                        listener = await maker.listener(family, port)
                    except OSError:  # a server inside has it, or there is no IPv6
                        continue
                    opened[port].append(listener)
                    server.add_listener(listener, serve_granted)
            for port in opened.keys() - there:
                for listener in opened.pop(port):
                    server.remove_listener(listener)
            await server.loop.sleep(_LOOK)
    finally:
        host.close()


class Publisher:
    """What of one run is published: inside port to its listeners on the host's loopback."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._maker: Promise[SocketMaker] = Promise(server.loop)
        self._known: SocketMaker | None = None
        self._inside: dict[int, int] = {}  # port on the host: port inside

    def made(self, maker: SocketMaker) -> None:
        """The channel to the process inside has come."""
        self._known = maker
        self._maker.set(maker)

    def close(self) -> None:
        """That process ends."""
        if self._known is not None:
            self._known.close()

    def add(self, listener: _socket.socket, port: int) -> None:
        """A listener on the host's loopback for a port inside."""
        self._inside[int(listener.getsockname()[1])] = port
        self._server.add_listener(listener, self._serve)

    async def follow(self, inside: Listening) -> None:
        """Publish what the run listens on, besides what is already, and say where, for as long as the door is open."""
        fixed = frozenset(self._inside.values())
        published: dict[int, list[_socket.socket]] = {}
        while True:
            there = {port for port in inside.ports() if port not in _OWN and port not in fixed}
            for port in sorted(there - published.keys()):
                listeners = published[port] = _on_host(port)
                for listener in listeners:
                    self.add(listener, port)
                if listeners:
                    self._server.sink.post(
                        self._server.run, [records.published(port, int(listeners[0].getsockname()[1]))]
                    )
            for port in published.keys() - there:
                for listener in published.pop(port):
                    self._server.remove_listener(listener)
            await self._server.loop.sleep(_LOOK)

    async def _serve(self, connection: Connection) -> None:
        port = self._inside[int(connection.channel.sock.getsockname()[1])]
        try:
            maker = await self._maker.wait()
            channel = await maker.connect(port)
        except OSError:  # no server inside, or not yet
            connection.channel.abort()
            return
        connection.idle = False
        tunnel = Tunnel(connection.loop, connection.channel, channel, self._server.way.pipes)
        try:
            await tunnel.run(self._server.policy.limits.tunnel_idle_time)
        finally:
            channel.close()
            item = records.published_connection(port, tunnel.moved_up, tunnel.moved_down)
            self._server.sink.post(self._server.run, [item])


def _on_host(port: int) -> list[_socket.socket]:
    """Listeners on the host's loopback at the same port, or where that is taken at a free one; IPv6 where it can be."""
    for wanted in (port, 0):
        try:
            first = _listener(_socket.AF_INET, "127.0.0.1", wanted)
        except OSError:
            continue
        try:
            return [first, _listener(_socket.AF_INET6, "::1", int(first.getsockname()[1]))]
        except OSError:
            return [first]
    return []


def _listener(family: int, address: str, port: int) -> _socket.socket:
    made = _socket.socket(family, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        made.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        if family == _socket.AF_INET6:
            made.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
        made.listen(128)
    except BaseException:
        made.close()
        raise
    return made

"""Asks the process inside a sandbox's network namespace for sockets of that namespace: one question at a time."""

from __future__ import annotations

import _socket
import os

from doorward.proxy.channel import Channel
from doorward.proxy.loop import Loop, Promise
from doorward.proxy.task import DeadlinePassed, Watch
from doorward.start_json import dumps, loads

_PATIENCE = 5.0  # seconds


class SocketMaker:
    """The door's end of the channel (`launcher/socket_maker.py` has the other, and what may be asked)."""

    def __init__(self, loop: Loop, channel: _socket.socket) -> None:
        channel.setblocking(False)
        self._loop = loop
        self._channel = channel
        self._watch = Watch(loop, channel.fileno())
        self._turn: Promise[None] | None = None  # settled when the question before has its answer

    async def listener(self, family: int, port: int) -> _socket.socket:
        """A listening socket on the sandbox's loopback. Raises OSError (EADDRINUSE: a server of its own is there)."""
        return await self._ask({"family": family, "listen": port})

    async def connect(self, port: int) -> Channel:
        """A connection to a server on the sandbox's loopback, IPv4 or IPv6. Raises OSError where none answers."""
        problem = OSError(111, os.strerror(111))
        for family, address in ((4, "127.0.0.1"), (6, "::1")):
            try:
                sock = await self._ask({"family": family})
            except OSError as error:
                problem = error
                continue
            sock.setblocking(False)
            channel = Channel(self._loop, sock)
            code = sock.connect_ex((address, port))  # loopback decides at once, a full queue aside
            if code == 115:  # EINPROGRESS
                channel.can_read = channel.can_write = False
                try:
                    await channel.writable(self._loop.now + _PATIENCE)
                    code = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
                except DeadlinePassed:
                    code = 110
                channel.can_read = True
            if not code:
                return channel
            channel.close()
            problem = OSError(code, os.strerror(code))
        raise problem

    def close(self) -> None:
        """The process inside ends."""
        self._watch.forget(shared=True)
        self._channel.close()

    async def _ask(self, wanted: dict[str, int]) -> _socket.socket:
        before, mine = self._turn, Promise[None](self._loop)
        self._turn = mine
        try:
            if before is not None:
                await before.wait()
            self._channel.send(dumps(wanted).encode())
            deadline = self._loop.now + _PATIENCE
            while True:
                try:
                    data, ancillary, _, _ = self._channel.recvmsg(4096, _socket.CMSG_SPACE(4))
                    break
                except BlockingIOError:
                    self._watch.can_read = False
                    await self._watch.readable(deadline)
        except DeadlinePassed:
            raise OSError(110, os.strerror(110)) from None
        finally:
            mine.set(None)
        number = loads(data)["errno"] if data else 32  # EPIPE: it has ended
        for _, _, rights in ancillary:
            return _socket.socket(fileno=memoryview(rights[:4]).cast("i")[0])
        raise OSError(number, os.strerror(number))

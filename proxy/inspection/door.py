"""The worker's side of the link: tunnels come in, questions go out, answers come back."""

from __future__ import annotations

import array
import asyncio
import json
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from doorward.proxy.inspection.link import LARGEST

_DESCRIPTORS = 4


class DoorGone(Exception):
    """The door has ended; nothing is answered any more."""


class Refused(Exception):
    """The door says no; `error_class` and `body` are what the client is told."""

    def __init__(self, error_class: str, body: Mapping[str, Any]) -> None:
        super().__init__(body["message"])
        self.error_class = error_class
        self.body = body


class NoConnection(Exception):
    """The way to the server failed."""

    def __init__(self, status: int, error_class: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.error_class = error_class
        self.sentence = sentence


class Door:
    """`on_tunnel(message, client)` is called for each tunnel, `on_close(name)` where it is to end."""

    def __init__(
        self,
        sock: socket.socket,
        on_tunnel: Callable[[Mapping[str, Any], socket.socket], None],
        on_close: Callable[[str], None],
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._on_tunnel = on_tunnel
        self._on_close = on_close
        self._waiting: dict[int, asyncio.Future[tuple[Mapping[str, Any], socket.socket | None]]] = {}
        self._number = 0
        self._out: deque[bytes] = deque()
        self.ended = self._loop.create_future()
        self._loop.add_reader(sock.fileno(), self._read)

    async def ask(self, tunnel: str, question: Mapping[str, Any]) -> frozenset[str]:
        """Put a request to the door; returns when it may go on, with the names of the credentials that go into it.
        Raises Refused, DoorGone."""
        answer, _ = await self._ask({"type": "ask", "tunnel": tunnel, **question})
        _allowed(answer)
        return frozenset(answer["credentials"])

    async def refuse(self, tunnel: str, reason: str, message: str, method: str) -> Refused:
        """Have a refusal recorded that only the worker can see; what the client is told then. Raises DoorGone."""
        answer, _ = await self._ask(
            {"type": "refuse", "tunnel": tunnel, "reason": reason, "message": message, "method": method}
        )
        try:
            _allowed(answer)
        except Refused as refused:
            return refused
        raise DoorGone

    async def dial(self, tunnel: str) -> tuple[socket.socket, str]:
        """A connection to the tunnel's server, and what that said already (base64). Raises NoConnection, DoorGone."""
        answer, sock = await self._ask({"type": "dial", "tunnel": tunnel})
        if "failed" in answer:
            raise NoConnection(*answer["failed"])
        if sock is None:
            raise DoorGone
        return sock, answer["early"]

    def note(self, tunnel: str, event: Mapping[str, Any]) -> None:
        """Tell something for the record."""
        self._send({"type": "note", "tunnel": tunnel, "event": event})

    def closed(self, tunnel: str, **how: Any) -> None:
        """Tell that a tunnel is over."""
        self._send({"type": "closed", "tunnel": tunnel, **how})

    async def _ask(self, message: dict[str, Any]) -> tuple[Mapping[str, Any], socket.socket | None]:
        if self.ended.done():
            raise DoorGone
        self._number += 1
        future: asyncio.Future[tuple[Mapping[str, Any], socket.socket | None]] = self._loop.create_future()
        self._waiting[self._number] = future
        self._send({**message, "id": self._number})
        return await future

    def _send(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message, separators=(",", ":")).encode("ascii")
        if len(data) > LARGEST:
            raise ValueError("a message for the door is too long")
        self._out.append(data)
        if len(self._out) == 1:
            self._write()

    def _write(self) -> None:
        try:
            while self._out:
                self._sock.send(self._out[0])
                self._out.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._sock.fileno(), self._write)
            return
        except OSError:
            self._out.clear()  # `_read` sees the end too
        if self._sock.fileno() >= 0:
            self._loop.remove_writer(self._sock.fileno())

    def _read(self) -> None:
        while True:
            try:
                data, ancillary, _, _ = self._sock.recvmsg(LARGEST, socket.CMSG_SPACE(_DESCRIPTORS * 4))
            except BlockingIOError:
                return
            except OSError:
                data, ancillary = b"", []
            if not data:
                self._end()
                return
            self._take(json.loads(data), _sockets(ancillary))

    def _take(self, message: Mapping[str, Any], sockets: list[socket.socket]) -> None:
        kind = message["type"]
        if kind == "tunnel":
            self._on_tunnel(message, sockets[0])
            return
        if kind == "close":
            self._on_close(message["tunnel"])
            return
        future = self._waiting.pop(message["id"], None)
        if future is None or future.done():
            for sock in sockets:
                sock.close()
        else:
            future.set_result((message, sockets[0] if sockets else None))

    def _end(self) -> None:
        self._loop.remove_reader(self._sock.fileno())
        self._loop.remove_writer(self._sock.fileno())
        self._sock.close()
        if not self.ended.done():
            self.ended.set_result(None)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(DoorGone())
        self._waiting.clear()


def _allowed(answer: Mapping[str, Any]) -> None:
    if answer.get("allow"):
        return
    if "body" in answer:
        raise Refused(answer["class"], answer["body"])
    raise DoorGone


def _sockets(ancillary: list[tuple[int, int, bytes]]) -> list[socket.socket]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return [socket.socket(fileno=descriptor) for descriptor in found]

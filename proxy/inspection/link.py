"""The door's link to its inspection worker: tunnels and connections go over as descriptors, questions come back.

One message a packet, JSON, over a unix socket that keeps packets apart (unix(7), SOCK_SEQPACKET); descriptors travel
with the message that names them (SCM_RIGHTS). From the door: `tunnel`, `answer`, `close`. From the worker: `ask` and
`refuse` (which are answered after their record is kept), `dial` (answered with a descriptor), `note`, `closed`.

When the link ends the worker is gone: whatever it had is closed, and what needs it is refused from then on.
"""

from __future__ import annotations

import _socket
import array
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from doorward.proxy.loop import Group, Loop, Promise
from doorward.proxy.task import Watch

LARGEST = 200 * 1024
"""Bytes of one packet: any head that the limits let through, escaped; less than what the kernel queues at least
(socket(7), wmem_default)."""


class Inspected(Protocol):
    """The door's side of one tunnel that is looked into."""

    async def answer(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], _socket.socket | None]:
        """The answer to a question, and the connection that goes with it."""

    def note(self, message: Mapping[str, Any]) -> None:
        """What is only told."""

    def closed(self, message: Mapping[str, Any] | None) -> None:
        """It is over; None where the worker ended under it."""


class InspectionLink:
    """`dead` once the worker has ended. `run` serves it; a link that nobody runs costs a descriptor."""

    def __init__(self, loop: Loop, sock: _socket.socket) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._sock = sock
        self._watch = Watch(loop, sock.fileno())
        self._tunnels: dict[str, Inspected] = {}
        self._out: deque[tuple[bytes, tuple[_socket.socket, ...]]] = deque()
        self._writing: Promise[None] = Promise(loop)
        self._retired = False
        self.dead = False

    def open(self, name: str, tunnel: Inspected, message: Mapping[str, Any], sockets: Sequence[_socket.socket]) -> None:
        """Hand a tunnel over; the sockets are the link's to close."""
        self._tunnels[name] = tunnel
        self._send({"type": "tunnel", "tunnel": name, **message}, tuple(sockets))

    def end(self, name: str) -> None:
        """Have the worker close a tunnel; it then says so."""
        self._send({"type": "close", "tunnel": name}, ())

    def forget(self, name: str) -> None:
        """Nobody waits for this tunnel any more."""
        self._tunnels.pop(name, None)
        self._leave()

    def retire(self) -> None:
        """There will be no more tunnels: the worker ends with the last one."""
        self._retired = True
        self._leave()

    def _leave(self) -> None:
        if self._retired and not self._tunnels and not self.dead:
            self._sock.shutdown(_socket.SHUT_RDWR)  # `run` sees the end, and so does the worker

    async def run(self, group: Group, on_error: Callable[[BaseException], None]) -> None:
        """Until the worker ends. `group` runs the answers."""
        writer = group.start(self._write())
        try:
            while True:
                try:
                    data = self._sock.recv(LARGEST)
                except BlockingIOError:
                    self._watch.can_read = False
                    await self._watch.readable()
                    continue
                except OSError:
                    return
                if not data:
                    return
                self._take(json.loads(data), group, on_error)
        finally:
            self.dead = True
            writer.cancel()
            for tunnel in tuple(self._tunnels.values()):
                tunnel.closed(None)
            self._tunnels.clear()
            self.close()

    def close(self) -> None:
        """Let go of it; the worker then ends."""
        self.dead = True
        self._watch.forget(shared=True)
        self._sock.close()
        for _, sockets in self._out:
            for sock in sockets:
                sock.close()
        self._out.clear()

    def _take(self, message: Mapping[str, Any], group: Group, on_error: Callable[[BaseException], None]) -> None:
        tunnel = self._tunnels.get(message["tunnel"])
        kind = message["type"]
        if tunnel is None:
            if "id" in message:
                self._send({"type": "answer", "id": message["id"], "error": "the tunnel is closed"}, ())
        elif kind == "closed":
            self.forget(message["tunnel"])
            tunnel.closed(message)
        elif kind == "note":
            tunnel.note(message)
        else:
            group.start(self._answer(tunnel.answer(message), message["id"], on_error))

    async def _answer(
        self,
        work: Awaitable[tuple[dict[str, Any], _socket.socket | None]],
        number: int,
        on_error: Callable[[BaseException], None],
    ) -> None:
        try:
            answer, sock = await work
        except Exception as error:  # a fault of ours: that request gets no answer, which is a refusal
            on_error(error)
            answer, sock = {"error": "a fault of the door"}, None
        self._send({"type": "answer", "id": number, **answer}, () if sock is None else (sock,))

    def _send(self, message: Mapping[str, Any], sockets: tuple[_socket.socket, ...]) -> None:
        if self.dead:
            for sock in sockets:
                sock.close()
            return
        self._out.append((json.dumps(message, separators=(",", ":")).encode("ascii"), sockets))
        self._writing.set(None)

    async def _write(self) -> None:
        while True:
            await self._writing.wait()
            while self._out:
                data, sockets = self._out[0]
                rights = array.array("i", [sock.fileno() for sock in sockets])
                control = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)] if sockets else []
                try:
                    self._sock.sendmsg([data], control)
                except BlockingIOError:
                    self._watch.can_write = False
                    await self._watch.writable()
                    continue
                except OSError:
                    return  # `run` sees the end too
                self._out.popleft()
                for sock in sockets:
                    sock.close()
            self._writing = Promise(self._loop)

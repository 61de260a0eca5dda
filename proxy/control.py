"""The channel between the proxy and its supervisor: JSON lines both ways over a stream socket.

Records go out in the order they were made. One with `wait` carries a number and is settled by the receipt of that
number; the answer it stands before is not written earlier. When the supervisor is gone no receipt will come, and the
process ends.
"""

from __future__ import annotations

import _socket
import json
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from doorward.proxy.channel import Channel
from doorward.proxy.loop import Loop, Promise

if TYPE_CHECKING:
    from doorward.proxy.records import Item

_encode = json.JSONEncoder(separators=(",", ":")).encode
_READ = 256 * 1024


class SupervisorGone(Exception):
    """The control channel ended."""


class Control:
    """The proxy's end of the channel; also the sink its records go to."""

    def __init__(self, loop: Loop, sock: _socket.socket) -> None:
        self._loop = loop
        sock.setblocking(False)
        self._channel = Channel(loop, sock)
        self._out: deque[bytes] = deque()
        self._writing: Promise[None] = Promise(loop)  # settled when there is something to write
        self._receipts: dict[int, Promise[None]] = {}
        self._number = 0
        self._gone = False

    def post(self, run: str, items: list[Item]) -> None:
        """See Sink."""
        self._record(run, items, wait=False)

    def submit(self, run: str, items: list[Item]) -> Promise[None]:
        """See Sink. The promise fails with SupervisorGone."""
        receipt: Promise[None] = Promise(self._loop)
        if self._gone:
            receipt.fail(SupervisorGone())
        else:
            self._receipts[self._record(run, items, wait=True)] = receipt
        return receipt

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message that is no record."""
        self._write(_encode(message).encode("ascii") + b"\n")

    def settle(self, number: int) -> None:
        """The receipt for a record came."""
        receipt = self._receipts.pop(number, None)
        if receipt is not None:
            receipt.set(None)

    async def messages(self, handle: Any) -> None:
        """Call `handle` with each message until the supervisor closes its end. Raises ValueError for what is none."""
        kept = b""
        try:
            while data := await self._channel.recv(_READ):
                *lines, kept = (kept + data).split(b"\n")
                for line in lines:
                    handle(json.loads(line))
        except OSError:
            pass  # reset: as gone as at its end

    async def write(self) -> None:
        """Write what could not be written at once, for as long as the loop runs."""
        try:
            while True:
                await self._writing.wait()
                while self._out:
                    data = b"".join(self._out)
                    self._out.clear()
                    await self._channel.send(data)
                self._writing = Promise(self._loop)
        except OSError:
            pass  # `messages` sees the end too

    async def flush(self) -> None:
        """Write what is queued; for the very end."""
        try:
            while self._out:
                await self._channel.send(self._out.popleft())
        except OSError:
            pass

    def close(self) -> None:
        """No record will be kept any more: fail those that wait, and close."""
        self._gone = True
        receipts, self._receipts = self._receipts, {}
        for receipt in receipts.values():
            receipt.fail(SupervisorGone())
        self._channel.forget(shared=True)
        self._channel.sock.close()

    def _record(self, run: str, items: list[Item], *, wait: bool) -> int:
        self._number += 1
        record = {"type": "record", "id": self._number, "run": run, "items": items, "wait": wait}
        self._write(_encode(record).encode("ascii") + b"\n")
        return self._number

    def _write(self, data: bytes) -> None:
        if self._gone:
            return
        if not self._out and not self._writing.settled:
            try:
                sent = self._channel.try_send(data)
            except OSError:
                return
            if sent == len(data):
                return
            data = data[sent:]
        self._out.append(data)
        self._writing.set(None)

"""The channel between the proxy and its supervisor: lines both ways over a stream socket. Most are JSON objects.

A record is fields with tabs between them, which JSON holds none of: its number, "wait" or nothing, the run, and for
each item type and payload, so that the text of a payload is found without reading what is around it. A receipt is the
number alone.

Records go out in the order they were made. One with `wait` is settled by its receipt; the answer it stands before is
not written earlier. When the supervisor is gone no receipt will come, and the process ends.
"""

from __future__ import annotations

import _socket

from doorward.proxy.channel import Channel
from doorward.proxy.clock import NEVER
from doorward.proxy.loop import Loop, Promise
from doorward.start_json import Encoded, dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from doorward.proxy.records import Item

_encode = dumps
_READ = 16 * 1024  # a buffer from 128 KiB on is mapped for each call, which costs each receipt 13 µs (mallopt(3))


class SupervisorGone(Exception):
    """The control channel ended."""


class Control:
    """The proxy's end of the channel; also the sink its records go to."""

    keeps = True

    def __init__(self, loop: Loop, sock: _socket.socket) -> None:
        self._loop = loop
        sock.setblocking(False)
        self._channel = Channel(loop, sock, only_read=True)  # each record read would wake the loop once more
        self._out: list[bytes] = []
        self._unsent = memoryview(b"")  # of what was taken off `_out`
        self._writing: Promise[None] = Promise(loop)  # settled when there is something to write
        self._receipts: dict[int, Promise[None]] = {}
        self._number = 0
        self._gone = False

    def post(self, run: str, items: list[Item]) -> None:
        """See Sink."""
        self._record(run, items, wait=False)
        self._writing.set(None)

    def submit(self, run: str, items: list[Item], *, hurry: bool = False) -> Promise[None]:
        """See Sink. The promise fails with SupervisorGone."""
        receipt: Promise[None] = Promise(self._loop)
        if self._gone:
            receipt.fail(SupervisorGone())
            return receipt
        self._record(run, items, wait=True)
        self._receipts[self._number] = receipt
        # to wake `write` costs a round of the loop, which the supervisor may have to wait for
        if not hurry or not self.hurry():
            self._writing.set(None)
        return receipt

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message that is no record, at once if that is possible."""
        if not self._gone:
            self._out.append((_encode(message) + "\n").encode("ascii"))
            self._writing.set(None)
        self.hurry()

    def hurry(self) -> bool:
        """See Sink. Whether all of it is sent."""
        try:
            return self._send_some()
        except OSError:
            return False  # `messages` sees the end too

    def settle(self, number: int) -> None:
        """The receipt for a record came."""
        receipt = self._receipts.pop(number, None)
        if receipt is not None:
            receipt.set(None)

    async def messages(self, handle: Any) -> None:
        """Take receipts, and call `handle` with each other message, until the supervisor closes its end. Raises
        ValueError for what is none."""
        kept = b""
        try:
            while data := await self._channel.recv(_READ):
                *lines, kept = (kept + data).split(b"\n")
                for line in lines:
                    if line.isdigit():
                        self.settle(int(line))
                    else:
                        handle(loads(line))
        except OSError:
            pass  # reset: as gone as at its end

    async def write(self) -> None:
        """Write what is queued, for as long as the loop runs; what one round of it brought goes in one piece."""
        try:
            while True:
                await self._writing.wait()
                await self.flush()
                self._writing = Promise(self._loop)
        except OSError:
            pass  # `messages` sees the end too

    async def flush(self, deadline: float = NEVER) -> None:
        """Write what is queued; cancelled, it leaves the rest queued. Raises OSError, DeadlinePassed."""
        while not self._send_some():
            await self._channel.writable(deadline)

    def _send_some(self) -> bool:
        """Send what the socket takes; whether that was all."""
        while self._out or self._unsent:
            if not self._unsent:
                self._unsent = memoryview(b"".join(self._out))
                self._out.clear()
            sent = self._channel.try_send(self._unsent)
            if not sent:
                return False
            self._unsent = self._unsent[sent:]
        return True

    def close(self) -> None:
        """No record will be kept any more: fail those that wait, and close."""
        self._gone = True
        receipts, self._receipts = self._receipts, {}
        for receipt in receipts.values():
            receipt.fail(SupervisorGone())
        self._channel.forget(shared=True)
        self._channel.sock.close()

    def _record(self, run: str, items: list[Item], *, wait: bool) -> None:
        self._number += 1
        if not self._gone:
            line = f"{self._number}\t{'wait' if wait else ''}\t{run}"
            for item in items:
                payload = item["payload"]
                line += f"\t{item['type']}\t{payload if payload.__class__ is Encoded else _encode(payload)}"
            self._out.append(f"{line}\n".encode("ascii"))

"""The channel between the proxy and its supervisor: lines both ways over a stream socket. Most are JSON objects.

A record is fields with tabs between them, which JSON holds none of: its number, "wait" or nothing, the run, and for
each item type and payload, so that the text of a payload is found without reading what is around it. A receipt is the
number alone.

Records go out in the order they were made. One with `wait` is settled by its receipt; the answer it stands before is
not written earlier. When the supervisor is gone no receipt will come, and the process ends.
"""

from __future__ import annotations

import _socket
import os
from select import POLLIN, poll

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

_LOOKS = 250  # for a receipt, without sleeping: about 0.15 ms
_MOST_REST = 256  # records for which that is left out, after it was in vain most times
_PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
        self._partial = b""  # of a message that has not come whole
        self._poll: poll | None = None
        self._in_vain = 0  # times not to look for receipts
        self._rest = 1  # how many they were last, less what was not in vain since
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
        if hurry and self.hurry():
            self._look_for_receipts()
        else:
            self._writing.set(None)
        return receipt

    def _look_for_receipts(self) -> None:
        """Look for them without sleeping while a record is kept, as long as nothing else is to be done: where a
        processor has nothing to do, to be woken takes half as long again. Other messages are left for `messages`."""
        if _PROCESSORS == 1:
            return
        if self._in_vain:
            self._in_vain -= 1
            return
        sock = self._channel.sock
        if self._poll is None:
            self._poll = poll()
            self._poll.register(sock, POLLIN)
            self._poll.register(self._loop.fileno(), POLLIN)
        look = self._poll.poll
        for _ in range(_LOOKS):
            if look(0):
                break
        else:  # the supervisor has no processor to itself now
            self._rest = min(4 * self._rest, _MOST_REST)
            self._in_vain = self._rest
            return
        self._rest = max(self._rest // 2, 1)
        try:
            lines = sock.recv(_READ, _socket.MSG_PEEK).split(b"\n")
            if self._partial or lines.pop() or not all(map(bytes.isdigit, lines)):
                return
            sock.recv(sum(map(len, lines)) + len(lines))
        except OSError:
            return
        for line in lines:
            self.settle(int(line))

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
        try:
            while data := await self._channel.recv(_READ):
                *lines, self._partial = (self._partial + data).split(b"\n")
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

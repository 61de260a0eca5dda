"""The channel between the proxy and its supervisor: lines both ways over a stream socket. Most are JSON objects.

A record is fields with tabs between them, which JSON holds none of: its number, "wait" or nothing, the run, and for
each item type and payload, so that the text of a payload is found without reading what is around it. Where many records
differ in a few strings only, "form", a number and the types and payloads with holes in them go ahead once, and in place
of its items such a record has "form", that number and the strings. A receipt is the number of the record alone.

Records go out in the order they were made. One with `wait` is settled by its receipt; the answer it stands before is
not written earlier. When the supervisor is gone no receipt will come, and the process ends.
"""

from __future__ import annotations

import _socket
from select import POLLIN, poll

from doorward.proxy.channel import Channel
from doorward.proxy.clock import NEVER
from doorward.proxy.loop import Loop, Promise
from doorward.start_json import Encoded, dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from doorward.proxy.record_form import Form
    from doorward.proxy.records import Item

_encode = dumps
_READ = 16 * 1024  # a buffer from 128 KiB on is mapped for each call, which costs each receipt 13 µs (mallopt(3))

_AT_ONCE = 1  # milliseconds in which a receipt comes that comes at once; a supervisor with nothing to do takes 0.1
_MOST_REST = 256  # records for which that is left out, after it was in vain most times


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
        self._unheard = b""  # what was read while a receipt was waited for, and is for `messages`
        self._polls: dict[int, poll] = {}  # each for receipts and one descriptor more
        self._in_vain = 0  # times not to wait for a receipt
        self._rest = 1  # how many they were last, less what was not in vain since
        self._gone = False
        self._forms: dict[int, Form] = {}  # that the supervisor knows, the one told longest ago first

    def post(self, run: str, items: list[Item]) -> None:
        """See Sink."""
        self._number += 1
        if not self._gone:
            self._out.append(f"{self._number}\t\t{run}{_fields(items)}\n".encode("ascii"))
        self._writing.set(None)

    def submit(self, run: str, items: list[Item], *, hurry: bool = False, unless: int = -1) -> Promise[None]:
        """See Sink. The promise fails with SupervisorGone."""
        receipt = self._submit("", run, _fields(items), hurry, unless)
        if receipt is None:
            receipt = Promise(self._loop)
            receipt.set(None)
        return receipt

    def submit_form(
        self, run: str, form: Form, strings: list[str], *, hurry: bool = False, unless: int = -1
    ) -> Promise[None] | None:
        """See Sink. The promise fails with SupervisorGone."""
        before = ""
        if form.slot < 0:
            if not form.used:  # to tell a form costs more than a record, and some are used once
                form.used = True
                return self._submit("", run, form.filled(strings), hurry, unless)
            before = self._tell_form(form)
        return self._submit(before, run, "\t".join(["\tform", str(form.slot), *strings]), hurry, unless)

    def _tell_form(self, form: Form) -> str:
        """The line that tells it. Where there is no room it takes the place of the one that was told longest ago."""
        form.slot = len(self._forms)
        if form.slot == form.ROOM:
            form.slot = next(iter(self._forms))
            self._forms.pop(form.slot).slot = -1
        self._forms[form.slot] = form
        return f"form\t{form.slot}{form.text}\n"

    def _submit(self, before: str, run: str, fields: str, hurry: bool, unless: int) -> Promise[None] | None:
        """Send `before` and a record. The receipt, or None where it has come."""
        self._number = number = self._number + 1
        if self._gone:
            receipt: Promise[None] = Promise(self._loop)
            receipt.fail(SupervisorGone())
            return receipt
        line = f"{before}{number}\twait\t{run}{fields}\n".encode("ascii")
        if not hurry:
            self._out.append(line)
            self._writing.set(None)
        elif self._send_now(line) and self._comes_at_once(number, unless):
            return None
        receipt = self._receipts[number] = Promise(self._loop)
        return receipt

    def _comes_at_once(self, number: int, unless: int) -> bool:
        """Wait a little for the receipt of the record that was just sent: with the loop's rounds and what else they do,
        the client would wait half as long again. Asleep, since most often it is this very processor that the supervisor
        is to run on: Linux wakes who reads a message where it was sent."""
        if self._in_vain:
            self._in_vain -= 1
            return False
        sock = self._channel.sock
        waiting = self._polls.get(unless)
        if waiting is None:
            waiting = self._polls[unless] = poll()
            waiting.register(sock, POLLIN)
            if unless >= 0:
                waiting.register(unless, POLLIN)
        events = waiting.poll(_AT_ONCE)
        if not events:  # the supervisor, or its processor, has something else to do now
            self._rest = min(4 * self._rest, _MOST_REST)
            self._in_vain = self._rest
            return False
        if events[0][0] == unless:
            return False
        self._rest = max(self._rest // 2, 1)
        try:
            data = sock.recv(_READ)
        except OSError:
            return False  # `messages` sees the end too
        if data == b"%d\n" % number and not self._partial and not self._unheard:
            return True
        self._unheard += data
        self._channel.can_read = True
        if self._channel.reader is not None:
            self._channel.reader._wake()
        return False

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message that is no record, at once if that is possible."""
        if not self._gone:
            self._send_now((_encode(message) + "\n").encode("ascii"))

    def hurry(self) -> None:
        """See Sink."""
        try:
            if not self._send_some():
                self._writing.set(None)
        except OSError:
            pass  # `messages` sees the end too

    def _send_now(self, line: bytes) -> bool:
        """Send a line, and what is queued before it; whether that was all taken."""
        if not self._out and not self._unsent:  # most often
            try:
                sent = self._channel.try_send(line)
            except OSError:
                return False  # `messages` sees the end too
            if sent == len(line):
                return True
            self._unsent = memoryview(line)[sent:]
        else:
            self._out.append(line)
        self.hurry()
        return not self._out and not self._unsent

    def settle(self, number: int) -> None:
        """The receipt for a record came."""
        receipt = self._receipts.pop(number, None)
        if receipt is not None:
            receipt.set(None)

    async def messages(self, handle: Any) -> None:
        """Take receipts, and call `handle` with each other message, until the supervisor closes its end. Raises
        ValueError for what is none."""
        try:
            while True:
                data = self._unheard or self._channel.try_recv(_READ)
                if data is None:
                    await self._channel.readable()
                    continue
                if not data:
                    return
                self._unheard = b""
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


def _fields(items: list[Item]) -> str:
    """As a record has them."""
    text = ""
    for item in items:
        payload = item["payload"]
        text += f"\t{item['type']}\t{payload if payload.__class__ is Encoded else _encode(payload)}"
    return text

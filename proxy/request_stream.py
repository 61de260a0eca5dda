"""The requests of one client connection, as events, with the deadlines a head is held to."""

from __future__ import annotations

from doorward.plain_collections import deque
from doorward.proxy.channel import READ_SIZE, Channel
from doorward.proxy.http1 import END, BadMessage, RequestEvent, RequestHead, RequestReader
from doorward.proxy.known_requests import LONGEST, ReadRequest
from doorward.proxy.task import DeadlinePassed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.server import Server


class RequestStream:
    """Reads from the channel only when the events so far are used up, so a client that sends ahead has to wait.

    `known`: what the latest head means, if it came before; its request has no body, and there are no events. `alone`:
    the bytes of the latest head, if it came alone and may be remembered under the policy in force."""

    __slots__ = ("_first", "_head_deadline", "_limits", "_server", "alone", "channel", "events", "known", "reader")

    def __init__(self, server: Server, channel: Channel, first: bytes, head_deadline: float) -> None:
        self.channel = channel
        self.events: deque[RequestEvent] = deque()
        self.known: ReadRequest | None = None
        self.alone: bytes | None = None
        self._first = first
        self._server = server
        self._limits = server.policy.limits
        self._head_deadline = head_deadline
        self.reader = RequestReader(self._limits)

    async def next_head(self) -> RequestHead | None:
        """The next request; None when the client ended, or stayed idle too long, between two. Raises BadMessage (408
        when a head is not whole in time, however steadily it drips), OSError."""
        reader = self.reader
        data, self._first = self._first, b""
        now = self.channel.loop.now
        if not data:
            self._head_deadline = now + self._limits.head_time
        idle_deadline = now + self._limits.idle_time
        self.known = self.alone = None
        while not self.events:
            if reader.failed is not None:
                raise reader.failed
            idle = reader.idle
            if not data:
                try:
                    data = await self.channel.recv(READ_SIZE, idle_deadline if idle else self._head_deadline)
                except DeadlinePassed:
                    if idle:
                        return None
                    raise BadMessage(408, "The head of the request was not whole in time.") from None
                if not data:
                    reader.eof()
                    return None
                if idle:
                    self._head_deadline = self.channel.loop.now + self._limits.head_time
            policy = self._server.policy
            if reader.untouched and policy.limits is self._limits:
                known = self.known = policy.known_requests.find(data)
                if known is not None:
                    return known.head
                self.events.extend(reader.feed(data))
                if len(data) <= LONGEST and self._is_alone():
                    self.alone = data
            else:
                self.events.extend(reader.feed(data))
            data = b""
        head = self.events.popleft()
        assert isinstance(head, RequestHead)
        return head

    def _is_alone(self) -> bool:
        """Whether what was read is a head that leaves the reader as it was, or that of a CONNECT."""
        events = self.events
        if len(events) == 2 and self.reader.untouched:
            return events[1] is END
        return len(events) == 1 and isinstance(head := events[0], RequestHead) and head.method == "CONNECT"

    async def more(self, deadline: float) -> deque[RequestEvent]:
        """The events of the body that are there, waiting for at least one; the caller takes them off. Raises BadMessage
        (a malformed body, one that the client's end cut short), DeadlinePassed, OSError."""
        while not self.events:
            if self.reader.failed is not None:
                raise self.reader.failed
            data = await self.channel.recv(READ_SIZE, deadline)
            self.events.extend(self.reader.feed(data) if data else self.reader.eof())
        return self.events

    def renew(self) -> None:
        """The body was moved past the reader, to its end: read on at the next request."""
        self.reader = RequestReader(self._limits)

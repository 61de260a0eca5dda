"""The requests of one client connection, as events, with the deadlines a head is held to."""

from __future__ import annotations

from doorward.plain_collections import deque
from doorward.proxy.channel import READ_SIZE, Channel
from doorward.proxy.http1 import BadMessage, RequestEvent, RequestHead, RequestReader
from doorward.proxy.limits import Limits
from doorward.proxy.task import DeadlinePassed


class RequestStream:
    """Reads from the channel only when the events so far are used up, so a client that sends ahead has to wait."""

    __slots__ = ("_head_deadline", "_limits", "channel", "events", "reader")

    def __init__(self, channel: Channel, limits: Limits, first: bytes, head_deadline: float) -> None:
        self.channel = channel
        self.reader = RequestReader(limits)
        self.events: deque[RequestEvent] = deque()
        self._limits = limits
        self._head_deadline = head_deadline
        self._first_feed(first)

    def _first_feed(self, first: bytes) -> None:
        try:
            self.events.extend(self.reader.feed(first))
        except BadMessage:
            pass  # kept in `failed`, raised in its turn

    async def next_head(self, *, first: bool) -> RequestHead | None:
        """The next request; None when the client ended, or stayed idle too long, between two. Raises BadMessage (408
        when a head is not whole in time, however steadily it drips), OSError."""
        reader = self.reader
        now = self.channel.loop.now
        if not first:
            self._head_deadline = now + self._limits.head_time
        idle_deadline = now + self._limits.idle_time
        while not self.events:
            if reader.failed is not None:
                raise reader.failed
            idle = reader.idle
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
            self.events.extend(reader.feed(data))
        head = self.events.popleft()
        assert isinstance(head, RequestHead)
        return head

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

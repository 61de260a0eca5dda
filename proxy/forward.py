"""One plain HTTP request and its response, between the client and a server.

- An idle connection to the host is used where the rules would lead there now; else one is made.
- A request that may be repeated (RFC 9110 §9.2.2), is whole and fails on an idle connection before a byte of its answer
  came is sent once more on a new one.
- The body goes up while the response may already come down: a server may answer early.
- Long bodies of known length, and such as end with the connection, are spliced past the parsers.
- What is held at any time is one read each way.
"""

from __future__ import annotations

from doorward.plain_collections import deque
from doorward.proxy.admission import Unreachable, locate
from doorward.proxy.answer import Relay
from doorward.proxy.channel import Channel
from doorward.proxy.connecting import connect
from doorward.proxy.http1 import BadMessage
from doorward.proxy.http1_message import (
    Body,
    End,
    Headers,
    Raw,
    RequestEvent,
    ResponseHead,
    Trailers,
)
from doorward.proxy.http1_response import ResponseReader
from doorward.proxy.http1_write import (
    CONTINUE,
    chunk,
    last_chunk,
    request_head_for_parent,
    response_head_for_client,
)
from doorward.proxy.known_requests import JudgedRequest
from doorward.proxy.loop import Group
from doorward.proxy.pool import Upstream
from doorward.proxy.records import Account
from doorward.proxy.request_stream import RequestStream
from doorward.proxy.splice import TURN, Flow
from doorward.proxy.task import DeadlinePassed
from doorward.proxy.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.connection import Connection

CONTINUE_AFTER = 1.0
"""Seconds the server gets to answer `Expect: 100-continue` itself (RFC 9110 §10.1.1: not indefinitely)."""

SPLICE_FROM = 64 * 1024
"""A body with more bytes than this to come is spliced."""

_IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "PROPFIND", "REPORT", "SEARCH"))


class _ServerBroke(Exception):
    """The server's connection failed; the text says how."""


class _Stale(Exception):
    """The idle connection was no longer one; nothing of an answer came."""


class Exchange:
    """`run` it once. `answering`: bytes of the final answer may have gone to the client."""

    __slots__ = ("_account", "_body_up", "_continued", "_uploaded", "_waits_since", "answering", "client", "connection",
    "decision", "head", "limits", "loop", "request", "server", "stream")  # fmt: skip

    def __init__(self, connection: Connection, stream: RequestStream, request: JudgedRequest) -> None:
        self.connection = connection
        self.server = connection.server
        self.loop = connection.loop
        self.client = connection.channel
        self.stream = stream
        self.request = request
        self.head = request.head
        self.decision = request.decision
        self.limits = connection.server.policy.limits
        self.answering = False
        self._account: Account | None = None
        self._uploaded = stream.known is not None  # the whole request went up, or is about to in one piece
        self._body_up = 0  # bytes of its body so far
        self._continued = False  # the client was told to send its body
        self._waits_since = self.loop.now  # when the server's time to answer began

    async def run(self) -> bool:
        """Whether the client's connection goes on. Raises NotAdmitted and Unreachable; BadMessage for the request's
        body; OSError and DeadlinePassed when the client broke off."""
        head = self.head
        body = b"" if self._uploaded else self._encode(self.stream.events)
        repeatable = self._uploaded and head.method in _IDEMPOTENT and head.upgrade is None
        upstream = self.server.pool.take(self.server.policy, self.decision, repeatable=repeatable)
        if upstream is not None:
            try:
                return await self._attempt(upstream, body, retry=repeatable)
            except _Stale:
                pass
        return await self._attempt(await self._connect(), body, retry=False)

    async def _connect(self) -> Upstream:
        server = self.server
        policy = server.policy
        located = await locate(server.way, policy, self.decision)
        self._open_account()
        connected = await connect(server.way, policy, located, absolute=True)
        if connected.early:
            connected.channel.close()
            raise Unreachable(502, "upstream-failed", "The upstream server spoke before it was asked.")
        return Upstream((self.decision.host, self.decision.port), connected, policy.rules)

    def _open_account(self) -> Account:
        if self._account is None:
            self._account = self.connection.account(self.decision, "http", self.head.method)
        return self._account

    async def _attempt(self, upstream: Upstream, body: bytes, *, retry: bool) -> bool:
        """Send the request and relay the answer. Raises _Stale only with `retry`."""
        connected = upstream.connected
        channel = connected.channel
        account = self._open_account()
        account.address = connected.address
        account.upstream = None if connected.parent is None else connected.parent.text
        if connected.absolute and connected.parent is not None:
            authorization = connected.parent.authorization
            head = request_head_for_parent(self.head, self.request.target, self.server.via, authorization)
        else:
            head = self.request.up
        try:
            try:
                await self._send_up(channel, head + body if body else head)
                if self._uploaded:
                    first = await self._recv_down(channel, answered=False)
                    if retry and not first:
                        raise _Stale
                    relay = await self._respond(channel, first)
                else:
                    async with Group(self.loop) as group:
                        upload = group.start(self._upload(channel))
                        relay = await self._respond(channel, None)
                        upload.cancel()
            except _ServerBroke as error:
                if retry and not self.answering:
                    raise _Stale from None
                raise Unreachable(502, "upstream-failed", str(error)) from None
        except BaseException:
            channel.close()
            raise
        return await self._done(upstream, relay)

    # --- the request ---------------------------------------------------------------------------------------------

    def _encode(self, events: deque[RequestEvent]) -> bytes:
        """The body events that are there, taken off, as they go to the server."""
        parts = []
        chunked = self.head.framing == "chunked"
        trailers: Headers = ()
        while events:
            event = events.popleft()
            if isinstance(event, Body):
                self._body_up += len(event.data)
                parts.append(chunk(event.data) if chunked else event.data)
            elif isinstance(event, Trailers):
                trailers = event.headers
            elif isinstance(event, End):
                if chunked:
                    parts.append(last_chunk(trailers))
                self._uploaded = True
                self._waits_since = self.loop.now
                break
        return b"".join(parts)

    async def _upload(self, channel: Channel) -> None:
        """Send up what is still to come of the body. A server that broke off may have answered: `_respond` sees."""
        head, stream, loop, idle = self.head, self.stream, self.loop, self.limits.idle_time
        try:
            if head.expect_continue and not self._body_up and not stream.events:
                await self._continue()
            since_turn = 0
            while not self._uploaded:
                left = (head.length or 0) - self._body_up
                if left > SPLICE_FROM and not stream.events:
                    if not await self._splice_up(channel, left):
                        return
                    continue
                data = self._encode(await stream.more(loop.now + idle))
                await self._send_up(channel, data)
                since_turn += len(data)
                if since_turn > TURN:
                    since_turn = 0
                    await loop.turn()
        except DeadlinePassed:
            raise BadMessage(408, "The body of the request stalled.") from None
        except _ServerBroke:
            return

    async def _continue(self) -> None:
        """The client waits for 100: give the server a moment to say it, then say it ourselves."""
        try:
            await self.stream.more(self.loop.now + CONTINUE_AFTER)
        except DeadlinePassed:
            if not self._continued:
                self._continued = True
                await self._say(CONTINUE, final=False)

    async def _splice_up(self, channel: Channel, left: int) -> bool:
        """Move the rest of the body past the parser; False when the server broke off."""
        flow = Flow(self.client, channel, self.server.way.pipes, left)
        try:
            await flow.run(self.loop, self.limits.idle_time)
        finally:
            self._body_up += flow.moved
            self._open_account().up += flow.moved
        if flow.broken is channel:
            return False
        if flow.broken is not None:
            raise ConnectionResetError
        if flow.short:
            raise BadMessage(400, "The connection ended inside a request.")
        self._uploaded = True
        self._waits_since = self.loop.now
        self.stream.renew()
        return True

    async def _send_up(self, channel: Channel, data: bytes) -> None:
        try:
            await channel.send(data, self.loop.now + self.limits.idle_time)
        except OSError as error:
            raise _ServerBroke(_broken(error)) from None
        except DeadlinePassed:
            raise Unreachable(504, "upstream-timeout", "The upstream server stopped taking the request.") from None
        (self._account or self._open_account()).up += len(data)

    # --- the response --------------------------------------------------------------------------------------------

    async def _respond(self, channel: Channel, first: bytes | None) -> Relay:
        """Relay the answer, `first` being its first bytes, to its end."""
        account = self._account or self._open_account()
        reader = ResponseReader(self.head.method, upgrading=self.head.upgrade is not None, limits=self.limits)
        if first:
            try:
                whole = reader.whole(first)
            except BadMessage as error:
                account.down += len(first)
                raise Unreachable(502, "upstream-failed", error.sentence) from None
            if whole is not None:
                account.down += len(first)
                return await self._pass_on(*whole, reusable=reader.reusable)
        relay: Relay | None = None
        data = first
        since_turn = 0
        while True:
            if data is None:
                data = await self._recv_down(channel, answered=relay is not None)
            account.down += len(data)
            since_turn += len(data)
            if since_turn > TURN:
                since_turn = 0
                await self.loop.turn()
            try:
                events = reader.feed(data) if data else reader.eof()
            except BadMessage as error:
                raise Unreachable(502, "upstream-failed", error.sentence) from None
            data = None
            out = []
            for event in events:
                if isinstance(event, ResponseHead):
                    if event.status < 200 and not event.upgraded:
                        out.append(self._interim(event))
                    else:
                        relay = Relay(event, self.head, keep=self._uploaded and not self.server.draining)
                        out.append(relay.head(self.server.via))
                elif relay is not None:
                    out.append(relay.encode(event))
            answer = b"".join(out)
            if answer:
                await self._say(answer, final=relay is not None)
            if relay is None:
                continue
            if relay.answer.upgraded:
                await self._tunnel(channel)
                return relay
            relay.reusable = reader.reusable
            if not relay.ended and relay.left > SPLICE_FROM:
                await self._splice_down(channel, relay)
                relay.reusable = relay.answer.keep_alive and relay.answer.framing == "length"
            if relay.ended:
                return relay

    async def _pass_on(self, head: ResponseHead, body: bytes, *, reusable: bool) -> Relay:
        """A whole answer in one piece."""
        relay = Relay(head, self.head, keep=self._uploaded and not self.server.draining)
        relay.ended = True
        relay.reusable = reusable
        await self._say(relay.head(self.server.via) + body, final=True)
        return relay

    async def _done(self, upstream: Upstream, relay: Relay) -> bool:
        """The answer is with the client: whether its connection goes on."""
        if relay.reusable and self._uploaded:
            self.server.pool.give(upstream)
        else:
            upstream.connected.channel.close()
        if relay.answer.upgraded:
            return False
        if self.head.upgrade is not None:
            self.stream.events.extend(self.stream.reader.upgrade_answered(False))
        if not relay.keep:
            await self.connection.say_last(b"", "server" if self.head.keep_alive and self._uploaded else "client")
        return relay.keep

    def _interim(self, head: ResponseHead) -> bytes:
        self._waits_since = self.loop.now
        if self.head.version < (1, 1):
            return b""
        if head.status == 100:
            if self._continued or not self.head.expect_continue:
                return b""
            self._continued = True
        return response_head_for_client(head, True)

    async def _splice_down(self, channel: Channel, relay: Relay) -> None:
        """Move the rest of the body past the parser."""
        framed = relay.answer.framing == "length"
        flow = Flow(channel, self.client, self.server.way.pipes, int(relay.left) if framed else None)
        try:
            await flow.run(self.loop, self.limits.idle_time)
        except DeadlinePassed:
            raise Unreachable(504, "upstream-timeout", "The answer stalled.") from None
        finally:
            self._open_account().down += flow.moved
        if flow.broken is self.client:
            raise ConnectionResetError
        if flow.broken is not None or flow.short:
            raise Unreachable(502, "upstream-failed", "The upstream server broke off inside its response.")
        relay.ended = True

    async def _tunnel(self, channel: Channel) -> None:
        """The server switched protocols: from here on bytes are only relayed."""
        account = self._open_account()
        first = b"".join(event.data for event in self.stream.reader.upgrade_answered(True) if isinstance(event, Raw))
        tunnel = Tunnel(self.loop, self.client, channel, self.server.way.pipes)
        try:
            await tunnel.run(self.limits.tunnel_idle_time, first)
        finally:
            channel.close()
            account.up += tunnel.moved_up
            account.down += tunnel.moved_down
            account.closed_by = tunnel.closed_by
            account.error = tunnel.error

    async def _recv_down(self, channel: Channel, *, answered: bool) -> bytes:
        loop, limits = self.loop, self.limits
        while True:
            if answered:
                deadline = loop.now + limits.idle_time
            elif self._uploaded:
                deadline = self._waits_since + limits.reply_time
            else:
                deadline = loop.now + limits.reply_time  # the server's time has not begun yet
            try:
                data = channel.try_recv() if channel.can_read else None
                if data is not None:
                    return data
                await channel.readable(deadline)
            except OSError as error:
                raise _ServerBroke(_broken(error)) from None
            except DeadlinePassed:
                if answered:
                    raise Unreachable(504, "upstream-timeout", "The answer stalled.") from None
                if self._uploaded and loop.now >= self._waits_since + limits.reply_time:
                    sentence = f"The upstream server did not answer in {limits.reply_time:g} s."
                    raise Unreachable(504, "upstream-timeout", sentence) from None

    async def _say(self, data: bytes, *, final: bool) -> None:
        """Send to the client, once the record of the decision is kept. What is not of the final answer is not sent
        once that is on its way: the upload, too, may have something to say."""
        if final:
            self.answering = True
        account = self._account or self._open_account()
        if not account.kept:
            if account.receipt is not None:
                await account.receipt.wait()
            account.kept = True
        if final or not self.answering:
            await self.client.send(data, self.loop.now + self.limits.idle_time)


def _broken(error: OSError) -> str:
    return f"The upstream server broke the connection: {(error.strerror or 'closed').lower()}."

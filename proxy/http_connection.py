"""Serves HTTP on a client connection: one request after the other, each judged anew, answered in order.

After a refusal, a malformed request or an answer of the proxy's own the connection closes, and what the client sent
beyond is never parsed.
"""

from __future__ import annotations

from doorward.allowlists.decision import Effect, Reason, Source
from doorward.allowlists.host import authority_text, host_text
from doorward.proxy import records
from doorward.proxy.admission import NotAdmitted, Unreachable
from doorward.proxy.http1 import BadMessage, Raw, RequestHead
from doorward.proxy.http1_write import (
    connect_established,
    passed_through,
    request_head_for_origin,
    simple_response,
)
from doorward.proxy.known_requests import JudgedRequest, ReadRequest
from doorward.proxy.refusal import Refusal, http_refusal
from doorward.proxy.request_stream import RequestStream
from doorward.proxy.target import RefusedTarget, Target, parse_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from doorward.proxy.connection import Connection

_serve_tunnel: Callable[..., Coroutine[Any, None, None]] | None = None

_CLASSES = {408: "request-timeout", 504: "upstream-timeout", 502: "upstream-failed"}


def serve_http(connection: Connection, first: bytes) -> Coroutine[Any, None, None]:
    """Serve the connection, whose first bytes are `first`, to its end."""
    known = connection.server.policy.known_requests.find(first)
    if known is not None and known.head.method == "CONNECT":  # clients open one tunnel after the other to a place
        connection.idle = False
        return _tunnel(connection, known, b"")
    return _serve_requests(connection, first)


async def _serve_requests(connection: Connection, first: bytes) -> None:
    stream = RequestStream(connection.server, connection.channel, first, connection.deadline)
    method = ""
    try:
        head = await stream.next_head()
        while head is not None:
            connection.idle = False
            method = head.method
            if not await _serve_request(connection, stream, head):
                return
            if connection.server.draining:
                await connection.say_last(b"")
                return
            connection.idle = True
            method = ""
            head = await stream.next_head()
    except BadMessage as error:
        connection.server.sink.post(connection.server.run, [records.malformed("http", error.status, error.sentence)])
        error_class = _CLASSES.get(error.status, "bad-request")
        await connection.say_last(simple_response(error.status, error_class, error.sentence, method=method))


async def _serve_request(connection: Connection, stream: RequestStream, head: RequestHead) -> bool:
    """Answer one request; whether the connection goes on. Raises BadMessage where the request is to be answered so."""
    protocol = "https_connect" if head.method == "CONNECT" else "http"
    known = stream.known
    if known is not None:
        target = known.target
    else:
        try:
            target = parse_target(head)
        except RefusedTarget as error:
            host, port = error.target.host, error.target.port
            refusal = await connection.refused(error.decision, protocol, head.method, host, port)
            await connection.say_last(http_refusal(refusal))
            return False
    if target.scheme == "connect":
        request = known or ReadRequest(head, target)
        if stream.alone is not None:
            connection.server.policy.known_requests.add(stream.alone, request)
        first = b"".join(event.data for event in stream.events if isinstance(event, Raw))
        stream.events.clear()
        await _tunnel(connection, request, first)
        return False
    return await _serve_plain(connection, stream, head, target)


def _tunnel(connection: Connection, request: ReadRequest, first: bytes) -> Coroutine[Any, None, None]:
    """Serve a CONNECT, after which the client sent `first`, to its end."""
    global _serve_tunnel
    if _serve_tunnel is None:  # not for what is refused; and an import that was done before still costs 0.7 µs
        from doorward.proxy.tunnelling import serve_tunnel

        _serve_tunnel = serve_tunnel
    target = request.target
    answers = ConnectAnswers(connection, target)
    return _serve_tunnel(connection, "https_connect", target.host, target.port, answers, first, request=request)


async def _serve_plain(connection: Connection, stream: RequestStream, head: RequestHead, target: Target) -> bool:
    try:
        known = stream.known
        request = known if isinstance(known, JudgedRequest) else await _judged(connection, stream, head, target)
        from doorward.proxy.forward import Exchange  # not for what is refused

        exchange = Exchange(connection, stream, request)
        try:
            return await exchange.run()
        except Unreachable as failure:
            await connection.failed(failure, request.decision, "http", head.method)
            if exchange.answering:
                connection.channel.abort()  # half an answer must not look whole
            else:
                await connection.say_last(failed_answer(failure, target, head.method))
            return False
        except BadMessage:
            if exchange.answering:
                connection.channel.abort()
                return False
            raise
    except NotAdmitted as no:
        refusal = await connection.refused(no, "http", head.method, target.host, target.port)
        await connection.say_last(http_refusal(refusal))
        return False


async def _judged(connection: Connection, stream: RequestStream, head: RequestHead, target: Target) -> JudgedRequest:
    """What the head means: an allow. Raises NotAdmitted; OSError when the client left while somebody was asked."""
    server = connection.server
    policy = server.policy
    decision = connection.judge(head, target)
    by_rules = decision.effect is Effect.ALLOW
    if not by_rules:
        decision = await connection.settle("http", head.method, decision)
    if passed_through(head, server.via):
        message = f"the request for {authority_text(target.host, target.port)} already went through this proxy"
        raise NotAdmitted(decision.refused(Reason.PROXY_LOOP, Source.PROXY_STATE, message))
    request = JudgedRequest(head, target, decision, request_head_for_origin(head, target, server.via))
    if by_rules and stream.alone is not None:
        policy.known_requests.add(stream.alone, request)
    return request


def failed_answer(failure: Unreachable, target: Target, method: str) -> bytes:
    """The 502 or 504."""
    return simple_response(
        failure.status,
        failure.error_class,
        failure.sentence,
        host=host_text(target.host),
        port=target.port,
        method=method,
    )


class ConnectAnswers:
    """What a CONNECT is answered."""

    __slots__ = ("_connection", "_target")

    established = connect_established()

    def __init__(self, connection: Connection, target: Target) -> None:
        self._connection = connection
        self._target = target

    async def say_refused(self, refusal: Refusal) -> None:
        """The door said no."""
        await self._connection.say_last(http_refusal(refusal))

    async def say_failed(self, failure: Unreachable) -> None:
        """The way there failed."""
        await self._connection.say_last(failed_answer(failure, self._target, "CONNECT"))

"""How a server's final answer goes to the client: the head anew, the body framed as the client can take it."""

from __future__ import annotations

from doorward.proxy.clock import NEVER
from doorward.proxy.http1_message import Body, End, Headers, Raw, RequestHead, ResponseEvent, ResponseHead, Trailers
from doorward.proxy.http1_write import chunk, last_chunk, response_head_for_client


class Relay:
    """How the final answer goes to the client."""

    __slots__ = ("_chunked", "_trailers", "_version", "answer", "ended", "keep", "left", "reusable")

    def __init__(self, answer: ResponseHead, request: RequestHead, *, keep: bool) -> None:
        self.answer = answer
        self.ended = False
        self.reusable = False  # the server's connection may serve another request
        self.left: float = answer.length or 0  # bytes of body to come that need no framing
        if answer.framing == "until-close":
            self.left = NEVER
        self._version = request.version
        self._chunked = answer.framing == "chunked" and request.version >= (1, 1)
        self._trailers: Headers = ()
        framed = answer.framing in ("none", "length") or self._chunked
        self.keep = keep and request.keep_alive and framed

    def head(self, via: bytes) -> bytes:
        """The head, as it goes to the client."""
        return response_head_for_client(self.answer, self.keep, self._version, via)

    def encode(self, event: ResponseEvent) -> bytes:
        """An event behind the head, as it goes to the client."""
        if isinstance(event, Body):
            if self._chunked:
                return chunk(event.data)
            self.left -= len(event.data)
            return event.data
        if isinstance(event, Raw):
            return event.data
        if isinstance(event, Trailers):
            self._trailers = event.headers
        elif isinstance(event, End):
            self.ended = True
            if self._chunked:
                return last_chunk(self._trailers)
        return b""

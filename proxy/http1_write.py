"""Writes HTTP/1 heads and bodies: the exact bytes that leave the proxy.

Stub: the contract below is final, the body follows.
"""

from __future__ import annotations

from doorward.proxy.http1 import Headers, RequestHead
from doorward.proxy.http1_response import ResponseHead
from doorward.proxy.target import Target


def request_head_for_origin(head: RequestHead, target: Target, via: bytes) -> bytes:
    """The head to send upstream: origin-form, HTTP/1.1, Host from the judged target, hop-by-hop fields removed,
    `Via: 1.1 <via>` added (nothing where `via` is empty)."""
    raise NotImplementedError


def request_head_for_parent(head: RequestHead, target: Target, via: bytes, authorization: bytes = b"") -> bytes:
    """The same for an upstream proxy: absolute-form, with our own Proxy-Authorization where given."""
    raise NotImplementedError


def connect_head_for_parent(authority: bytes, authorization: bytes = b"") -> bytes:
    """A CONNECT to an upstream proxy."""
    raise NotImplementedError


def passed_through(head: RequestHead, via: bytes) -> bool:
    """Whether the request already went through the proxy that calls itself `via`: a loop."""
    raise NotImplementedError


def response_head_for_client(head: ResponseHead, keep_alive: bool, client_version: tuple[int, int] = (1, 1)) -> bytes:
    """The head to send to the client. A chunked body goes to an HTTP/1.0 client unframed, closed at its end;
    an until-close body always closes."""
    raise NotImplementedError


def chunk(data: bytes) -> bytes:
    """One chunk; `data` must not be empty."""
    raise NotImplementedError


def last_chunk(trailers: Headers = ()) -> bytes:
    """The end of a chunked body; trailers that would frame or route a message are dropped."""
    raise NotImplementedError


def simple_response(
    status: int, error_class: str, message: str, *, host: str | None = None, port: int | None = None, method: str = ""
) -> bytes:
    """A whole answer of the proxy's own (400, 408, 414, 431, 501, 502, 504, 505): x-proxy-error, a JSON body
    (`status` "error", `error`, `host`, `port`, `message`; none to HEAD), Content-Length, Connection: close."""
    raise NotImplementedError


def connect_established() -> bytes:
    """The 200 to a CONNECT."""
    return b"HTTP/1.1 200 Connection established\r\n\r\n"


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

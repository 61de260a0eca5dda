"""Writes HTTP/1 heads and bodies: the exact bytes that leave the proxy.

What is passed on keeps its order, its case and its value. What belongs to one hop stays behind (RFC 9110 §7.6.1): the
fields listed below and those that Connection nominates. How the body is framed on the next hop is written anew from
what the reader found, so no field of the message can say otherwise, nominated or not.
"""

from __future__ import annotations

from doorward.allowlists.host import authority_text, host_text
from doorward.proxy.http1_message import Headers, RequestHead, ResponseHead
from doorward.proxy.target import Target
from doorward.start_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from typing import Final

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
"""The proxy's own interim answer to a client that waits while the server is silent."""

_HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"content-length",
        b"http2-settings",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"transfer-encoding",
        b"upgrade",
    )
)
_REQUEST_DROPS: Final = _HOP_BY_HOP | {b"host", b"proxy-authorization"}
# Whoever speaks HTTP/1.0 would take an interim answer for the final one (RFC 9110 §10.1.1).
_OLD_REQUEST_DROPS: Final = _REQUEST_DROPS | {b"expect"}
_RESPONSE_DROPS: Final = _HOP_BY_HOP | {b"proxy-authenticate", b"proxy-authentication-info"}

_USUAL_OPTIONS: Final = frozenset((b"keep-alive", b"close", b"upgrade"))  # they nominate nothing that is kept

# RFC 9110 §6.5.1: fields that frame, route, authenticate or describe a message mean nothing behind its body.
_NO_TRAILERS: Final = _REQUEST_DROPS | {
    b"authorization",
    b"cache-control",
    b"content-encoding",
    b"content-range",
    b"content-type",
    b"cookie",
    b"expect",
    b"max-forwards",
    b"proxy-authenticate",
    b"range",
    b"set-cookie",
    b"trailer",
    b"www-authenticate",
}

_PHRASES: Final = {
    400: "Bad Request",
    403: "Forbidden",
    408: "Request Timeout",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}


def request_head_for_origin(head: RequestHead, target: Target, via: bytes) -> bytes:
    """The head to send to the server: origin-form, HTTP/1.1, Host from the judged target.

    `via` is this proxy's pseudonym, added as RFC 9110 §7.6.3 asks (nothing where it is empty)."""
    host = host_text(target.host) if target.port == 80 else ""
    if not host or ":" in host:
        host = _host_field(target)
    return _request_head(head, target.path, host.encode("ascii"), via, b"")


def request_head_for_parent(head: RequestHead, target: Target, via: bytes, authorization: bytes = b"") -> bytes:
    """The head to send to an upstream proxy: absolute-form, with its Proxy-Authorization value where given."""
    host = _host_field(target).encode("ascii")
    # the parent is not the last proxy of the chain, so the server-wide OPTIONS keeps its empty path
    path = b"" if target.path == b"*" else target.path
    extra = b"Proxy-Authorization: " + authorization + b"\r\n" if authorization else b""
    return _request_head(head, b"http://" + host + path, host, via, extra)


def connect_head_for_parent(authority: bytes, authorization: bytes = b"") -> bytes:
    """A CONNECT to an upstream proxy; `authority` is `host:port`."""
    extra = b"Proxy-Authorization: " + authorization + b"\r\n" if authorization else b""
    return b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, extra)


def passed_through(head: RequestHead, via: bytes) -> bool:
    """Whether a Via line says that the request already went through the proxy with the pseudonym `via`: a loop."""
    for name, value in head.headers:
        if len(name) == 3 and name.lower() == b"via" and via in value:
            for hop in value.split(b","):
                words = hop.split()
                if len(words) > 1 and words[1] == via:
                    return True
    return False


def response_head_for_client(
    head: ResponseHead, keep_alive: bool, client_version: tuple[int, int] = (1, 1), via: bytes = b""
) -> bytes:
    """The head to send to the client, interim ones too (which an HTTP/1.0 client must never get).

    The body that follows is to be sent as is for framing "length" and "until-close"; in chunks for "chunked", but as is
    to an HTTP/1.0 client, for whom the end of the connection ends it. The connection stays only where `keep_alive`
    is true and the framing allows it; the head says which."""
    parts = [b"HTTP/1.1 %d %b\r\n" % (head.status, head.phrase), _fields(head.headers, _RESPONSE_DROPS)]
    if via:
        parts.append(b"Via: 1.1 " + via + b"\r\n")
    if head.upgraded:
        protocol = b",".join(value for name, value in head.headers if name.lower() == b"upgrade")
        parts.append(b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n")
    elif head.status >= 200:
        if head.framing == "length":
            parts.append(b"Content-Length: %d\r\n" % (head.length or 0))
        elif head.framing == "chunked" and client_version >= (1, 1):
            parts.append(b"Transfer-Encoding: chunked\r\n")
        elif head.framing == "none" and head.status != 204:
            parts.append(_promised_length(head.headers))
        else:
            keep_alive = keep_alive and head.framing == "none"
        if not keep_alive:
            parts.append(b"Connection: close\r\n")
    parts.append(b"\r\n")
    return b"".join(parts)


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; of nothing, nothing (an empty chunk would end the body)."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def last_chunk(trailers: Headers = ()) -> bytes:
    """The end of a chunked body. Trailers that would frame, route or authenticate a message are dropped."""
    return b"0\r\n" + _fields(trailers, _NO_TRAILERS) + b"\r\n"


def connect_established() -> bytes:
    """The answer to a CONNECT whose tunnel stands."""
    return b"HTTP/1.1 200 Connection established\r\n\r\n"


def simple_response(
    status: int, error_class: str, message: str, *, host: str | None = None, port: int | None = None, method: str = ""
) -> bytes:
    """A whole answer of the proxy's own that is no refusal by a rule (400, 408, 414, 431, 501, 502, 504, 505).

    The JSON body's keys: `status` ("error"), `error` (the class, as in x-proxy-error), `host`, `port` (null where not
    known), `message`. The connection is to be closed behind it. `method` is the request's: HEAD gets no body."""
    body: dict[str, object] = {"status": "error", "error": error_class, "host": host, "port": port, "message": message}
    return closing_response(status, _PHRASES[status], error_class, body, method)


def closing_response(status: int, phrase: str, error_class: str, body: dict[str, object], method: str) -> bytes:
    """A whole JSON answer after which the connection closes; `phrase` is printable ASCII."""
    content = dumps(body, spaced=True).encode("ascii") + b"\n"
    head = (
        f"HTTP/1.1 {status} {phrase}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n"
        "Connection: close\r\n"
        f"x-proxy-error: {error_class}\r\n\r\n"
    ).encode("ascii")
    return head if method == "HEAD" else head + content


def _request_head(head: RequestHead, target: bytes, host: bytes, via: bytes, extra: bytes) -> bytes:
    parts = [
        b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (head.method.encode("ascii"), target, host),
        _fields(head.headers, _REQUEST_DROPS if head.version == (1, 1) else _OLD_REQUEST_DROPS),
        extra,
    ]
    if head.framing == "length":
        parts.append(b"Content-Length: %d\r\n" % (head.length or 0))
    elif head.framing == "chunked":
        parts.append(b"Transfer-Encoding: chunked\r\n")
    if head.upgrade is not None:
        parts.append(b"Connection: Upgrade\r\nUpgrade: " + head.upgrade + b"\r\n")
    if via:
        parts.append(b"Via: %d.%d %b\r\n" % (*head.version, via))
    parts.append(b"\r\n")
    return b"".join(parts)


def _host_field(target: Target) -> str:
    authority = authority_text(target.host, target.port)
    return authority.removesuffix(":80") if target.port == 80 else authority


def _fields(headers: Headers, drops: AbstractSet[bytes], *, knows_nominated: bool = False) -> bytes:
    """The header lines but for `drops` (lower case) and what Connection nominates."""
    lines = []
    for name, value in headers:
        key = name.lower()
        if key not in drops:
            lines.append(name + b": " + value + b"\r\n")
        elif key == b"connection" and not knows_nominated and value.lower() not in _USUAL_OPTIONS:
            return _fields(headers, _nominated(headers) | drops, knows_nominated=True)
    return b"".join(lines)


def _nominated(headers: Headers) -> set[bytes]:
    values = [value.lower() for name, value in headers if name.lower() == b"connection"]
    return {option.strip(b" \t") for option in b",".join(values).split(b",")}


def _promised_length(headers: Headers) -> bytes:
    """The Content-Length line of a response to HEAD or of a 304: it describes a body that is not sent."""
    for name, value in headers:
        if name.lower() == b"content-length":
            return b"Content-Length: " + value + b"\r\n"
    return b""

"""What a request inside TLS must be, before anything of it is judged: as strict as the door is outside.

HTTP/1 heads are read by the door's own reader first; what that takes has one meaning, so mitmproxy's sees the same.
HTTP/2 heads are held to what they may be as HTTP/1 (RFC 9113 §8.2, §8.3, §10.3), since the server may speak that.
"""

from __future__ import annotations

import re
from typing import Any

from doorward.allowlists.host import Address, MalformedHost, Name, address_host, parse_address, parse_host
from doorward.proxy.http1 import BadMessage, RequestHead, RequestReader
from doorward.proxy.limits import Limits
from doorward.proxy.target import host_header, parse_authority

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_METHOD = re.compile(rb"[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*")
_VALUE = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*")
_TARGET = re.compile(rb"/[!-~]*|\*")
_DIGITS = re.compile(rb"(?:0|[1-9][0-9]{0,18})")
_CONNECTION_ONLY = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade", b"http2-settings")
)
_END = b"\r\n\r\n"
_LINE = len("  HTTP/1.1")
_BESIDE = len(": \r\n")


class HeadReader:
    """Reads one HTTP/1 request head as it comes."""

    def __init__(self, limits: Limits) -> None:
        self._reader = RequestReader(limits)
        self._fed = 0

    def feed(self, buffer: bytes) -> RequestHead | None:
        """`buffer` is all of the connection's unread bytes; the head, once it is whole. Raises BadMessage."""
        end = buffer.find(_END, max(0, self._fed - len(_END)))
        upto = len(buffer) if end < 0 else end + len(_END)
        if upto <= self._fed:
            return None
        events = self._reader.feed(buffer[self._fed : upto])
        self._fed = upto
        head = events[0] if events else None
        if head is None:
            return None
        assert isinstance(head, RequestHead)
        if head.method == "CONNECT" or not head.target.startswith((b"/", b"*")):
            raise BadMessage(400, "Inside a tunnel a request target is a path.")
        if not host_header(head):
            raise BadMessage(400, "A request needs a Host header.")
        return head


def check_http2(request: Any, limits: Limits) -> None:
    """Raises BadMessage for an HTTP/2 request (mitmproxy's) that would be another one as HTTP/1, or none that the
    limits let through."""
    data = request.data
    if len(data.method) + len(data.path) + _LINE > limits.request_line:
        raise BadMessage(414, f"The request line is longer than {limits.request_line} bytes.")
    fields = data.headers.fields
    if len(fields) > limits.header_count:
        raise BadMessage(431, f"The message has more than {limits.header_count} header lines.")
    if sum(len(name) + len(value) + _BESIDE for name, value in fields) > limits.head:
        raise BadMessage(431, f"The head is larger than {limits.head} bytes.")
    if _METHOD.fullmatch(data.method) is None or data.method == b"CONNECT":
        raise BadMessage(400, "The method is malformed.")
    if _TARGET.fullmatch(data.path) is None or (data.path == b"*" and data.method != b"OPTIONS"):
        raise BadMessage(400, "The path is malformed.")
    lengths = 0
    for name, value in data.headers.fields:
        if _TOKEN.fullmatch(name) is None:
            raise BadMessage(400, "A header's name is malformed.")
        if _VALUE.fullmatch(value) is None or value != value.strip(b" \t"):
            raise BadMessage(400, "A header's value is malformed.")
        if name in _CONNECTION_ONLY or (name == b"te" and value.lower() != b"trailers"):
            raise BadMessage(400, "A header has no place in HTTP/2.")
        if name == b"content-length":
            lengths += 1
            if _DIGITS.fullmatch(value) is None or lengths > 1:
                raise BadMessage(400, "Content-Length is malformed.")


def names_disagree(request: Any, host: str, port: int, *, tls: bool) -> str | None:
    """What of the request names another host than the tunnel was opened to; None where all agree. Raises
    BadMessage."""
    wanted = (_host(host), port)
    default = 443 if tls else 80
    named = [value for name, value in request.headers.fields if name.lower() == b"host"]
    if request.data.authority:
        named.append(request.data.authority)
    if not named:
        raise BadMessage(400, "The request names no host.")
    for said in named:
        if parse_authority(said, default) != wanted and parse_authority(said, port) != wanted:
            return str(said, "latin-1")
    return None


def _host(text: str) -> Name | Address:
    try:
        return address_host(parse_address(text))
    except MalformedHost:
        return parse_host(text)

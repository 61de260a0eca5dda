"""Reads one HTTP/1 head: finds its end, checks it line by line, and says how the body is delimited.

Two readers must agree on every head before it counts. llhttp parses it; our own checks see the raw
bytes. llhttp is strict on line ends, names, values and lengths; it is lax on the following, so they are ours:

- the request line is exactly `METHOD target HTTP/1.x`, single blanks, nothing left out (llhttp takes HTTP/0.9, a
  missing version, doubled blanks, HTTP/2.0);
- an HTTP/1.0 message has no Transfer-Encoding (RFC 9112 §6.1), and the only coding taken is `chunked` alone;
- a status line is three digits from 100, its phrase free of control bytes;
- one header line gives exactly one field; both readers agree whether a body follows; sizes and counts are bounded.
"""

from __future__ import annotations

from doorward.plain_collections import lru_cache
from doorward.proxy import llhttp
from doorward.proxy.http1_message import BadMessage, Headers, RequestHead, ResponseHead
from doorward.proxy.limits import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal, NoReturn

# First lines are taken apart by hand: `re` and its patterns would cost every run's proxy 2 ms.
_METHOD: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-"
_VISIBLE: Final = bytes(range(0x21, 0x7F))
_PHRASE: Final = b"\t" + bytes(range(0x20, 0x7F)) + bytes(range(0x80, 0x100))
# for refused requests only
_ANY_VERSION: Final = rb"[^ \r\n]+ [^ \r\n]+ HTTP/([0-9])\.([0-9])\r\n"
_OTHER_METHOD: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP/1\.[01]\r\n"
_LONGEST_LENGTH: Final = 18  # digits; more would be an exabyte
_TEXT: Final = bytes(range(0x20, 0x7F)) + bytes(range(0x80, 0x100)) + b"\t\r\n"

_LOOKED_AT: Final = frozenset((b"connection", b"content-length", b"transfer-encoding", b"expect", b"upgrade"))


class _Fields:
    """What llhttp calls while it parses."""

    __slots__ = ("headers", "whole")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_message_complete(self) -> None:
        self.whole = True


def find_head_end(buffer: bytes, start: int, scanned: int, status: int, limits: Limits) -> int:
    """Where the head that begins at `start` ends (behind its empty line), or -1 if more bytes are needed.

    `scanned` is how far an earlier call has looked. What can never become a head is refused now and not when the
    client has lost patience: raises BadMessage (`status` for bad bytes, 414, 431; always `status` if it is 502).
    """
    end = buffer.find(b"\r\n\r\n", max(start, scanned - 3)) + 4
    if end >= 4 and end - start <= limits.head:
        return end
    line_limit = start + limits.request_line
    if len(buffer) > line_limit + 1 and buffer.find(b"\r\n", start, line_limit + 2) < 0:
        raise _line_too_long(status, limits)
    if len(buffer) - start > limits.head:
        raise BadMessage(status if status == 502 else 431, f"The head is larger than {limits.head} bytes.")
    check_unfinished_lines(buffer, start, scanned, status)
    return -1


def check_unfinished_lines(buffer: bytes, start: int, scanned: int, status: int) -> None:
    """Raises BadMessage unless what begins at `start` can still become lines of a head, or of trailers."""
    new = buffer[max(start, scanned) :]
    if new.translate(None, _TEXT):
        raise BadMessage(status, "The message holds bytes that have no place in an HTTP/1 head.")
    # a line feed that is the first new byte may belong to a carriage return seen before
    split = scanned > start and new.startswith(b"\n") and buffer[scanned - 1] == 0x0D
    if new.count(b"\n") - split != new.count(b"\r\n"):
        raise BadMessage(status, "A line of the head ends with a bare line feed.")


def parse_request_head(block: bytes, limits: Limits) -> RequestHead:
    """The head in `block` (request line to empty line, inclusive); raises BadMessage."""
    line = block[: block.find(b"\r\n")]
    parts = read_request_line(line)
    if parts is None or len(line) > limits.request_line:
        _refuse_request_line(block, limits)
    method, target, minor = parts
    fields = _Fields()
    stopped = False
    parser = llhttp.HttpRequestParser(fields)
    try:
        parser.feed_data(block)
    except llhttp.HttpParserUpgrade:
        stopped = True  # llhttp looks for no body then; what follows is the reader's business
    except llhttp.HttpParserInvalidMethodError:
        raise BadMessage(501, "The request method is not known here.") from None
    except llhttp.HttpParserError as error:
        raise BadMessage(400, _sentence(error)) from None
    headers, looked_at = _checked(block, fields.headers, 400, limits)

    old = minor == b"0"
    connection = looked_at.get(b"connection")
    options = _options(connection) if connection is not None else ()
    framing, length = _framing(looked_at, old, 400)
    if method == b"CONNECT":
        # RFC 9110 §9.3.6: no content; a length that says otherwise leaves the tunnel's first byte in doubt.
        if framing == "chunked" or length:
            raise BadMessage(400, "A CONNECT request must not have a body.")
        framing, length = "none", None
    has_body = framing == "chunked" or bool(length)
    if fields.whole is has_body and not stopped:
        raise BadMessage(400, "It cannot be told where the message ends.")
    upgrade = None
    if b"upgrade" in options and not old and not has_body and method != b"CONNECT":
        upgrade = looked_at.get(b"upgrade") or None
        if upgrade is not None and b"h2c" in _options(upgrade):
            upgrade = None
    expect = looked_at.get(b"expect")
    waits = expect is not None and not old and expect.lower() == b"100-continue"
    return RequestHead(
        method.decode("ascii"),
        target,
        (1, 0) if old else (1, 1),
        headers,
        framing,
        length,
        not old and b"close" not in options,
        waits and has_body,
        upgrade,
    )


def parse_response_head(block: bytes, request_method: str, limits: Limits) -> ResponseHead:
    """The head in `block` (status line to empty line, inclusive); raises BadMessage, always with status 502."""
    line = block[: block.find(b"\r\n")]
    if len(line) > limits.request_line:
        raise _line_too_long(502, limits)
    parts = read_status_line(line)
    if parts is None:
        raise BadMessage(502, "The upstream server's status line is malformed.")
    minor, code, phrase = parts
    fields = _Fields()
    parser = llhttp.HttpResponseParser(fields)
    try:
        parser.feed_data(block)
    except llhttp.HttpParserUpgrade:
        pass
    except llhttp.HttpParserError as error:
        # llhttp stops at any 101, also where it names no protocol; the head itself was whole by then.
        if code != b"101" or "Upgrade" not in str(error):
            raise BadMessage(502, _sentence(error)) from None
    headers, looked_at = _checked(block, fields.headers, 502, limits)

    old = minor == b"0"
    status = int(code)
    connection = looked_at.get(b"connection")
    options = _options(connection) if connection is not None else ()
    said, length = _framing(looked_at, old, 502)
    framing: Literal["none", "length", "chunked", "until-close"] = said
    # RFC 9112 §6.3, in its order.
    bodiless = request_method == "HEAD" or status < 200 or status in (204, 304)
    if bodiless or (request_method == "CONNECT" and status < 300):
        framing, length = "none", None
    elif said == "none":
        framing = "until-close"
    keep_alive = b"keep-alive" in options if old else True
    return ResponseHead(
        status,
        phrase,
        (1, 0) if old else (1, 1),
        headers,
        framing,
        length,
        keep_alive and b"close" not in options and framing != "until-close",
        status == 101,
    )


def read_request_line(line: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Method, target and minor version of `METHOD target HTTP/1.x` (RFC 9112 §3), without its line end. None for all
    else, and for PRI, which is kept for the HTTP/2 preface (RFC 9113 §11.6): llhttp takes it with HTTP/1.0."""
    parts = line.split(b" ")
    if len(parts) != 3:
        return None
    method, target, version = parts
    if (
        not target
        or target.translate(None, _VISIBLE)
        or version not in (b"HTTP/1.1", b"HTTP/1.0")
        or not method
        or method.translate(None, _METHOD)
        or method.startswith(b"-")
        or method == b"PRI"
    ):
        return None
    return method, target, version[-1:]


@lru_cache(64)  # servers say the same few things
def read_status_line(line: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Minor version, code and phrase of `HTTP/1.x NNN phrase` (RFC 9112 §4), without its line end; the phrase may be
    missing with its blank. None for all else."""
    code = line[9:12]
    if (
        not line.startswith((b"HTTP/1.1 ", b"HTTP/1.0 "))
        or len(code) != 3
        or not code.isdigit()
        or code.startswith(b"0")
        or line[12:13] not in (b"", b" ")
        or line[13:].translate(None, _PHRASE)
    ):
        return None
    return line[7:8], code, line[13:]


def _checked(
    block: bytes, headers: list[tuple[bytes, bytes]], status: int, limits: Limits
) -> tuple[Headers, dict[bytes, bytes]]:
    """The header lines, and those that steer the connection by lower-case name (repeated lists are joined)."""
    lines = block.count(b"\n") - 2
    if lines > limits.header_count:
        raise BadMessage(
            status if status == 502 else 431, f"The message has more than {limits.header_count} header lines."
        )
    if lines != len(headers):
        raise BadMessage(status, "The header lines cannot be told apart.")
    if b" \r\n" in block or b"\t" in block:
        headers = [(name, value.rstrip(b" \t")) for name, value in headers]
    looked_at: dict[bytes, bytes] = {}
    for name, value in headers:
        key = name.lower()
        if key in _LOOKED_AT:
            looked_at[key] = value if key not in looked_at else looked_at[key] + b"," + value
    return tuple(headers), looked_at


def _framing(
    looked_at: dict[bytes, bytes], old: bool, status: int
) -> tuple[Literal["none", "length", "chunked"], int | None]:
    coding = looked_at.get(b"transfer-encoding")
    length = looked_at.get(b"content-length")
    if coding is not None:
        if length is not None:
            raise BadMessage(status, "The message has both Transfer-Encoding and Content-Length.")
        if old:
            raise BadMessage(status, "An HTTP/1.0 message must not have a Transfer-Encoding.")
        if coding.lower() != b"chunked":
            raise BadMessage(
                status if status == 502 else 501, "The only transfer coding known here is chunked, by itself."
            )
        return "chunked", None
    if length is not None:
        if not (length.isdigit() and len(length) <= _LONGEST_LENGTH):
            raise BadMessage(status, "Content-Length is not one plain number.")
        return "length", int(length)
    return "none", None


def _options(value: bytes) -> tuple[bytes, ...]:
    """The elements of a comma-separated list, lower case."""
    return tuple([part.strip(b" \t") for part in value.lower().split(b",")])


def _refuse_request_line(block: bytes, limits: Limits) -> NoReturn:
    if block.find(b"\r\n") > limits.request_line:
        raise _line_too_long(400, limits)
    import re

    version = re.match(_ANY_VERSION, block)
    if version is not None and (version[1] != b"1" or version[2] not in b"01"):
        if version[1] == b"0":
            raise BadMessage(400, "HTTP/0.9 is not spoken here.")
        raise BadMessage(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here; HTTP/2 passes inside a CONNECT tunnel.")
    if re.match(_OTHER_METHOD, block) is not None:
        raise BadMessage(501, "The request method is not known here; methods are upper case.")
    raise BadMessage(400, "The request line is not METHOD, one blank, target, one blank, HTTP/1.1.")


def _line_too_long(status: int, limits: Limits) -> BadMessage:
    line = "status line" if status == 502 else "request line"
    return BadMessage(status if status == 502 else 414, f"The {line} is longer than {limits.request_line} bytes.")


def _sentence(error: Exception) -> str:
    # llhttp's own words are fixed strings and hold no byte of the message.
    return f"The message is malformed: {str(error).rstrip('.')}."

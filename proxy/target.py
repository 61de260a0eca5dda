"""Says which host, port and path a request is for, or refuses to guess.

Rules (RFC 9112 §3.2, RFC 9110 §7.2), stricter than a server has to be, since what is judged here is what is dialled:

- to the proxy port a target is absolute (`http://host[:port]/path`), or an authority with its port for CONNECT;
- no user-info, no fragment, no empty port; hosts and ports as allowlists/host.py takes them;
- HTTP/1.1 needs exactly one Host line (CONNECT may do without: its target says it all). It must name the same host and
  port as the target, in any case, with the default port written or not. A CONNECT's Host may leave out the port;
- another scheme than http is not fetched: `https://` belongs into CONNECT.
"""

from __future__ import annotations

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Host, MalformedHost, authority_text, parse_host_port
from doorward.named_tuple import NamedTuple
from doorward.plain_collections import lru_cache
from doorward.proxy.http1_message import BadMessage, RequestHead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SCHEME: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}


class Target(NamedTuple):
    """Where a request goes."""

    scheme: str
    """Lower case; "http", or "connect" for a CONNECT."""
    host: Host
    port: int
    path: bytes
    """Origin-form (`/a?b`), `*` for an OPTIONS about the whole server, empty for CONNECT."""


class RefusedTarget(Exception):
    """A well-formed request that no rule can allow; answered 403 with `decision`."""

    def __init__(self, target: Target, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.target = target
        self.decision = Decision(
            effect=Effect.DENY,
            reason=reason,
            source=Source.MODE_GUARD,
            rule=None,
            host=target.host,
            port=target.port,
            message=message,
            hint="",  # nothing allows it but another request
        )


class NameMismatch(RefusedTarget):
    """The Host line names another host or port than the target; `host_header` is that line's value."""

    def __init__(self, target: Target, host_header: str) -> None:
        asked = authority_text(target.host, target.port)
        super().__init__(
            target,
            Reason.NAME_MISMATCH,
            f"the request is for {asked} but its Host header names {host_header}; both must be the same",
        )
        self.host_header = host_header


class SchemeNotAllowed(RefusedTarget):
    """An absolute target of another scheme than http."""

    def __init__(self, target: Target) -> None:
        asked = authority_text(target.host, target.port)
        super().__init__(
            target,
            Reason.SCHEME_NOT_ALLOWED,
            f"the proxy does not fetch {target.scheme}:// targets; use CONNECT {asked}",
        )


def parse_target(head: RequestHead) -> Target:
    """The target of `head`. Raises BadMessage (400), NameMismatch or SchemeNotAllowed."""
    if head.method == "CONNECT":
        authority = head.target
        host, port = parse_authority(authority)
        target = Target("connect", host, port, b"")
        host_port = port
    else:
        parts = split_absolute(head.target)
        if parts is None:
            raise _no_absolute_target(head.target)
        scheme, authority, path = parts
        if scheme != b"http":
            name = scheme.decode("ascii").lower()
            if name != "http":
                host, port = parse_authority(authority, _DEFAULT_PORTS.get(name))
                raise SchemeNotAllowed(Target(name, host, port, path))
        host, port = parse_authority(authority, 80)
        if path[:1] != b"/":
            path = b"*" if head.method == "OPTIONS" and not path else b"/" + path
        target = Target("http", host, port, path)
        host_port = 80
    header = host_header(head)
    if header is None:
        if target.scheme == "http" and head.version != (1, 0):
            raise BadMessage(400, "An HTTP/1.1 request needs a Host header.")
    elif header != authority and parse_authority(header, host_port) != (host, port):
        raise NameMismatch(target, header.decode("ascii"))
    return target


def split_absolute(target: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Scheme, authority and the rest (path and query) of an absolute target (RFC 3986 §3); None for all else."""
    scheme, colon, rest = target.partition(b"://")
    if not colon or b"#" in rest or not scheme[:1].isalpha() or scheme.translate(None, _SCHEME):
        return None
    end = rest.find(b"/")
    query = rest.find(b"?", 0, end if end >= 0 else len(rest))
    if query >= 0:
        end = query
    return (scheme, rest, b"") if end < 0 else (scheme, rest[:end], rest[end:])


def host_header(head: RequestHead) -> bytes | None:
    """The value of the one Host line, None without one; raises BadMessage (400) for several."""
    found = None
    for name, value in head.headers:
        if len(name) == 4 and name.lower() == b"host":
            if found is not None:
                raise BadMessage(400, "The request has more than one Host header.")
            found = value
    return found


def parse_authority(text: bytes, default_port: int | None = None) -> tuple[Host, int]:
    """`host:port`, or `host` where a default is given. Raises BadMessage (400)."""
    found = _parse_authority(text, default_port)
    if isinstance(found, str):
        raise BadMessage(400, found)
    return found


def names_agree(header: bytes, host: Host, port: int, *, default_port: int | None) -> bool:
    """Whether the Host line of a cleartext head inside a tunnel names what the tunnel was asked for.

    `default_port` is the port meant by a Host without one; with None that agrees with any. Raises BadMessage (400)."""
    return parse_authority(header, port if default_port is None else default_port) == (host, port)


# A keep-alive client asks the same few authorities again and again; entries are bounded by the longest host name.
@lru_cache(1024)
def _parse_authority(text: bytes, default_port: int | None) -> tuple[Host, int] | str:
    if b"@" in text:
        return "User-info in a target or a Host header is not accepted."
    if len(text) > 300:  # longer than any host name with its port
        return "The host is malformed: it is longer than any host name."
    try:
        return parse_host_port(text.decode("latin-1"), default_port)
    except MalformedHost as error:
        return f"The host is malformed: {error}."


def _no_absolute_target(target: bytes) -> BadMessage:
    if target.startswith(b"/") or target == b"*":
        return BadMessage(
            400, "This is a proxy: it takes absolute targets (http://host/path) and CONNECT, not a path alone."
        )
    if b"#" in target:
        return BadMessage(400, "A request target must not have a fragment.")
    return BadMessage(400, "The request target is not an absolute http:// address.")

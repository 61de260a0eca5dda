"""Every limit the network door holds a connection to, with its default.

One place, so that the documentation, the configuration and the code cannot disagree. Times are seconds, sizes
are bytes. A limit that is reached gives a named answer, never a silent close (DESIGN.md §5).
"""

from __future__ import annotations

from doorward.named_tuple import NamedTuple
from doorward.typing_names import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final


class Limits(NamedTuple):
    """Limits of one policy; the defaults suit a command that downloads and a person who waits."""

    request_line: int = 8 * 1024
    """Longest request line, without its line end; beyond: 414. RFC 9112 §3 asks for at least 8000 bytes."""
    head: int = 64 * 1024
    """Longest request or response head, empty line included; beyond: 431 (from upstream: 502)."""
    header_count: int = 256
    """Most header lines in one head, and in one set of trailers; beyond: 431 (from upstream: 502)."""
    trailers: int = 16 * 1024
    """Longest set of trailers; beyond: 431 (from upstream: 502)."""
    chunk_line: int = 1024
    """Longest chunk-size line, extensions included; beyond: 400 (from upstream: 502)."""
    hello: int = 64 * 1024
    """Most bytes of TLS records read for one ClientHello; beyond: closed."""

    head_time: float = 10.0
    """From the first byte of a request, or of a SOCKS5 handshake, to its last; beyond: 408."""
    first_bytes_time: float = 3.0
    """How long a tunnel's first bytes are awaited before the port's rule alone decides."""
    resolve_time: float = 5.0
    """How long the resolver may be silent; beyond: 504 dns-timeout."""
    dial_time: float = 10.0
    """From the first connection attempt to the last judged address; beyond: 502 upstream-failed."""
    reply_time: float = 60.0
    """From the end of a request to the first byte of its reply; beyond: 504."""
    idle_time: float = 300.0
    """A kept-alive client connection between two requests, and a body that has stalled."""
    tunnel_idle_time: float = 3600.0
    """A tunnel or an upgraded connection that moved no byte either way."""
    pooled_time: float = 30.0
    """How long an upstream connection is kept for another request."""

    connections: int = 4096
    """Most client connections at once; beyond: not accepted until one ends."""
    pooled: int = 64
    """Most idle upstream connections kept."""


DEFAULT = Limits()


_LONGEST: Final = 10**9  # seconds or bytes; past it a value is a slip and a timer overflows


class MalformedLimit(ValueError):
    """A limit that does not exist or has an impossible value; the text is one sentence that names it."""


def limits_from(settings: Mapping[str, object]) -> Limits:
    """The defaults with `settings` laid over them.

    Raises MalformedLimit for an unknown name, or a value that is no positive number of the limit's own kind: whole for
    bytes and counts, with a fraction where it is seconds."""
    for name, value in settings.items():
        if name not in Limits._fields:
            raise MalformedLimit(f"There is no limit called {name!r}; there are: {', '.join(Limits._fields)}.")
        whole = isinstance(getattr(DEFAULT, name), int)
        is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        # the comparison also turns away what is not a number at all (nan)
        if not is_number or not 0 < cast(float, value) <= _LONGEST:
            kind = "whole number" if whole else "number of seconds"
            raise MalformedLimit(f"The limit {name} is not a positive {kind}.")
    checked: dict[str, Any] = dict(settings)
    return DEFAULT._replace(**checked)

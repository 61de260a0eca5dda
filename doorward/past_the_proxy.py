"""One hint after a failed run whose output shows a client that went round the proxy: no door saw anything of it.

What is looked for are the words of clients and of the C library. The proxy's own sentences, which clients print too,
have the same reasons in lower case and are not meant: hence every letter counts here.
"""

from __future__ import annotations

import re
from typing import Final

from doorward.plan import PROXY_URL

_NAME: Final = (
    "Temporary failure in name resolution", "Name or service not known", "Name does not resolve",  # glibc, musl
    "Could not resolve host", "unable to resolve host address", "Temporary failure resolving",  # curl, wget, apt
    "EAI_AGAIN", "getaddrinfo ENOTFOUND", "UnknownHostException", "UnresolvedAddressException",  # Node, Java
    "no such host",  # Go
)  # fmt: skip
_ADDRESS: Final = (
    "Network is unreachable", "connect: network is unreachable", "ENETUNREACH", "No route to host", "EHOSTUNREACH",
)  # fmt: skip
_REFUSED: Final = ("Connection refused", "connect: connection refused", "ECONNREFUSED")
_LOOPBACK: Final = r"(?:127\.0\.0\.1|\blocalhost\b|\[?::1\b\]?)"
_PORT: Final = r"(?::|'?, | port |'?, port=)(\d{1,5})\b"
_NAME_SERVER: Final = r"lookup \S+ on \S+:53\b"  # Go's own resolver, which asks a server that is not there
_CURL: Final = "Failed to connect to "  # and not why
_NO_TRUST_SERVICE: Final = "OSStatus -26276"
"""errSecInternalComponent: what Go's crypto/x509 prints on macOS where the trust service cannot be asked."""


def hint(output: str, proxy_url: str = PROXY_URL, *, captured: bool = False) -> str | None:
    """A sentence for a person; None where `output`, of a failed command, shows no way round the proxy, which inside is
    at `proxy_url`. Where connections are `captured` there is only one: loopback."""
    if _NO_TRUST_SERVICE in output:
        return (
            "a certificate could not be verified: the program asks macOS's trust service, and OSStatus -26276 says "
            "that it could not. -c macos.trust_service=true lets it"
        )
    if not captured and (_has(output, _NAME) or re.search(_NAME_SERVER, output)):
        return (
            "a name did not resolve: inside, only the proxy looks names up. "
            f"Have the client use {proxy_url}, or socks5h:// (not socks5://) at that address"
        )
    if (place := _refused_loopback(output, proxy_url, captured)) is not None:
        return (
            "nothing listens there: loopback inside is the sandbox's own, the host's is another machine. "
            f"--allow-loopback {place.rpartition(':')[2]} makes the host's port appear inside; a server that a run "
            "starts itself is reached by clients of the same run alone"
        )
    if captured:
        return None
    if _has(output, _ADDRESS) or re.search(rf"{_CURL}(?!{_LOOPBACK})\S+ port", output):
        return (
            f"an address was dialled directly, and inside there is no route: the only way out is {proxy_url}, "
            "also for SOCKS5"
        )
    return None


def _refused_loopback(output: str, proxy_url: str, captured: bool) -> str | None:
    """The rule for the port of the host's loopback that was dialled; None where none was, or it was the proxy's."""
    told = _has(output, _REFUSED)
    if not told and _CURL not in output:
        return None
    refused = [line for line in output.splitlines() if _has(line, _REFUSED) or _CURL in line]
    for line in refused:
        if (found := re.search(_LOOPBACK + _PORT, line)) is not None:
            # a sandboxed client that does not reach the proxy itself is no client that goes round it
            return None if proxy_url.endswith(f":{found[1]}") else f"127.0.0.1:{found[1]}"
    # a bare traceback: the address is in some other line, and may be of another server; where everything else is
    # captured, and answered, only loopback refuses
    return "127.0.0.1:PORT" if told and (captured or re.search(_LOOPBACK, output)) else None


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)

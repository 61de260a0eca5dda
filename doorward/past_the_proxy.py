"""One hint after a failed run whose output shows a client that went round the proxy: no door saw anything of it.

What is looked for are the words of clients and of the C library. The proxy's own sentences, which clients print too,
have the same reasons in lower case and are not meant: hence every letter counts here.
"""

from __future__ import annotations

import re

from doorward.hint import Hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from doorward.hints import Ended

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
_CAPTURE: Final = "-c network.transparent=true"
_SOCKS: Final = (
    (r"(?<![\w-])socks5://", "socks5://", "socks5h://"),
    (r"(?<![\w-])--socks5(?![\w-])", "--socks5", "--socks5-hostname"),
)
_LIBRARIES: Final = (
    ("aiohttp.client_exceptions.", "have aiohttp read the variables: ClientSession(trust_env=True)"),
    ("TypeError: fetch failed", "take Node 22.21 or 24, whose fetch reads the variables"),
)
"""What a library prints that reads the proxy variables only if told to, and how it is told (docs/clients.md)."""

_ELSEWHERE: Final = "nothing listens there: loopback inside is the sandbox's own, the host's is another machine"
_APPEARS: Final = (
    "makes the host's port appear inside; a server that a run starts itself is reached by clients of the same run alone"
)
_NO_TRUST_SERVICE: Final = "OSStatus -26276"
"""errSecInternalComponent: what Go's crypto/x509 prints on macOS where the trust service cannot be asked."""


def hint(ended: Ended) -> Hint | None:
    """The one hint; None where nothing of a failed command shows a way round the proxy. Where connections are captured
    there is only one: loopback."""
    output, proxy_url = ended.output, ended.proxy_url
    assert proxy_url is not None
    if _NO_TRUST_SERVICE in output:
        return Hint(
            "trust_service",
            "a certificate could not be verified: the program asks macOS's trust service, and OSStatus -26276 says "
            "that it could not. -c macos.trust_service=true lets it",
            "-c macos.trust_service=true",
        )
    if ended.uncaptured and (_has(output, _NAME) or re.search(_NAME_SERVER, output)):
        why = "a name did not resolve: inside, only the proxy looks names up"
        return _socks(ended, why) or _ignored(ended, why, "socks5h:// (not socks5://) at that address")
    if (port := _refused_loopback(ended, proxy_url)) is not None:
        return _loopback(port, ended)
    if not ended.uncaptured:
        return None
    if _has(output, _ADDRESS) or re.search(rf"{_CURL}(?!{_LOOPBACK})\S+ port", output):
        why = "an address was dialled directly, and inside there is no route"
        return _ignored(ended, why, "SOCKS5 at that address")
    return None


def _ignored(ended: Ended, why: str, socks: str) -> Hint:
    """For a client that knows no proxy, or was told to leave it out."""
    own = f"have the client use {ended.proxy_url}, or {socks}"
    for sign, option in _LIBRARIES:
        if sign in ended.output:
            own = f"{option}, and it asks the proxy"
    if ended.uncaptured == "off":
        return Hint("proxy_ignored", f"{why}. {_CAPTURE} captures its connections; or {own}", _CAPTURE)
    return Hint("proxy_ignored", f"{why}: {own}")


def _socks(ended: Ended, why: str) -> Hint | None:
    """For a client that was told to look names up itself before it asks the proxy."""
    text = f"{ended.command}\n{ended.output}"
    for pattern, wrong, right in _SOCKS:
        if re.search(pattern, text):
            also = "" if right == "socks5h://" else " (socks5h:// in a URL)"
            said = f"{why}, and {wrong} leaves that to the client: write {right}{also} in place of {wrong}"
            return Hint("socks5", said, right)
    return None


def _loopback(port: str, ended: Ended) -> Hint | None:
    if not port or not 0 < int(port) < 1 << 16:
        return Hint("loopback", f"{_ELSEWHERE}. --allow-loopback PORT {_APPEARS}", "--allow-loopback PORT")
    number = int(port)
    if ended.loopback is None or number in ended.loopback:
        return None  # granted, and nobody listens there
    grant = f"--allow-loopback {port}"
    if (listening := ended.listening()) is not None and number not in listening:
        return Hint("loopback", f"{_ELSEWHERE}, and nothing listens on its port {port} now. {grant} {_APPEARS}", grant)
    return Hint("loopback", f"{_ELSEWHERE}. {grant} {_APPEARS}", grant)


def _refused_loopback(ended: Ended, proxy_url: str) -> str | None:
    """The port of the host's loopback that was dialled, "" where it is not told; None where none was, or it was the
    proxy's."""
    told = _has(ended.output, _REFUSED)
    if not told and _CURL not in ended.output:
        return None
    for line in ended.output.splitlines():
        if (_has(line, _REFUSED) or _CURL in line) and (found := re.search(_LOOPBACK + _PORT, line)) is not None:
            # a sandboxed client that does not reach the proxy itself is no client that goes round it
            return None if proxy_url.endswith(f":{found[1]}") else found[1]
    # a bare traceback: the address is in another line or in the command, and where it may be of several it is of none
    if told and (not ended.uncaptured or re.search(_LOOPBACK, ended.output)):
        # where everything else is captured, and answered, only loopback refuses
        ports = set(re.findall(_LOOPBACK + _PORT, f"{ended.command}\n{ended.output}"))
        return ports.pop() if len(ports) == 1 else ""
    return None


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)

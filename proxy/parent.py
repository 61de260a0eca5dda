"""The upstream (corporate) proxy's URL. Credentials stand in no record, message or repr."""

from __future__ import annotations

from doorward.allowlists.host import Host, MalformedHost, authority_text, parse_host_port
from doorward.named_tuple import NamedTuple

_DEFAULT_PORTS = {"http": 80, "https": 443}


class MalformedParent(ValueError):
    """`network.upstream_proxy` is no URL of a proxy. The text repeats nothing of it: it may hold a password."""


class Parent(NamedTuple):
    """An upstream proxy. `authorization` is the value of Proxy-Authorization, b"" for none."""

    scheme: str
    host: Host
    port: int
    authorization: bytes

    @property
    def text(self) -> str:
        """For records and messages: without credentials."""
        return f"{self.scheme}://{authority_text(self.host, self.port)}"

    def __repr__(self) -> str:
        return f"Parent({self.text!r})"


def parse_parent(url: str) -> Parent:
    """`http[s]://[user[:password]@]host[:port][/]`, user and password percent-encoded. Raises MalformedParent."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _DEFAULT_PORTS:
        raise MalformedParent("The upstream proxy must be given as http://HOST:PORT or https://HOST:PORT.")
    credentials, at, authority = rest.rpartition("@")
    if authority.endswith("/"):
        authority = authority[:-1]
    try:
        host, port = parse_host_port(authority, _DEFAULT_PORTS[scheme])
    except MalformedHost as error:
        raise MalformedParent(f"The host of the upstream proxy is malformed: {error}.") from None
    authorization = b""
    if at:
        user, _, password = credentials.partition(":")
        pair = _unquoted(user) + b":" + _unquoted(password)
        import binascii

        authorization = b"Basic " + binascii.b2a_base64(pair, newline=False)
    return Parent(scheme, host, port, authorization)


def _unquoted(text: str) -> bytes:
    first, *rest = text.encode("utf-8", "surrogateescape").split(b"%")
    out = [first]
    for part in rest:
        try:
            out.append(bytes((int(part[:2].decode("ascii"), 16),)) + part[2:])
        except ValueError:
            raise MalformedParent("The credentials of the upstream proxy have a broken percent escape.") from None
    return b"".join(out)

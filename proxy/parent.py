"""The upstream (corporate) proxy: its URL, and tunnels through it.

Which way a connection takes is the configuration's to say, never a client's. Credentials stand in no record, message or
repr. An address judged here is sent as a literal, so the parent has nothing to resolve; only a name listed in
`upstream_resolves` goes by name.
"""

from __future__ import annotations

import binascii
from typing import NamedTuple

from doorward.allowlists.host import Host, MalformedHost, authority_text, parse_host_port
from doorward.proxy.channel import Channel
from doorward.proxy.http1_message import BadMessage, Raw, ResponseHead
from doorward.proxy.http1_response import ResponseReader
from doorward.proxy.http1_write import connect_head_for_parent
from doorward.proxy.limits import Limits
from doorward.proxy.loop import DeadlinePassed

_DEFAULT_PORTS = {"http": 80, "https": 443}


class MalformedParent(ValueError):
    """`network.upstream_proxy` is no URL of a proxy. The text repeats nothing of it: it may hold a password."""


class ParentFailed(Exception):
    """The upstream proxy did not open the tunnel; the text says why, with its status where it gave one."""


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


async def open_tunnel(
    channel: Channel, parent: Parent, host: Host, port: int, limits: Limits, deadline: float
) -> bytes:
    """Have the parent at the other end of `channel` open a tunnel; gives what the far end said already. Raises
    ParentFailed."""
    authority = authority_text(host, port)
    reader = ResponseReader("CONNECT", limits=limits)
    early = b""
    head: ResponseHead | None = None
    try:
        await channel.send(connect_head_for_parent(authority.encode("ascii"), parent.authorization), deadline)
        while head is None:
            data = await channel.recv(deadline=deadline)
            for event in reader.feed(data) if data else reader.eof():
                if isinstance(event, ResponseHead) and event.status >= 200 and head is None:
                    head = event
                elif isinstance(event, Raw):
                    early += event.data
    except BadMessage as error:
        raise ParentFailed(f"The upstream proxy {parent.text} answered badly: {error.sentence}") from None
    except DeadlinePassed:
        raise ParentFailed(f"The upstream proxy {parent.text} did not answer in time.") from None
    except OSError as error:
        raise ParentFailed(f"The upstream proxy {parent.text} broke the connection: {error.strerror}.") from None
    if head.status >= 300:
        raise ParentFailed(f"The upstream proxy {parent.text} answered {head.status} to CONNECT {authority}.")
    if _has_body(head):
        raise ParentFailed(
            f"The upstream proxy {parent.text} answered {head.status} to CONNECT {authority}, but with a body."
        )
    return early


def _has_body(head: ResponseHead) -> bool:
    for name, value in head.headers:
        key = name.lower()
        if key == b"transfer-encoding" or (key == b"content-length" and value.strip(b"0 \t")):
            return True
    return False

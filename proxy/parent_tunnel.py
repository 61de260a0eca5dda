"""A tunnel through the upstream proxy.

Which way a connection takes is the configuration's to say, never a client's. An address judged here is sent as a
literal, so the parent has nothing to resolve; only a name listed in `upstream_resolves` goes by name.
"""

from __future__ import annotations

from doorward.allowlists.host import Host, authority_text
from doorward.proxy.channel import Channel
from doorward.proxy.http1_message import BadMessage, Raw, ResponseHead
from doorward.proxy.http1_response import ResponseReader
from doorward.proxy.http1_write import connect_head_for_parent
from doorward.proxy.limits import Limits
from doorward.proxy.parent import Parent
from doorward.proxy.task import DeadlinePassed


class ParentFailed(Exception):
    """The upstream proxy did not open the tunnel; the text says why, with its status where it gave one."""


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

"""Connects to an admitted host: to one of the judged addresses, or through the upstream proxy. Nothing else dials."""

from __future__ import annotations

from doorward.allowlists.host import Name, address_host, host_text
from doorward.named_tuple import NamedTuple
from doorward.proxy.admission import Located, Unreachable, Way
from doorward.proxy.channel import Channel
from doorward.proxy.dial import DialFailed, begin_one, dial, finish_one
from doorward.proxy.parent import Parent
from doorward.proxy.parent_tunnel import ParentFailed, open_tunnel
from doorward.proxy.policy import Policy
from doorward.proxy.resolver import IP, LookupFailed, LookupTimedOut
from doorward.proxy.task import DeadlinePassed


class Connected(NamedTuple):
    """`early`: what the far end said before it was asked. `parent`: the upstream proxy in between. `absolute`: the
    channel leads to that proxy itself, which takes requests in absolute form."""

    channel: Channel
    address: IP | None
    parent: Parent | None = None
    early: bytes = b""
    absolute: bool = False


async def connect(way: Way, policy: Policy, located: Located, *, absolute: bool = False) -> Connected:
    """Connect to an admitted host, through the parent where there is one; with `absolute` a name that only the parent
    can resolve gets a channel to the parent itself. Raises Unreachable."""
    parent = policy.parent
    try:
        if parent is None:
            addresses, port, seconds = located.addresses, located.decision.port, policy.limits.dial_time
            if len(addresses) == 1:  # most often
                ip = addresses[0]
                channel = begin_one(way.loop, way.dialler, ip, port)
                if not channel.can_write:
                    await finish_one(channel, ip, port, seconds)
            else:
                channel, ip = await dial(way.loop, way.dialler, addresses, port, seconds)
            return Connected(channel, ip, None, b"", False)
        return await _connect_through(way, policy, parent, located, absolute)
    except (DialFailed, ParentFailed) as error:
        raise Unreachable(502, "upstream-failed", str(error)) from None


async def _connect_through(way: Way, policy: Policy, parent: Parent, located: Located, absolute: bool) -> Connected:
    limits = policy.limits
    deadline = way.loop.now + limits.dial_time
    addresses = policy.rules.pin(parent.host)
    if not addresses:
        assert isinstance(parent.host, Name)
        try:
            addresses = await way.resolver.resolve(parent.host, limits.resolve_time)
        except (LookupFailed, LookupTimedOut) as error:
            raise ParentFailed(f"The upstream proxy cannot be found: {error}") from None
    if way.own.any_of(addresses, parent.port) is not None:
        raise ParentFailed("The upstream proxy is this proxy itself.")
    channel, _ = await dial(way.loop, way.dialler, addresses, parent.port, limits.dial_time)
    try:
        if parent.scheme == "https":
            from doorward.proxy.tls_channel import TlsChannel  # ssl costs 14-30 ms to import

            channel = secure = TlsChannel(channel, host_text(parent.host))
            try:
                await secure.handshake(deadline)
            except DeadlinePassed:
                raise ParentFailed(f"The upstream proxy {parent.text} did not answer in time.") from None
            except OSError as error:
                raise ParentFailed(f"No TLS with the upstream proxy {parent.text}: {error.strerror}.") from None
        decision = located.decision
        if not located.addresses:
            if absolute:
                return Connected(channel, None, parent, absolute=True)
            early = await open_tunnel(channel, parent, decision.host, decision.port, limits, deadline)
            return Connected(channel, None, parent, early)
        ip = located.addresses[0]
        early = await open_tunnel(channel, parent, address_host(ip), decision.port, limits, deadline)
        return Connected(channel, ip, parent, early)
    except BaseException:
        channel.close()
        raise

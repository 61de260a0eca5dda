"""The way from a name asked for to a connection: decide by name, look up once, judge each address, dial a judged one.

The one place for it: plain requests, CONNECT and SOCKS5 all come through here, and nothing else dials. A denied name
causes no look-up; what is dialled is an address that was judged; nothing is ever resolved twice.
"""

from __future__ import annotations

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Name, address_host, authority_text, host_text
from doorward.named_tuple import NamedTuple
from doorward.proxy.asking import Asking, Question
from doorward.proxy.channel import Channel
from doorward.proxy.dial import DialFailed, Dialler, dial, dial_one
from doorward.proxy.loop import Loop
from doorward.proxy.own_listeners import OwnListeners
from doorward.proxy.parent import Parent
from doorward.proxy.parent_tunnel import ParentFailed, open_tunnel
from doorward.proxy.policy import Policy
from doorward.proxy.resolver import IP, LookupFailed, LookupTimedOut, Resolver
from doorward.proxy.task import DeadlinePassed


class NotAdmitted(Exception):
    """The door says no; `decision` says why."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.message)
        self.decision = decision


class Unreachable(Exception):
    """The door said yes, and the way there failed: 502 or 504, never dressed up as a refusal."""

    def __init__(self, status: int, error_class: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.error_class = error_class
        self.sentence = sentence


class Located(NamedTuple):
    """Where an admitted host is: addresses that may be dialled, none where the parent is to resolve the name."""

    decision: Decision
    addresses: tuple[IP, ...]


class Connected(NamedTuple):
    """`early`: what the far end said before it was asked. `parent`: the upstream proxy in between. `absolute`: the
    channel leads to that proxy itself, which takes requests in absolute form."""

    channel: Channel
    address: IP | None
    parent: Parent | None = None
    early: bytes = b""
    absolute: bool = False


class Way:
    """How the process reaches the world; shared by all its runs."""

    def __init__(self, loop: Loop, resolver: Resolver, dialler: Dialler, own: OwnListeners) -> None:
        self.loop = loop
        self.resolver = resolver
        self.dialler = dialler
        self.own = own


async def settle(policy: Policy, decision: Decision, protocol: str, asking: Asking | None, client: Channel) -> Decision:
    """An allow, of the rules (`Policy.admit`) or of whoever is asked. Raises NotAdmitted, and HungUp when the client
    leaves while somebody is asked."""
    if decision.effect is Effect.ASK:
        if asking is None:
            message = f"{decision.message}, and there is nobody to ask"
            decision = decision.refused(Reason.NOT_ANSWERED, Source.DECIDER, message)
        else:
            question = Question(decision.host, decision.port, protocol, decision)
            decision = await asking.ask(policy.rules, question, client)
    if decision.effect is not Effect.ALLOW:
        raise NotAdmitted(decision)
    return decision


def located_at_once(way: Way, policy: Policy, decision: Decision) -> Located | None:
    """As `locate`, where nothing has to be looked up: an address, a name that is pinned; else None. Raises
    NotAdmitted."""
    addresses = policy.rules.pin(decision.host)
    return _judged(way, policy, decision, addresses) if addresses else None


async def locate(way: Way, policy: Policy, decision: Decision) -> Located:
    """Look up and judge. Raises NotAdmitted, Unreachable."""
    known = located_at_once(way, policy, decision)
    if known is not None:
        return known
    host = decision.host
    assert isinstance(host, Name)  # a literal is its own pin
    if policy.goes_by_name(host):
        return Located(decision, ())
    try:
        addresses = await way.resolver.resolve(host, policy.limits.resolve_time)
    except LookupFailed as error:
        raise Unreachable(502, "dns-failed", str(error)) from None
    except LookupTimedOut as error:
        raise Unreachable(504, "dns-timeout", str(error)) from None
    if not addresses:
        raise Unreachable(502, "dns-failed", f"{host.text} has no address.")
    return _judged(way, policy, decision, addresses)


def _judged(way: Way, policy: Policy, decision: Decision, addresses: tuple[IP, ...]) -> Located:
    verdict = policy.judge(decision, addresses)
    if not verdict.usable:
        raise NotAdmitted(verdict.decision)
    located = Located(decision, verdict.usable)
    not_to_itself(way, located)
    return located


def not_to_itself(way: Way, located: Located) -> None:
    """Raises NotAdmitted where the process itself listens: that may change when nothing else does."""
    decision = located.decision
    if way.own.any_of(located.addresses, decision.port) is not None:
        message = f"{authority_text(decision.host, decision.port)} is this proxy itself"
        raise NotAdmitted(decision.refused(Reason.PROXY_LOOP, Source.PROXY_STATE, message))


async def connect(way: Way, policy: Policy, located: Located, *, absolute: bool = False) -> Connected:
    """Connect to an admitted host, through the parent where there is one; with `absolute` a name that only the parent
    can resolve gets a channel to the parent itself. Raises Unreachable."""
    parent = policy.parent
    try:
        if parent is None:
            addresses, port, seconds = located.addresses, located.decision.port, policy.limits.dial_time
            if len(addresses) == 1:  # most often
                ip = addresses[0]
                channel = await dial_one(way.loop, way.dialler, ip, port, seconds)
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

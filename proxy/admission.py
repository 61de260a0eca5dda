"""The way from a name asked for to addresses that may be dialled: decide by name, look up once, judge each address.

The one place for it: plain requests, CONNECT and SOCKS5 all come through here, and what is dialled (`connecting`) comes
from here. A denied name causes no look-up; nothing is ever resolved twice.
"""

from __future__ import annotations

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Name, authority_text
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.asking import Asking
    from doorward.proxy.channel import Channel
    from doorward.proxy.dial import Dialler
    from doorward.proxy.loop import Loop
    from doorward.proxy.own_listeners import OwnListeners
    from doorward.proxy.policy import Policy
    from doorward.proxy.resolver import IP, Resolver
    from doorward.proxy.splice import PipePool


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


class Way:
    """How the process reaches the world; shared by all its runs. What it is not given is the system's own, made when it
    is first needed: many runs reach nothing."""

    def __init__(
        self,
        loop: Loop,
        own: OwnListeners,
        *,
        resolver: Resolver | None = None,
        dialler: Dialler | None = None,
        pipes: PipePool | None = None,
    ) -> None:
        self.loop = loop
        self.own = own
        self._resolver = resolver
        self._dialler = dialler
        self._pipes = pipes

    @property
    def resolver(self) -> Resolver:
        """What looks names up."""
        if self._resolver is None:
            from doorward.proxy.resolver import SystemResolver

            self._resolver = SystemResolver(self.loop)
        return self._resolver

    @property
    def dialler(self) -> Dialler:
        """What starts connections."""
        if self._dialler is None:
            from doorward.proxy.dial import SocketDialler

            self._dialler = SocketDialler()
        return self._dialler

    @property
    def pipes(self) -> PipePool:
        """What bytes are moved through."""
        if self._pipes is None:
            from doorward.proxy.splice import PipePool

            self._pipes = PipePool()
        return self._pipes

    def close(self) -> None:
        """Give back what was kept for the next use."""
        if self._pipes is not None:
            self._pipes.close()


async def settle(policy: Policy, decision: Decision, protocol: str, asking: Asking | None, client: Channel) -> Decision:
    """An allow, of the rules (`Policy.admit`) or of whoever is asked. Raises NotAdmitted, and HungUp when the client
    leaves while somebody is asked."""
    if decision.effect is Effect.ASK:
        if asking is None:
            message = f"{decision.message}, and there is nobody to ask"
            decision = decision.refused(Reason.NOT_ANSWERED, Source.DECIDER, message)
        else:
            from doorward.proxy.asking import Question  # nobody is asked without one

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
    from doorward.proxy.resolver import LookupFailed, LookupTimedOut

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

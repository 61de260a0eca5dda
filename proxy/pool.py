"""Idle upstream connections that may serve another request, one pool a run.

A connection is kept for the host and port it was asked for, and remembers the address it leads to: a request may only
use it where that address would be dialled now. The loop keeps watching it, so an end or unexpected bytes from the
server show before it is taken again.
"""

from __future__ import annotations

from doorward.allowlists.decision import Decision
from doorward.allowlists.host import Host
from doorward.allowlists.ruleset import RuleSet
from doorward.proxy.connecting import Connected
from doorward.proxy.loop import Loop
from doorward.proxy.policy import Policy

FRESH = 1.0
"""Seconds within which a request that cannot be repeated may use an idle connection: servers close connections that
are idle, and such a request must not meet one that is just being closed (RFC 9112 §9.3.1)."""


class Upstream:
    """A connection to a server, or to the upstream proxy on the way to it."""

    __slots__ = ("_idle_since", "_rules", "connected", "key")

    def __init__(self, key: tuple[Host, int], connected: Connected, rules: RuleSet) -> None:
        self.key = key
        self.connected = connected
        self._rules = rules  # by which its address was judged
        self._idle_since = 0.0

    def may_serve(self, policy: Policy, decision: Decision) -> bool:
        """Whether the rules in force would lead a request of `decision` to this very address."""
        connected = self.connected
        if connected.parent is not policy.parent:
            return False
        if self._rules is not policy.rules:
            if connected.address is None:
                if not policy.goes_by_name(decision.host):
                    return False
            else:
                pinned = policy.rules.pin(decision.host)
                if pinned and connected.address not in pinned:
                    return False
                if not policy.judge(decision, (connected.address,)).usable:
                    return False
            self._rules = policy.rules
        return True


class UpstreamPool:
    """Keeps at most `most` connections, each for `seconds`."""

    def __init__(self, loop: Loop, most: int, seconds: float) -> None:
        self._loop = loop
        self._most = most
        self._seconds = seconds
        self._idle: dict[tuple[Host, int], list[Upstream]] = {}
        self._count = 0

    def take(self, policy: Policy, decision: Decision, *, repeatable: bool) -> Upstream | None:
        """An idle connection for the decision's host and port, or None."""
        key = (decision.host, decision.port)
        kept = self._idle.get(key)
        while kept:
            upstream = kept.pop()
            self._count -= 1
            channel = upstream.connected.channel
            age = self._loop.now - upstream._idle_since
            if (
                not channel.can_read
                and age < self._seconds
                and (repeatable or age < FRESH)
                and upstream.may_serve(policy, decision)
            ):
                return upstream
            channel.close()
        return None

    def give(self, upstream: Upstream) -> None:
        """Keep a connection whose last response is whole."""
        channel = upstream.connected.channel
        try:
            quiet = channel.try_recv(1) is None
        except OSError:
            quiet = False
        if not quiet or self._count >= self._most:
            channel.close()
            return
        channel.watch()
        upstream._idle_since = self._loop.now
        self._idle.setdefault(upstream.key, []).append(upstream)
        self._count += 1

    def sweep(self) -> None:
        """Close what was idle for too long, or was ended by its server."""
        oldest = self._loop.now - self._seconds
        for key, kept in list(self._idle.items()):
            good = [each for each in kept if each._idle_since > oldest and not each.connected.channel.can_read]
            for upstream in kept:
                if upstream not in good:
                    upstream.connected.channel.close()
                    self._count -= 1
            if good:
                self._idle[key] = good
            else:
                del self._idle[key]

    def close(self) -> None:
        """Close all of them."""
        for kept in self._idle.values():
            for upstream in kept:
                upstream.connected.channel.close()
        self._idle.clear()
        self._count = 0

    def __len__(self) -> int:
        return self._count

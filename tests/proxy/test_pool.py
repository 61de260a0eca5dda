"""Idle upstream connections: which are taken again, which are not, and that none is kept for ever."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

import pytest

from doorward.allowlists.host import Name
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet
from doorward.proxy.channel import Channel
from doorward.proxy.connecting import Connected
from doorward.proxy.loop import Loop
from doorward.proxy.parent import parse_parent
from doorward.proxy.policy import Policy
from doorward.proxy.pool import FRESH, Upstream, UpstreamPool

Pair = Callable[[], tuple[Channel, Channel]]
PUBLIC = ip_address("93.184.216.34")
HOST = Name("a.test")


def policy(*allow: str, deny: tuple[str, ...] = (), hosts: dict[str, str] | None = None, parent: str = "") -> Policy:
    origin = Origin("flag", "--allow")
    rules = RuleSet.build(
        [parse_rule(rule, "allow", origin) for rule in allow],
        [parse_rule(rule, "deny", origin) for rule in deny],
        hosts=hosts or {},
    )
    return Policy(rules, parent=parse_parent(parent) if parent else None)


class Kept:
    """A pool with one idle connection in it."""

    def __init__(self, loop: Loop, pair: Pair) -> None:
        self.loop = loop
        self.policy = policy("a.test")
        self.pool = UpstreamPool(loop, 2, 30)
        self.channel, self.peer = pair()
        self.upstream = Upstream((HOST, 80), Connected(self.channel, PUBLIC), self.policy.rules)
        self.pool.give(self.upstream)

    def take(self, policy: Policy | None = None, *, repeatable: bool = True, port: int = 80) -> Upstream | None:
        policy = policy or self.policy
        return self.pool.take(policy, policy.decide(HOST, port), repeatable=repeatable)


@pytest.fixture
def kept(loop: Loop, pair: Pair) -> Kept:
    return Kept(loop, pair)


def pass_time(loop: Loop, seconds: float) -> None:
    loop.run(loop.sleep(seconds))


def test_taken_once_for_its_host_and_port(kept: Kept) -> None:
    assert kept.take(port=8080) is None
    assert kept.take() is kept.upstream
    assert kept.take() is None
    assert len(kept.pool) == 0


def test_an_end_by_the_server_shows_before_it_is_taken(kept: Kept) -> None:
    kept.peer.close()
    pass_time(kept.loop, 0.01)
    assert kept.take() is None
    assert kept.channel.fd == -1


def test_unexpected_bytes_show_too(kept: Kept) -> None:
    kept.peer.try_send(b"HTTP/1.1 200 OK\r\n\r\n")
    pass_time(kept.loop, 0.01)
    assert kept.take() is None


def test_bytes_that_are_there_when_it_is_given_back(loop: Loop, pair: Pair) -> None:
    pool = UpstreamPool(loop, 2, 30)
    channel, peer = pair()
    peer.try_send(b"x")
    pool.give(Upstream((HOST, 80), Connected(channel, PUBLIC), policy("a.test").rules))
    assert len(pool) == 0
    assert channel.fd == -1


def test_too_old_is_not_taken(kept: Kept) -> None:
    pass_time(kept.loop, 31)
    assert kept.take() is None


def test_what_cannot_be_repeated_takes_only_a_fresh_one(loop: Loop, pair: Pair) -> None:
    fresh, old = Kept(loop, pair), Kept(loop, pair)
    assert fresh.take(repeatable=False) is fresh.upstream
    pass_time(loop, FRESH + 0.1)
    assert old.take(repeatable=False) is None


@pytest.mark.parametrize(
    ("after", "taken"),
    [
        (policy("a.test", "b.test"), True),
        (policy("a.test", deny=("93.184.216.34",)), False),
        (policy("a.test", hosts={"a.test": "93.184.216.34"}), True),
        (policy("a.test", hosts={"a.test": "192.0.2.1"}), False),
        (policy("a.test", parent="http://proxy.test:3128"), False),
    ],
)
def test_after_a_reload_the_address_is_judged_again(kept: Kept, after: Policy, taken: bool) -> None:
    assert (kept.take(after) is kept.upstream) is taken


def test_no_more_than_the_limit(loop: Loop, pair: Pair) -> None:
    rules = policy("a.test").rules
    pool = UpstreamPool(loop, 2, 30)
    channels = [pair()[0] for _ in range(3)]
    for channel in channels:
        pool.give(Upstream((HOST, 80), Connected(channel, PUBLIC), rules))
    assert len(pool) == 2
    assert [channel.fd == -1 for channel in channels] == [False, False, True]
    pool.close()
    assert all(channel.fd == -1 for channel in channels)


def test_a_sweep_closes_what_is_old_or_ended(loop: Loop, pair: Pair) -> None:
    old = Kept(loop, pair)
    pass_time(loop, 20)
    good, ended = pair(), pair()
    for channel, _ in (good, ended):
        old.pool._most = 10
        old.pool.give(Upstream((Name("b.test"), 80), Connected(channel, PUBLIC), old.policy.rules))
    ended[1].close()
    pass_time(loop, 15)
    old.pool.sweep()
    assert len(old.pool) == 1
    assert old.channel.fd == ended[0].fd == -1
    assert good[0].fd != -1

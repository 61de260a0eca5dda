"""Requests as a stream: order, deadlines of heads, bodies, and errors in their turn."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from doorward.allowlists.ruleset import RuleSet
from doorward.proxy.channel import Channel
from doorward.proxy.http1 import BadMessage, Body, End
from doorward.proxy.limits import DEFAULT
from doorward.proxy.loop import Group, Loop
from doorward.proxy.policy import Policy
from doorward.proxy.request_stream import RequestStream
from doorward.proxy.server import Server

Pair = Callable[[], tuple[Channel, Channel]]
GET = b"GET http://a.test/%d HTTP/1.1\r\nHost: a.test\r\n\r\n"


def stream(loop: Loop, channel: Channel, first: bytes) -> RequestStream:
    door = cast(Server, SimpleNamespace(policy=Policy(RuleSet.build([], []))))
    return RequestStream(door, channel, first, loop.now + DEFAULT.head_time)


async def targets(requests: RequestStream) -> list[bytes]:
    """The targets of all requests without a body, to the end."""
    found = []
    head = await requests.next_head()
    while head is not None:
        found.append(head.target[-1:])
        assert isinstance(requests.events.popleft(), End)
        head = await requests.next_head()
    return found


def test_requests_come_in_order_however_they_are_cut(loop: Loop, pair: Pair) -> None:
    ours, theirs = pair()
    raw = GET % 1 + GET % 2 + GET % 3

    async def main() -> list[bytes]:
        async with Group(loop) as group:
            task = group.start(targets(stream(loop, ours, raw[:1])))
            for byte in raw[1:]:
                await theirs.send(bytes([byte]))
                await loop.turn()
            theirs.end()
        return await task.wait()

    assert loop.run(main()) == [b"1", b"2", b"3"]


def test_nothing_is_read_while_events_are_left(loop: Loop, pair: Pair) -> None:
    ours, theirs = pair()

    async def main() -> bytes | None:
        requests = stream(loop, ours, GET % 1 + GET % 2)
        await theirs.send(GET % 3)
        await requests.next_head()
        requests.events.popleft()
        await requests.next_head()
        return ours.try_recv()

    assert loop.run(main()) == GET % 3


@pytest.mark.parametrize("first", [True, False])
def test_a_head_that_drips_is_408_in_time(loop: Loop, pair: Pair, first: bool) -> None:
    ours, theirs = pair()

    async def drip() -> None:
        for byte in GET % 1 * 5:
            await loop.sleep(5)
            await theirs.send(bytes([byte]))

    async def main() -> float:
        requests = stream(loop, ours, b"G" if first else GET % 0)
        async with Group(loop) as group:
            if not first:
                await requests.next_head()
                requests.events.popleft()
            dripping = group.start(drip())
            start = loop.now
            with pytest.raises(BadMessage) as caught:
                await requests.next_head()
            assert caught.value.status == 408
            dripping.cancel()
            return loop.now - start

    took = loop.run(main())
    assert took == pytest.approx(DEFAULT.head_time if first else 5 + DEFAULT.head_time)


def test_an_idle_client_is_let_go_without_an_error(loop: Loop, pair: Pair) -> None:
    ours, _ = pair()

    async def main() -> float:
        requests = stream(loop, ours, GET % 1)
        await requests.next_head()
        requests.events.popleft()
        start = loop.now
        assert await requests.next_head() is None
        return loop.now - start

    assert loop.run(main()) == pytest.approx(DEFAULT.idle_time)


def test_an_error_waits_for_its_turn(loop: Loop, pair: Pair) -> None:
    ours, _ = pair()

    async def main() -> None:
        requests = stream(loop, ours, GET % 1 + b"nonsense\r\n\r\n")
        assert await requests.next_head() is not None
        requests.events.popleft()
        with pytest.raises(BadMessage):
            await requests.next_head()

    loop.run(main())


def test_an_end_inside_a_head_or_a_body_is_an_error(loop: Loop, pair: Pair) -> None:
    async def main(raw: bytes, heads: int) -> None:
        ours, theirs = pair()
        theirs.end()
        requests = stream(loop, ours, raw)
        if heads:
            await requests.next_head()
        with pytest.raises(BadMessage):
            await (requests.more(loop.now + 5) if heads else requests.next_head())

    loop.run(main(b"GET http", 0))
    loop.run(main(b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n", 1))


def test_after_a_renewal_the_next_request_is_read(loop: Loop, pair: Pair) -> None:
    ours, theirs = pair()

    async def main() -> bytes:
        raw = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\nabc"
        requests = stream(loop, ours, raw)
        await requests.next_head()
        assert requests.events.popleft() == Body(b"abc")
        requests.renew()
        await theirs.send(GET % 2)
        head = await requests.next_head()
        assert head is not None
        return head.target

    assert loop.run(main()).endswith(b"/2")

"""Channels: trying, waiting, ending, and the last answer that must arrive."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from doorward.proxy.channel import Channel, do_not_pace, linger, tune
from doorward.proxy.loop import Group, Loop
from doorward.proxy.task import DeadlinePassed

Pair = Callable[[], tuple[Channel, Channel]]


def test_trying_never_waits_and_says_what_would_block(loop: Loop, pair: Pair) -> None:
    left, right = pair()
    assert left.try_recv() is None
    assert not left.can_read
    assert right.try_send(b"abc") == 3
    assert left.try_recv() is None  # nobody said that it may be read again
    left.can_read = True
    assert left.try_recv() == b"abc"
    taken = 0
    while sent := right.try_send(b"x" * 100_000):
        taken += sent
    assert not right.can_write
    assert taken > 0


def test_a_short_read_after_a_hang_up_keeps_the_end_in_sight(loop: Loop, pair: Pair) -> None:
    left, right = pair()
    right.try_send(b"last")
    right.close()
    left.hung_up = True  # as the loop notes it together with the bytes
    assert left.try_recv() == b"last"
    assert left.try_recv() == b""


def test_send_ends_at_its_deadline_when_nobody_reads(loop: Loop, pair: Pair) -> None:
    left, _ = pair()

    async def main() -> None:
        with pytest.raises(DeadlinePassed):
            await left.send(b"x" * 10_000_000, loop.now + 30)

    loop.run(main())


def test_closing_twice_and_aborting_are_harmless(loop: Loop, pair: Pair) -> None:
    left, right = pair()
    left.end()
    left.abort()
    left.close()
    left.end()
    assert right.try_recv() == b""


def test_linger_drops_what_still_comes_until_the_client_ends(loop: Loop, pair: Pair) -> None:
    left, right = pair()

    async def client() -> bytes:
        await right.send(b"late bytes" * 1000)
        data = await right.recv()
        end = await right.recv()
        right.close()
        return data + end

    async def main() -> bytes:
        async with Group(loop) as group:
            other = group.start(client())
            await left.send(b"answer")
            await linger(left, loop.now + 5, 1_000_000)
        left.close()
        return await other.wait()

    start = loop.now
    assert loop.run(main()) == b"answer"
    assert loop.now == start


def test_linger_is_bounded_in_time(loop: Loop, pair: Pair) -> None:
    left, right = pair()

    async def main() -> float:
        start = loop.now
        await right.send(b"x" * 100)
        await linger(left, start + 5, 1_000_000)
        return loop.now - start

    assert loop.run(main()) == pytest.approx(5)


def test_linger_is_bounded_in_bytes(loop: Loop, pair: Pair) -> None:
    left, right = pair()

    async def main() -> float:
        start = loop.now
        async with Group(loop) as group:
            sending = group.start(right.send(b"x" * 20_000_000))
            await linger(left, start + 5, 3_000_000)
            sending.cancel()
        return loop.now - start

    assert loop.run(main()) == 0


def test_tune_is_harmless_on_a_socket_that_is_not_tcp(loop: Loop, pair: Pair) -> None:
    left, _ = pair()
    tune(left.sock)


def test_tuned_listeners_pass_it_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tune(listener)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="only Linux lets it be chosen")
def test_what_stays_on_the_machine_is_not_paced() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        do_not_pace(listener)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == b"reno"

"""Flows: every byte in order, by splice and by copying, with back-pressure, bounded turns and clean ends."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator

import pytest

from doorward.proxy.channel import READ_SIZE, Channel
from doorward.proxy.loop import Group, Loop
from doorward.proxy.splice import LARGE_PIPES, PIPE_SIZE, Flow, PipePool
from doorward.proxy.task import DeadlinePassed

Pair = Callable[[], tuple[Channel, Channel]]
BIG = os.urandom(5_000_000)


@pytest.fixture(params=[True, False], ids=["splice", "copy"])
def pipes(request: pytest.FixtureRequest) -> Iterator[PipePool]:
    pool = PipePool(usable=request.param)
    yield pool
    pool.close()


async def read_all(channel: Channel) -> bytes:
    got = bytearray()
    while data := await channel.recv():
        got += data
    return bytes(got)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_bytes_arrive_whole_in_order_and_with_their_end(loop: Loop, pair: Pair, pipes: PipePool) -> None:
    writer, source = pair()
    sink, reader = pair()
    flow = Flow(source, sink, pipes)

    async def write() -> None:
        await writer.send(BIG)
        writer.end()

    async def main() -> bytes:
        async with Group(loop) as group:
            group.start(write())
            group.start(flow.run(loop, 60))
            reading = group.start(read_all(reader))
        return await reading.wait()

    got = loop.run(main())
    assert hashlib.sha256(got).digest() == hashlib.sha256(BIG).digest()
    assert flow.moved == len(BIG)
    assert flow.done
    assert flow.broken is None


def test_nothing_is_read_while_the_sink_takes_nothing(loop: Loop, pair: Pair, pipes: PipePool) -> None:
    """Back-pressure: what the flow holds is bounded by a pipe, whatever the source has."""
    writer, source = pair()
    sink, _ = pair()
    flow = Flow(source, sink, pipes)

    async def write() -> None:
        with pytest.raises(DeadlinePassed):
            await writer.send(BIG * 4, loop.now + 100)

    async def main() -> None:
        async with Group(loop) as group:
            group.start(write())

            async def run() -> None:
                with pytest.raises(DeadlinePassed):
                    await flow.run(loop, 30)

            group.start(run())

    loop.run(main())
    assert 0 < flow.moved < len(BIG)
    assert flow.broken is None


def test_a_turn_is_bounded(loop: Loop, pair: Pair, pipes: PipePool) -> None:
    writer, source = pair()
    sink, _ = pair()
    writer.try_send(BIG)
    flow = Flow(source, sink, pipes)
    assert flow.turn(50_000)
    assert flow.moved >= 50_000
    assert flow.moved < 50_000 + 2 * READ_SIZE


def test_what_was_read_before_goes_first(loop: Loop, pair: Pair, pipes: PipePool) -> None:
    writer, source = pair()
    sink, reader = pair()
    writer.try_send(b" world")
    writer.end()
    flow = Flow(source, sink, pipes)
    flow.begin_with(b"hello")
    loop.run(flow.run(loop, 60))
    assert reader.try_recv() == b"hello world"


def test_with_a_length_it_stops_there_and_leaves_the_rest(loop: Loop, pair: Pair, pipes: PipePool) -> None:
    writer, source = pair()
    sink, reader = pair()
    length = 3 * READ_SIZE + 17

    async def main() -> bytes:
        flow = Flow(source, sink, pipes, length)
        async with Group(loop) as group:
            group.start(writer.send(BIG[:length] + b"next message"))
            group.start(flow.run(loop, 60))
        assert flow.done
        assert not flow.short
        assert flow.moved == length
        sink.end()
        return await read_all(reader)

    assert loop.run(main()) == BIG[:length]
    source.can_read = True
    assert source.try_recv() == b"next message"


def test_an_end_before_the_length_is_short_and_not_passed_on(loop: Loop, pair: Pair, pipes: PipePool) -> None:
    writer, source = pair()
    sink, reader = pair()
    writer.try_send(b"half")
    writer.close()
    flow = Flow(source, sink, pipes, 100)
    loop.run(flow.run(loop, 60))
    assert flow.done
    assert flow.short
    assert reader.try_recv() == b"half"
    reader.can_read = True
    assert reader.try_recv() is None


def test_a_broken_sink_is_named(loop: Loop, pair: Pair, pipes: PipePool) -> None:
    writer, source = pair()
    sink, reader = pair()
    reader.close()
    writer.try_send(b"x" * (3 * READ_SIZE))
    flow = Flow(source, sink, pipes)
    flow.turn(10_000_000)
    assert flow.done
    assert flow.broken is sink


def test_quiet_flows_hold_no_pipe_and_pipes_are_used_again(loop: Loop, pair: Pair) -> None:
    pool = PipePool()
    before = descriptors()
    for _ in range(50):
        writer, source = pair()
        sink, reader = pair()
        opened = descriptors()
        flow = Flow(source, sink, pool)
        writer.try_send(BIG[: 4 * READ_SIZE])
        flow.turn(10_000_000)
        assert flow.moved == 4 * READ_SIZE
        assert descriptors() - opened <= 2  # the pool's one pipe, the first time
        for channel in (writer, source, sink, reader):
            channel.close()
    assert descriptors() == before + 2
    pool.close()
    assert descriptors() == before


def test_a_flow_that_ends_with_bytes_in_its_pipe_loses_the_pipe(loop: Loop, pair: Pair) -> None:
    """Bytes of one connection must never turn up in another."""
    pool = PipePool()
    writer, source = pair()
    sink, _ = pair()
    flow = Flow(source, sink, pool)
    for _ in range(20):
        writer.can_write = source.can_read = True
        writer.try_send(BIG)
        flow.turn(10_000_000)
    before = descriptors()
    assert flow._held
    flow.close()
    assert descriptors() == before - 2
    assert pool._idle == []
    pool.close()


def test_only_so_many_pipes_are_large() -> None:
    """A client that never reads must not pin a megabyte for each of its tunnels."""
    pool = PipePool()
    pipes = [pool.take() for _ in range(LARGE_PIPES + 3)]
    sizes = [pipe.size for pipe in pipes if pipe is not None]
    assert len(sizes) == len(pipes)
    assert set(sizes[LARGE_PIPES:]) == {min(sizes)}
    assert min(sizes) < PIPE_SIZE
    for pipe in pipes:
        assert pipe is not None
        pool.give(pipe, 1)
    assert pool._open == 0
    again = pool.take()
    assert again is not None
    assert again.size == max(sizes)
    pool.give(again, 0)
    pool.close()
    assert pool._open == 0


def test_without_pipes_to_be_had_it_copies(loop: Loop, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = PipePool()
    monkeypatch.setattr(pool, "take", lambda: None)
    writer, source = pair()
    sink, reader = pair()

    async def write() -> None:
        await writer.send(BIG)
        writer.end()

    async def main() -> bytes:
        async with Group(loop) as group:
            group.start(write())
            group.start(Flow(source, sink, pool).run(loop, 60))
            reading = group.start(read_all(reader))
        return await reading.wait()

    assert loop.run(main()) == BIG

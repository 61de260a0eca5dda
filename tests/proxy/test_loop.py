"""The loop: waking, deadlines, groups, cancelling, threads, and its simulated clock."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from doorward.proxy.channel import Channel
from doorward.proxy.clock import NEVER, MonotonicClock, Stuck
from doorward.proxy.loop import Group, Loop, Promise
from doorward.proxy.task import Cancelled, DeadlinePassed, Watch

T = TypeVar("T")
Pair = Callable[[], tuple[Channel, Channel]]


async def gather(loop: Loop, *coroutines: Coroutine[Any, None, T]) -> list[T]:
    """Run all of them side by side; their values in order."""
    async with Group(loop) as group:
        tasks = [group.start(coroutine) for coroutine in coroutines]
    return [await task.wait() for task in tasks]


def test_run_gives_the_value_and_raises_the_error(loop: Loop) -> None:
    async def seven() -> int:
        return 7

    async def broken() -> int:
        raise ValueError("no")

    assert loop.run(seven()) == 7
    with pytest.raises(ValueError, match="no"):
        loop.run(broken())


def test_sleep_takes_simulated_time_only(loop: Loop) -> None:
    async def main() -> float:
        start = loop.now
        await loop.sleep(3600)
        return loop.now - start

    assert loop.run(main()) == pytest.approx(3600)


def test_sleeps_end_in_order_of_their_deadlines(loop: Loop) -> None:
    seen: list[int] = []

    async def one(seconds: int) -> None:
        await loop.sleep(seconds)
        seen.append(seconds)

    async def main() -> None:
        await gather(loop, one(3), one(1), one(2))

    loop.run(main())
    assert seen == [1, 2, 3]


def test_receive_tries_first_and_waits_only_then(loop: Loop, pair: Pair) -> None:
    async def main() -> tuple[bytes, bool, bytes, bytes]:
        left, right = pair()
        await right.send(b"now")
        first = await left.recv()
        registered = left.registered
        async with Group(loop) as group:
            later = group.start(left.recv())
            await loop.turn()
            await right.send(b"later")
            second = await later.wait()
        right.close()
        third = await left.recv()
        left.close()
        return first, registered, second, third

    assert loop.run(main()) == (b"now", False, b"later", b"")


def test_an_end_that_came_with_the_last_bytes_is_seen(loop: Loop, pair: Pair) -> None:
    """A short read clears `can_read`; the end that was already there must still be found."""

    async def main() -> list[bytes]:
        left, right = pair()
        got = []
        async with Group(loop) as group:
            reader = group.start(left.recv())
            await loop.turn()
            await right.send(b"last")
            right.close()
            got.append(await reader.wait())
            got.append(await left.recv(deadline=loop.now + 5))
        left.close()
        return got

    assert loop.run(main()) == [b"last", b""]


def test_a_wait_ends_at_its_deadline(loop: Loop, pair: Pair) -> None:
    async def main() -> float:
        left, right = pair()
        start = loop.now
        with pytest.raises(DeadlinePassed):
            await left.recv(deadline=start + 10)
        left.close()
        right.close()
        return loop.now - start

    assert loop.run(main()) == pytest.approx(10)


def test_a_later_deadline_moves_the_one_entry_of_the_heap(loop: Loop, pair: Pair) -> None:
    async def main() -> tuple[int, float]:
        left, right = pair()
        start = loop.now
        for _ in range(500):
            await right.send(b"x")
            await left.recv(1, deadline=loop.now + 10)
            with pytest.raises(DeadlinePassed):
                await left.recv(1, deadline=loop.now + 0.01)
        entries = len(loop._timers)
        with pytest.raises(DeadlinePassed):
            await left.recv(deadline=start + 60)
        left.close()
        right.close()
        return entries, loop.now - start

    entries, took = loop.run(main())
    assert entries < 200
    assert took == pytest.approx(60)


def test_finished_tasks_do_not_fill_the_heap(loop: Loop, pair: Pair) -> None:
    async def short(channel: Channel) -> None:
        await loop.wait_any((channel,), (), loop.now + 3600)

    async def main() -> int:
        for _ in range(1000):
            left, right = pair()
            async with Group(loop) as group:
                group.start(short(left))
                await loop.turn()
                right.close()
            left.close()
        return len(loop._timers)

    assert loop.run(main()) < 200


def test_an_event_and_a_deadline_in_the_same_round_is_an_event(loop: Loop, pair: Pair) -> None:
    async def main() -> bytes:
        left, right = pair()
        async with Group(loop) as group:
            reader = group.start(left.recv(deadline=loop.now + 5))
            await loop.turn()
            right.sock.send(b"just in time")
            loop._clock.slept(5, 0)
            data = await reader.wait()
        left.close()
        right.close()
        return data

    assert loop.run(main()) == b"just in time"


def test_send_waits_for_room_and_loses_nothing(loop: Loop, pair: Pair) -> None:
    data = os.urandom(3_000_000)

    async def main() -> bytes:
        left, right = pair()
        got = bytearray()

        async def read() -> None:
            while part := await right.recv():
                got.extend(part)

        async with Group(loop) as group:
            group.start(read())
            await left.send(data)
            left.close()
        right.close()
        return bytes(got)

    assert loop.run(main()) == data


def test_group_waits_for_all_its_tasks(loop: Loop) -> None:
    ended: list[int] = []

    async def one(seconds: int) -> None:
        await loop.sleep(seconds)
        ended.append(seconds)

    async def main() -> None:
        async with Group(loop) as group:
            group.start(one(1))
            group.start(one(2))

    loop.run(main())
    assert ended == [1, 2]


def test_an_error_cancels_the_others_and_the_body(loop: Loop) -> None:
    seen: list[str] = []

    async def broken() -> None:
        await loop.sleep(1)
        raise ValueError("broken")

    async def other() -> None:
        try:
            await loop.sleep(100)
        except Cancelled:
            seen.append("other")
            raise

    async def main() -> None:
        async with Group(loop) as group:
            group.start(broken())
            group.start(other())
            try:
                await loop.sleep(100)
            except Cancelled:
                seen.append("body")
                raise

    start = loop.now
    with pytest.raises(ValueError, match="broken"):
        loop.run(main())
    assert sorted(seen) == ["body", "other"]
    assert loop.now - start < 2


def test_an_error_in_the_body_cancels_the_tasks(loop: Loop) -> None:
    seen: list[str] = []

    async def other() -> None:
        try:
            await loop.sleep(100)
        finally:
            seen.append("cleaned up")

    async def main() -> None:
        async with Group(loop) as group:
            group.start(other())
            await loop.turn()
            raise KeyError("body")

    with pytest.raises(KeyError):
        loop.run(main())
    assert seen == ["cleaned up"]


def test_cancelling_the_host_ends_the_whole_group(loop: Loop) -> None:
    seen: list[str] = []

    async def inner() -> None:
        try:
            await loop.sleep(100)
        finally:
            seen.append("inner")

    async def middle() -> None:
        async with Group(loop) as group:
            group.start(inner())

    async def main() -> None:
        async with Group(loop) as group:
            task = group.start(middle())
            await loop.sleep(1)
            task.cancel()
        assert isinstance(task.error, Cancelled)

    loop.run(main())
    assert seen == ["inner"]
    assert loop.now < 1010


def test_a_task_cancelled_before_its_first_step_never_starts(loop: Loop) -> None:
    seen: list[str] = []

    async def never() -> None:
        seen.append("started")

    async def main() -> None:
        async with Group(loop) as group:
            group.start(never()).cancel()

    loop.run(main())
    assert seen == []


def test_a_task_may_cancel_itself_at_its_next_wait(loop: Loop) -> None:
    async def main() -> None:
        async with Group(loop) as group:

            async def self_ending() -> None:
                loop.current.cancel()
                await loop.sleep(100)

            task = group.start(self_ending())
        assert isinstance(task.error, Cancelled)

    loop.run(main())
    assert loop.now < 1010


def test_promise_wakes_every_waiter_once_and_keeps_its_first_value(loop: Loop) -> None:
    async def main() -> list[int]:
        promise: Promise[int] = Promise(loop)

        async def settle() -> int:
            await loop.sleep(1)
            promise.set(1)
            promise.set(2)
            return await promise.wait()

        return await gather(loop, promise.wait(), promise.wait(), settle())

    assert loop.run(main()) == [1, 1, 1]


def test_promise_raises_its_error_and_keeps_deadlines(loop: Loop) -> None:
    async def main() -> None:
        promise: Promise[int] = Promise(loop)
        with pytest.raises(DeadlinePassed):
            await promise.wait(loop.now + 1)
        promise.fail(ValueError("no"))
        with pytest.raises(ValueError, match="no"):
            await promise.wait()

    loop.run(main())


def test_promise_calls_at_once_whoever_asked_for_it(loop: Loop) -> None:
    heard: list[BaseException | None] = []
    kept: Promise[int] = Promise(loop)
    kept.then(heard.append)
    kept.then(heard.append)
    assert heard == []
    kept.set(1)
    assert heard == [None, None]
    kept.then(heard.append)
    assert heard == [None, None, None]
    lost: Promise[int] = Promise(loop)
    lost.then(heard.append)
    error = OSError("gone")
    lost.fail(error)
    lost.set(2)
    assert heard[3:] == [error]


def test_nobody_is_woken_by_what_is_sent_before_somebody_waits_to_send(loop: Loop) -> None:
    here, there = socket.socketpair()
    for each in (here, there):
        each.setblocking(False)
    watch = Watch(loop, here.fileno())

    async def talk() -> list[tuple[bool, bool]]:
        seen = []
        watch.can_read = watch.can_write = False
        there.send(b"question")
        await watch.readable(loop.now + 5)
        here.send(b"answer")
        there.recv(100)
        await loop.turn()
        seen.append((watch.can_write, watch.writing_noted))
        await watch.writable(loop.now + 5)
        watch.can_write = False
        here.send(b"more")
        there.recv(100)
        await loop.turn()
        seen.append((watch.can_write, watch.writing_noted))
        return seen

    with here, there:
        assert loop.run(talk()) == [(False, False), (True, True)]
        watch.forget()


def test_who_waits_to_write_first_is_told(loop: Loop) -> None:
    here, there = socket.socketpair()
    here.setblocking(False)
    watch = Watch(loop, here.fileno())

    async def talk() -> None:
        watch.can_write = False
        await watch.writable(loop.now + 5)

    with here, there:
        loop.run(talk())
        assert watch.writing_noted
        watch.forget()


def test_who_only_reads_is_not_woken_by_what_it_sends(loop: Loop) -> None:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    here.setblocking(False)
    watch = Watch(loop, here.fileno(), only_read=True)

    async def talk() -> bytes:
        watch.can_read = watch.can_write = False
        there.send(b"question")
        await watch.readable(loop.now + 5)
        here.send(b"answer")
        there.recv(100)
        await loop.turn()
        return here.recv(100)

    with here, there:
        assert loop.run(talk()) == b"question"
        assert not watch.can_write
        watch.forget()


def test_who_only_reads_may_wait_for_room_to_write(loop: Loop) -> None:
    here, there = socket.socketpair()
    for each in (here, there):
        each.setblocking(False)
    watch = Watch(loop, here.fileno(), only_read=True)

    def fill() -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                here.send(bytes(65536))
        watch.can_write = False

    def drain() -> None:
        with contextlib.suppress(BlockingIOError):
            while there.recv(1 << 20):
                pass

    async def talk() -> None:
        watch.can_read = False
        fill()
        with pytest.raises(DeadlinePassed):
            await watch.readable(loop.now + 0.01)  # registered by now, for reading alone
        drain()
        await loop.turn()
        assert not watch.can_write
        await watch.writable(loop.now + 5)  # there is room already
        fill()
        with pytest.raises(DeadlinePassed):
            await watch.writable(loop.now + 0.01)
        drain()
        await loop.turn()
        assert not watch.can_write

    with here, there:
        loop.run(talk())
        watch.forget()


def test_in_thread_gives_the_value_or_the_error(loop: Loop) -> None:
    async def main() -> int:
        with pytest.raises(ZeroDivisionError):
            await loop.in_thread(lambda: 1 // 0)
        return await loop.in_thread(threading.get_ident)

    assert loop.run(main()) != threading.get_ident()


def test_in_thread_does_not_wait_beyond_the_deadline() -> None:
    loop = Loop(MonotonicClock())
    release = threading.Event()

    async def main() -> None:
        with pytest.raises(DeadlinePassed):
            await loop.in_thread(release.wait, loop.now + 0.02)

    loop.run(main())
    release.set()
    loop.close()


def test_post_is_heard_while_the_loop_sleeps() -> None:
    loop = Loop(MonotonicClock())

    async def main() -> str:
        promise: Promise[str] = Promise(loop)
        thread = threading.Thread(target=lambda: loop.post(lambda: promise.set("heard")))
        thread.start()
        heard = await promise.wait(loop.now + 10)
        thread.join()
        return heard

    assert loop.run(main()) == "heard"
    loop.close()


def test_wait_any_wakes_for_whichever_comes_first(loop: Loop, pair: Pair) -> None:
    async def main() -> tuple[bool, bool, bool, bool]:
        one, other_one = pair()
        two, other_two = pair()
        one.can_read = two.can_read = False
        await other_two.send(b"x")
        woken = await loop.wait_any((one, two), (), loop.now + 10)
        two.can_read = False
        timed_out = await loop.wait_any((one, two), (), loop.now + 10)
        state = (woken, timed_out, one.can_read, one.reader is None and two.reader is None)
        for channel in (one, two, other_one, other_two):
            channel.close()
        return state

    assert loop.run(main()) == (True, False, False, True)


def test_closing_wakes_who_waits(loop: Loop, pair: Pair) -> None:
    async def main() -> None:
        left, right = pair()
        async with Group(loop) as group:

            async def read() -> None:
                with pytest.raises(OSError):
                    await left.recv()

            group.start(read())
            await loop.turn()
            left.close()
        right.close()

    loop.run(main())


def test_a_descriptor_number_used_again_gets_its_own_events(loop: Loop, pair: Pair) -> None:
    async def main() -> bytes:
        left, right = pair()
        number = left.fd
        with pytest.raises(DeadlinePassed):
            await left.recv(deadline=loop.now + 1)
        await right.send(b"for the old one")
        left.close()
        right.close()
        again, other = pair()
        assert number in (again.fd, other.fd)
        with pytest.raises(DeadlinePassed):
            await again.recv(deadline=loop.now + 1)
        await other.send(b"for the new one")
        data = await again.recv(deadline=loop.now + 1)
        again.close()
        other.close()
        return data

    assert loop.run(main()) == b"for the new one"


def test_a_shared_descriptor_leaves_the_epoll_set_when_forgotten(loop: Loop, pair: Pair) -> None:
    """Another process (here: a duplicate) may hold the same open file: closing ours alone would leave it watched."""

    async def main() -> int:
        left, right = socket.socketpair()
        left.setblocking(False)
        duplicate = os.dup(left.fileno())
        watch = Watch(loop, left.fileno())
        watch.can_read = False
        with pytest.raises(DeadlinePassed):
            await watch.readable(loop.now + 1)
        watch.forget(shared=True)
        left.close()
        right.send(b"x")
        events = len(loop._epoll.poll(0))
        os.close(duplicate)
        right.close()
        return events

    assert loop.run(main()) == 0


def test_a_busy_task_leaves_the_others_their_turn(loop: Loop, pair: Pair) -> None:
    turns: list[str] = []

    async def main() -> None:
        left, right = pair()

        async def busy() -> None:
            while "read" not in turns:
                turns.append("busy")
                await loop.turn()

        async def reader() -> None:
            await left.recv()
            turns.append("read")

        async def writer() -> None:
            await right.send(b"x")

        await gather(loop, busy(), reader(), writer())
        left.close()
        right.close()

    loop.run(main())
    assert len(turns) < 10


@pytest.fixture
def polls(loop: Loop) -> Iterator[list[None]]:
    """One entry for each time the loop polled."""
    plain = loop._epoll
    made: list[None] = []

    class Counting:
        def poll(self, *how: Any) -> Any:
            made.append(None)
            return plain.poll(*how)

    loop._epoll = Counting()  # type: ignore[assignment]
    yield made
    loop._epoll = plain


def test_a_task_that_was_started_begins_in_the_same_round(loop: Loop, polls: list[None]) -> None:
    """A door accepts many connections at once: they need not wait for another poll. Who only steps aside does."""
    rounds: list[int] = []

    async def started() -> None:
        rounds.append(len(polls))
        await loop.turn()
        rounds.append(len(polls))

    async def main() -> None:
        async with Group(loop) as group:
            await loop.turn()
            rounds.append(len(polls))
            group.start(started())

    loop.run(main())
    assert [each - rounds[0] for each in rounds] == [0, 0, 1]


def test_who_gives_way_leaves_the_rest_of_the_round_for_later(loop: Loop, pair: Pair) -> None:
    own, client = pair()
    own.first = True
    did: list[str] = []

    async def other() -> None:
        did.append("other")

    async def server(group: Group) -> None:
        for _ in range(3):
            while own.try_recv(1) is None:
                await own.readable()
            did.append("answered")
            if len(did) == 1:
                group.start(other())
            client.try_send(b"again")
            loop.give_way()
            own.can_read = False
            await own.readable()

    async def main() -> None:
        async with Group(loop) as group:
            group.start(server(group))
            client.try_send(b"first")

    loop.run(main())
    assert did == ["answered", "answered", "answered", "other"]


def test_nobody_waits_for_long_however_much_is_answered(pair: Pair) -> None:
    loop = Loop(MonotonicClock())
    left, right = socket.socketpair()
    own, client = Channel(loop, left), Channel(loop, right)
    left.setblocking(False)
    own.first = True
    turns = 0
    answers = 0

    async def other() -> None:
        nonlocal turns
        while turns < 5:
            await loop.turn()
            turns += 1

    async def server() -> None:
        nonlocal answers
        while turns < 5:
            if own.try_recv(1) is None:
                await own.readable()
                continue
            answers += 1
            assert answers < 100_000
            client.try_send(b"x")
            loop.give_way()
            own.can_read = False
            await own.readable()

    async def main() -> None:
        client.try_send(b"x")
        await gather(loop, server(), other())

    loop.run(main())
    own.close()
    client.close()
    loop.close()
    assert answers > turns == 5


def test_giving_way_to_nobody_costs_a_moment(loop: Loop) -> None:
    """Nothing happens for which the others wait."""
    did: list[str] = []

    async def one() -> None:
        loop.give_way()
        did.append("one")

    async def other() -> None:
        did.append("other")

    loop.run(gather(loop, one(), other()))
    assert did == ["one", "other"]


def test_who_is_first_runs_before_who_was_told_sooner(loop: Loop, pair: Pair) -> None:
    (early, tell_early), (late, tell_late) = pair(), pair()
    late.first = True
    did: list[str] = []

    async def read(name: str, channel: Channel) -> None:
        await channel.recv()
        did.append(name)

    async def main() -> None:
        async with Group(loop) as group:
            group.start(read("early", early))
            await loop.sleep(1)  # so that it is watched before the other
            group.start(read("late", late))
            await loop.sleep(1)
            tell_early.try_send(b"x")
            tell_late.try_send(b"x")

    loop.run(main())
    assert did == ["late", "early"]


def test_what_was_started_waits_where_its_starter_gives_way(loop: Loop, polls: list[None]) -> None:
    began: list[int] = []

    async def started() -> None:
        began.append(len(polls))

    async def main() -> None:
        async with Group(loop) as group:
            await loop.turn()
            began.append(len(polls))
            group.start(started())
            loop.give_way()

    loop.run(main())
    assert began[1] == began[0] + 1


def test_waiting_for_nothing_is_an_error_under_the_simulated_clock(loop: Loop) -> None:
    async def main() -> None:
        await loop.park(NEVER)

    with pytest.raises(Stuck):
        loop.run(main())

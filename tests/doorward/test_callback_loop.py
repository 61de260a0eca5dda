"""The supervisor's loop: readers, writers, timers, signals."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from doorward.callback_loop import CallbackLoop


@pytest.fixture
def loop() -> Iterator[CallbackLoop]:
    made = CallbackLoop()
    made.call_later(20, lambda: pytest.fail("nothing happened"))
    yield made
    made.close()


def test_timers_run_in_order_and_a_cancelled_one_does_not(loop: CallbackLoop) -> None:
    seen: list[str] = []
    loop.call_later(0.02, lambda: (seen.append("second"), loop.stop()))
    loop.call_later(0.01, lambda: seen.append("cancelled")).cancel()
    loop.call_later(0.0, lambda: seen.append("first"))
    loop.run_forever()
    assert seen == ["first", "second"]


def test_readers_and_writers(loop: CallbackLoop) -> None:
    ours, theirs = os.pipe()
    seen: list[bytes] = []

    def read() -> None:
        seen.append(os.read(ours, 100))
        loop.remove_reader(ours)
        loop.stop()

    def write() -> None:
        os.write(theirs, b"x")
        loop.remove_writer(theirs)

    loop.add_reader(ours, read)
    loop.add_writer(theirs, write)
    loop.run_forever()
    assert seen == [b"x"]
    loop.remove_reader(ours)  # once more is harmless
    os.close(ours)
    os.close(theirs)


def test_one_that_was_removed_in_the_same_round_is_not_called(loop: CallbackLoop) -> None:
    pipes = [os.pipe() for _ in range(2)]
    seen: list[int] = []

    def read(at: int) -> None:
        seen.append(at)
        for ours, _ in pipes:
            loop.remove_reader(ours)
        loop.stop()

    for at, (ours, theirs) in enumerate(pipes):
        loop.add_reader(ours, lambda at=at: read(at))
        os.write(theirs, b"x")
    loop.run_forever()
    assert len(seen) == 1
    for pair in pipes:
        for fd in pair:
            os.close(fd)


def test_signals_are_callbacks(loop: CallbackLoop) -> None:
    seen: list[int] = []
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        loop.add_signal_handler(number, lambda number=number: (seen.append(number), loop.stop()))
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        os.kill(os.getpid(), number)
        loop.run_forever()
    assert seen == [signal.SIGUSR1, signal.SIGUSR2]
    loop.close()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_a_timer_does_not_keep_it_busy(loop: CallbackLoop) -> None:
    before = time.process_time()
    loop.call_later(0.2, loop.stop)
    loop.run_forever()
    assert time.process_time() - before < 0.1

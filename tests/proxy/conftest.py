"""A loop under simulated time, and pairs of channels that belong to it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from doorward.proxy.channel import Channel
from doorward.proxy.clock import SimulatedClock
from doorward.proxy.loop import Loop

Pair = Callable[[], tuple[Channel, Channel]]


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A deadline an hour away is reached at once when nothing else can run."""
    made = Loop(SimulatedClock())
    yield made
    made.close()


@pytest.fixture
def pair(loop: Loop) -> Iterator[Pair]:
    """Connected channels of the loop; closed at the end of the test."""
    made: list[Channel] = []

    def make() -> tuple[Channel, Channel]:
        left, right = socket.socketpair()
        left.setblocking(False)
        right.setblocking(False)
        channels = Channel(loop, left), Channel(loop, right)
        made.extend(channels)
        return channels

    yield make
    for channel in made:
        channel.close()

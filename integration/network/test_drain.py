"""Connections that come in at the very moment the door closes."""

from __future__ import annotations

import socket
from typing import Any


def test_a_connection_that_had_no_turn_yet_does_not_hold_a_drain_up(network: Any) -> None:
    door = network.door()
    server = door.server
    ours, theirs = socket.socketpair()

    def both() -> None:
        server._group.start(server.drain(3600))
        server._begin(theirs)

    door.call(both)
    ours.settimeout(network.wait)
    assert ours.recv(1) == b""
    ours.close()
    door._thread.join(network.wait)
    assert not door._thread.is_alive()


def test_one_that_had_no_turn_before_the_end_is_closed(network: Any) -> None:
    door = network.door()
    ours, theirs = socket.socketpair()

    def both() -> None:
        door.server._begin(theirs)
        door.server._group.cancel()
        door.server.close()

    door.call(both)
    ours.settimeout(network.wait)
    assert ours.recv(1) == b""
    ours.close()

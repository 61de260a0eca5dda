"""Bytes and descriptors over a unix stream socket."""

import os
import socket
import sys
import threading

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the launcher's shim exists on Linux only")

if sys.platform == "linux":
    from doorward.launcher import descriptor_passing


def test_descriptors_arrive_with_their_bytes_and_are_not_inherited() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    with ours, theirs:
        descriptor_passing.send(ours.fileno(), b"line\n", (reader, writer))
        received: list[int] = []
        assert descriptor_passing.receive(theirs.fileno(), received) == b"line\n"
    os.write(received[1], b"x")
    assert os.read(reader, 1) == b"x"
    assert not any(map(os.get_inheritable, received))
    for number in (reader, writer, *received):
        os.close(number)


def test_more_than_the_buffer_holds_arrives_in_pieces_and_the_end_is_empty() -> None:
    ours, theirs = socket.socketpair()
    data = os.urandom(1 << 20)
    got = bytearray()

    def take() -> None:
        while piece := descriptor_passing.receive(theirs.fileno(), []):
            got.extend(piece)

    thread = threading.Thread(target=take)
    thread.start()
    descriptor_passing.send(ours.fileno(), data, ())
    ours.close()
    thread.join(10)
    theirs.close()
    assert bytes(got) == data


def test_a_far_end_that_is_gone_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours, pytest.raises(OSError):
        descriptor_passing.send(ours.fileno(), b"x", ())


def test_who_has_all_may_close_at_once() -> None:
    """A starter that has its order does: nothing more is sent then, not even nothing."""
    ours, theirs = socket.socketpair()
    closed = []

    class Receiver(threading.Thread):
        def run(self) -> None:
            descriptor_passing.receive(theirs.fileno(), [])
            theirs.close()
            closed.append(True)

    for _ in range(50):
        receiver = Receiver()
        receiver.start()
        descriptor_passing.send(ours.fileno(), b"order\n", ())
        receiver.join(10)
        ours.close()
        ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    assert len(closed) == 50

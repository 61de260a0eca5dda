"""bubblewrap is held by a pipe that is full, and said to be there by another."""

import os

import pytest

from doorward.launcher.gate import Gate


@pytest.fixture
def pipe():
    status, writer = os.pipe()
    os.set_blocking(writer, False)
    gate = Gate(status)
    yield gate, status, writer
    for descriptor in (status, writer, gate.fileno()):
        os.close(descriptor)


def test_nothing_can_be_written_before_it_opens_and_what_comes_then_comes_alone(pipe):
    gate, status, writer = pipe
    with pytest.raises(BlockingIOError):
        os.write(writer, b"{")
    gate.open()
    os.write(writer, b'{ "child-pid": 7 }\n')
    assert os.read(status, 4096) == b'{ "child-pid": 7 }\n'
    os.close(gate.info)


def test_the_child_is_known_once_its_document_is_whole(pipe):
    """bubblewrap 0.7 and later writes it in pieces."""
    gate, _, _ = pipe
    os.write(gate.info, b'{\n    "child-pid": 123')
    assert gate.arrived() is None
    os.write(gate.info, b',\n    "mnt-namespace": 4026532178\n}\n')
    assert gate.arrived() == 123
    os.close(gate.info)


def test_a_bubblewrap_that_ends_before_says_that_nobody_waits(pipe):
    gate, _, _ = pipe
    os.write(gate.info, b"{")
    assert gate.arrived() is None
    os.close(gate.info)
    assert gate.arrived() == 0

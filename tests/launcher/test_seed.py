"""A shim that waits: it ends by itself when it is not needed, whatever happens to the supervisor."""

import os
import select

import pytest

from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.seed import Seed, plant


def test_a_discarded_shim_ends_and_leaves_no_child():
    seed = plant(0)
    seed.discard()
    with pytest.raises(ProcessLookupError):
        os.kill(seed.shim, 0)


def test_a_waiting_shim_has_none_of_our_descriptors():
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    seed = plant(0)
    os.close(writer)
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    # end of file: nobody else holds the other end once the shim has closed what it inherited
    assert poll.poll(10_000)
    assert os.read(reader, 1) == b""
    seed.discard()
    os.close(reader)


def test_a_waiting_shim_ends_with_the_supervisor():
    told, tell = os.pipe()
    hold, release = os.pipe()
    child = os.fork()
    if child == 0:
        seed = plant(0)
        # a copy of the channel that outlives the supervisor must not keep the shim
        if os.fork() == 0:
            os.close(release)
            os.read(hold, 1)
            os._exit(0)
        os.write(tell, seed.shim.to_bytes(4, "little"))
        os._exit(0)
    os.waitpid(child, 0)
    shim = int.from_bytes(os.read(told, 4), "little")
    try:
        handle = os.pidfd_open(shim)
    except ProcessLookupError:
        pass
    else:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        assert poll.poll(10_000)
        os.close(handle)
    for descriptor in (told, tell, hold, release):
        os.close(descriptor)


def test_a_kernel_without_pidfds_is_named(monkeypatch):
    def refuse(_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with pytest.raises(SandboxUnavailable, match="not implemented"):
        plant(0)


def test_sending_to_a_shim_that_is_gone_is_a_connection_error():
    seed = plant(0)
    os.kill(seed.shim, 9)
    os.waitpid(seed.shim, 0)
    with pytest.raises(ConnectionError):
        seed.send(b"x\n", ())
    os.close(seed.channel)


def test_a_seed_is_plain_data():
    assert Seed(1, 2, 3, None) == (1, 2, 3, None, False, True, -1)

"""The shim's end of the watching filter, with the kernel's answers made up; for real: `integration/sandbox`."""

import errno
import select

import pytest

from doorward.launcher import denial_listener
from doorward.launcher.denial_listener import DenialListener


class Kernel:
    """Answers ioctl(2) on a listener: each receipt takes the next identifier, or fails as told."""

    def __init__(self, received, sent=()):
        self.received = list(received)
        self.sent = list(sent)
        self.let_go = []

    def ioctl(self, descriptor, request, argument):
        if request == denial_listener._RECEIVE:
            answer = self.received.pop(0)
            if isinstance(answer, OSError):
                raise answer
            denial_listener._NOTIFICATION.pack_into(argument, 0, answer, 4, 0, 0, 0, 0, *([0] * 6))
        elif request == denial_listener._SEND:
            if self.sent and (error := self.sent.pop(0)) is not None:
                raise error
            self.let_go.append(denial_listener._RESPONSE.unpack(argument)[0])
        return 0


class Poll:
    def __init__(self, told):
        self.told = list(told)

    def register(self, *_):
        pass

    def poll(self, timeout):
        assert timeout == 0
        return [(5, events)] if self.told and (events := self.told.pop(0)) else []


@pytest.fixture
def serving(monkeypatch):
    """Serves once with the poll results and ioctl answers given; gives what `serve` said and which calls went on."""

    def serve(told, received=(), sent=()):
        kernel = Kernel(received, sent)
        monkeypatch.setattr(denial_listener.fcntl, "ioctl", kernel.ioctl)
        monkeypatch.setattr(denial_listener.select, "poll", lambda: Poll(told))
        listener = DenialListener(5, {}, None, starter=4)
        return listener.serve(), kernel.let_go

    return serve


INTERRUPTED = InterruptedError(errno.EINTR, "Interrupted system call")
GONE = FileNotFoundError(errno.ENOENT, "No such file or directory")


def test_an_interrupted_answer_is_given_again(serving):
    """Unanswered, the call would wait for ever."""
    assert serving([select.POLLIN], [7], [INTERRUPTED, INTERRUPTED, None]) == (True, [7])


def test_an_interrupted_receipt_is_tried_at_the_next_look(serving):
    assert serving([select.POLLIN, select.POLLIN], [INTERRUPTED, 8]) == (True, [8])


def test_a_caller_that_is_gone_keeps_nobody_waiting(serving):
    assert serving([select.POLLIN] * 3, [GONE, 8, 9], [GONE, None]) == (True, [9])


@pytest.mark.parametrize(
    ("told", "on"),
    [
        (select.POLLERR, True),  # the look was interrupted
        (select.POLLHUP, False),  # nobody is left who could call
        (select.POLLERR | select.POLLHUP, False),
        (select.POLLNVAL, False),
    ],
)
def test_the_end_is_told_from_an_interrupted_look(serving, told, on):
    assert serving([told]) == (on, [])


def test_who_still_waits_at_the_end_is_let_go(serving):
    assert serving([select.POLLIN | select.POLLHUP, select.POLLHUP], [7]) == (False, [7])

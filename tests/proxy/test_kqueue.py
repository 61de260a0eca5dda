"""kqueue's events in epoll's words, against a fake of kqueue(2). No socket is opened."""

import select
from types import SimpleNamespace

import pytest

from doorward.proxy.kqueue import EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP, Kqueue

READ, WRITE, ADD, DELETE, CLEAR, ERROR, EOF = -1, -2, 0x1, 0x2, 0x20, 0x4000, 0x8000


class Fake:
    def __init__(self):
        self.changes, self.events, self.waited, self.closed = [], [], [], False

    def control(self, changes, most, timeout):
        self.changes += [(each.ident, each.filter, each.flags) for each in changes or ()]
        if most:
            self.waited.append(timeout)
        return [SimpleNamespace(**event) for event in self.events] if most else []

    def fileno(self):
        return 42

    def close(self):
        self.closed = True


@pytest.fixture
def fake(monkeypatch):
    made = Fake()
    monkeypatch.setattr(select, "kqueue", lambda: made, raising=False)
    monkeypatch.setattr(
        select,
        "kevent",
        lambda ident, filter, flags: SimpleNamespace(ident=ident, filter=filter, flags=flags),
        raising=False,
    )
    return made


def event(filter, flags=0, fflags=0, ident=7):
    return {"ident": ident, "filter": filter, "flags": flags, "fflags": fflags}


def test_edges_are_clear_events(fake):
    Kqueue().register(7, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)
    assert fake.changes == [(7, READ, ADD | CLEAR), (7, WRITE, ADD | CLEAR)]


def test_only_what_is_asked_for(fake):
    Kqueue().register(7, EPOLLIN)
    assert fake.changes == [(7, READ, ADD)]


def test_watched_no_more(fake):
    Kqueue().unregister(7)
    assert fake.changes == [(7, READ, DELETE), (7, WRITE, DELETE)]


def test_watched_for_something_else(fake):
    queue = Kqueue()
    queue.register(7, EPOLLIN | EPOLLET)
    fake.changes.clear()
    queue.modify(7, EPOLLIN | EPOLLOUT | EPOLLET)
    assert fake.changes == [(7, READ, ADD | CLEAR), (7, WRITE, ADD | CLEAR)]
    fake.changes.clear()
    queue.modify(7, EPOLLIN | EPOLLET)
    assert fake.changes == [(7, READ, ADD | CLEAR), (7, WRITE, DELETE)]


def test_what_was_watched_for_reading_alone_is_let_go(fake, monkeypatch):
    gone = {WRITE}

    def control(changes, most, timeout):
        if any(each.flags == DELETE and each.filter in gone for each in changes):
            raise FileNotFoundError

    fake.control = control
    Kqueue().unregister(7)
    gone.add(READ)
    with pytest.raises(OSError):
        Kqueue().unregister(7)


@pytest.mark.parametrize(
    ("events", "mask"),
    [
        ([event(READ)], EPOLLIN),
        ([event(WRITE)], EPOLLOUT),
        ([event(READ), event(WRITE)], EPOLLIN | EPOLLOUT),
        ([event(READ, EOF)], EPOLLIN | EPOLLRDHUP),
        ([event(WRITE, EOF)], EPOLLOUT | EPOLLHUP),
        ([event(READ, EOF, 54)], EPOLLIN | EPOLLRDHUP | EPOLLERR),
        ([event(READ, ERROR)], EPOLLIN | EPOLLERR),
    ],
)
def test_what_is_the_case(fake, events, mask):
    fake.events = events
    assert Kqueue().poll(0) == [(7, mask)]


def test_each_descriptor_comes_once(fake):
    fake.events = [event(READ), event(READ, ident=8), event(WRITE)]
    assert Kqueue().poll() == [(7, EPOLLIN | EPOLLOUT), (8, EPOLLIN)]


@pytest.mark.parametrize(("asked", "given"), [(None, None), (-1, None), (0, 0), (1.5, 1.5)])
def test_waiting(fake, asked, given):
    queue = Kqueue()
    queue.poll(asked)
    assert fake.waited == [given]
    queue.close()
    assert fake.closed


def test_it_can_be_waited_for_itself(fake):
    assert Kqueue().fileno() == 42

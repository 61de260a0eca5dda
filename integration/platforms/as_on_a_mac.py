"""Runs doorward on Linux without what only Linux has, as far as that can be taken away: names of the standard library,
kinds of sockets, /proc. A stand-in for `sandbox-exec` confines nothing; a stand-in for kqueue sits on epoll.

    python as_on_a_mac.py SANDBOX_EXEC run -- CMD
"""

import _signal
import _socket
import errno
import os
import select
import signal
import socket
import sys

real_epoll, IN, OUT, ET = select.epoll, select.EPOLLIN, select.EPOLLOUT, select.EPOLLET
HUP, RDHUP, ERR = select.EPOLLHUP, select.EPOLLRDHUP, select.EPOLLERR
_LINUX = ("EFD_", "EPOLL", "SPLICE_", "POLLRDHUP")
READ, WRITE, ADD, DELETE, CLEAR, EOF = -1, -2, 0x1, 0x2, 0x20, 0x8000


class kevent:
    def __init__(self, ident, filter, flags=ADD, fflags=0):
        self.ident, self.filter, self.flags, self.fflags = ident, filter, flags, fflags


class kqueue:
    """kqueue(2) with EV_CLEAR, for two filters: each change and each event as the manual has them."""

    def __init__(self):
        self.epoll = real_epoll()
        self.filters = {}

    def control(self, changes, most, timeout):
        for change in changes or ():
            known = self.filters.setdefault(change.ident, set())
            if change.flags & DELETE:
                if change.filter not in known:
                    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
                known.discard(change.filter)
                if not known:
                    self.epoll.unregister(change.ident)
                continue
            known.add(change.filter)
            mask = (IN | RDHUP if READ in known else 0) | (OUT if WRITE in known else 0)
            mask |= ET if change.flags & CLEAR else 0
            try:
                self.epoll.register(change.ident, mask)
            except FileExistsError:
                self.epoll.modify(change.ident, mask)
        if not most:
            return []
        events = []
        for ident, mask in self.epoll.poll(timeout, max(1, most // 2)):
            known = self.filters.get(ident, ())
            if READ in known and mask & (IN | HUP | RDHUP | ERR):
                events.append(kevent(ident, READ, EOF if mask & (HUP | RDHUP | ERR) else 0, int(bool(mask & ERR))))
            if WRITE in known and mask & (OUT | HUP | ERR):
                events.append(kevent(ident, WRITE, EOF if mask & (HUP | ERR) else 0, int(bool(mask & ERR))))
        return events

    def close(self):
        self.epoll.close()


def take_away():
    gone = {
        os: ("eventfd", "eventfd_read", "eventfd_write", "pidfd_open", "memfd_create", "splice", "pipe2", "O_TMPFILE",
             "O_PATH", "setns", "unshare", "sched_getaffinity", "getrandom", "posix_fadvise"),
        _signal: ("pidfd_send_signal",), signal: ("pidfd_send_signal",), select: ("epoll",),
        _socket: ("SOCK_NONBLOCK", "SOCK_CLOEXEC", "AF_NETLINK", "TCP_KEEPIDLE", "SO_PEERCRED", "SCM_CREDENTIALS"),
    }  # fmt: skip
    for module, names in gone.items():
        for name in [*names, *(name for name in vars(module) if name.startswith(_LINUX))]:
            if hasattr(module, name):
                delattr(module, name)
    select.kqueue, select.kevent = kqueue, kevent
    pairs = _socket.socketpair

    def socketpair(family=_socket.AF_UNIX, kind=_socket.SOCK_STREAM, proto=0):
        if kind == _socket.SOCK_SEQPACKET:
            raise OSError(errno.EPROTONOSUPPORT, os.strerror(errno.EPROTONOSUPPORT))
        return pairs(family, kind, proto)

    _socket.socketpair = socketpair
    confstr = os.confstr
    os.confstr = lambda name: os.environ["PER_USER_TEMPORARY"] if name == 65537 else confstr(name)

    def no_proc(event, args):
        # /proc/self/fd is what Linux has for /dev/fd
        if event == "open" and isinstance(args[0], str) and args[0].startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), args[0])

    import selectors
    import tempfile

    selectors.DefaultSelector = selectors.PollSelector
    tempfile._O_TMPFILE_WORKS = False
    sys.addaudithook(no_proc)
    sys.platform = "darwin"


if __name__ == "__main__":
    import shutil  # noqa: F401  # these look at the platform when they are imported
    import tempfile  # noqa: F401

    del socket
    take_away()
    from doorward.launcher import seatbelt

    seatbelt.SANDBOX_EXEC = sys.argv[1]
    seatbelt.Seatbelt.__init__.__defaults__ = (sys.argv[1],)
    from doorward.__main__ import main

    status = main(sys.argv[2:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

"""Makes or joins the sandbox's network namespace and opens the proxy's listeners in it.

Two ways. *Ours first*: the forked child makes the user, network and pid namespaces itself and starts
bubblewrap inside them. *bubblewrap first*, on machines where only bubblewrap may make user namespaces: its
namespace is joined while it holds the command. Runs in the forked child only.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import sys
import time
from _socket import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    IPPROTO_IPV6,
    IPV6_V6ONLY,
    SCM_RIGHTS,
    SOCK_CLOEXEC,
    SOCK_DGRAM,
    SOCK_RAW,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    SOL_SOCKET,
)
from _socket import socket as Socket

from doorward.launcher.interface import PROXY_PORT, Identity
from doorward.launcher.syscalls import CLONE_NEWNET, CLONE_NEWUSER, setns, unshare
from doorward.start_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SIOCGIFFLAGS = 0x8913  # <linux/sockios.h>
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_NS_GET_USERNS = 0xB701  # <linux/nsfs.h>
_RTMGRP_LINK = 0x1  # <linux/rtnetlink.h>
_LOOPBACK = b"lo".ljust(16, b"\0")
_BACKLOG = 1024
_DEADLINE_S = 5.0


def keep_identity(uid: int, gid: int) -> None:
    """Maps the ids the caller had before it made its user namespace to themselves. Raises OSError."""
    # without `deny` an ordinary user may not write the group map (user_namespaces(7))
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def unshare_for(user: Identity, flags: int) -> None:
    """Makes the namespaces in `flags`, a user namespace among them that maps root, `user` and its groups to
    themselves. Only root outside may map more than itself, and then only from outside (user_namespaces(7)), so a
    helper that stays there does it. Raises OSError."""
    # forked first: the first child after it would be process 1 of a new pid namespace
    reader, writer = os.pipe()
    shim = os.getpid()
    helper = os.fork()
    if helper == 0:
        code = errno.EIO
        try:
            os.close(writer)
            if os.read(reader, 1):
                for name, ids in (("uid_map", (0, user.uid)), ("gid_map", (0, user.gid, *user.groups))):
                    _write(f"/proc/{shim}/{name}", "".join(f"{number} {number} 1\n" for number in sorted({*ids})))
            code = 0
        except OSError as error:
            code = error.errno or errno.EIO
        finally:
            os._exit(code)
    os.close(reader)
    try:
        unshare(flags)
        os.write(writer, b"x")
    finally:
        os.close(writer)
        code = os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1])
    if code != 0:
        raise UnmappedUser(code, os.strerror(code))


class UnmappedUser(OSError):
    """The namespaces are there, but the user cannot be mapped into them."""


def bring_loopback_up() -> None:
    """Sets `lo` up in the network namespace of the caller (netdevice(7)); both loopback addresses follow."""
    with _Closing(Socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC)) as probe:
        fcntl.ioctl(probe.fileno(), _SIOCSIFFLAGS, _LOOPBACK + _IFF_UP.to_bytes(2, sys.byteorder) + bytes(22))


def listen() -> list[Socket]:
    """The proxy's listeners on 127.0.0.1 and, where the kernel has IPv6, on ::1."""
    listeners = [_listener(AF_INET, "127.0.0.1")]
    try:
        listeners.append(_listener(AF_INET6, "::1"))
    except OSError as error:
        if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise
    return listeners


def hand_over(channel: int, sockets: Iterable[tuple[Mapping[str, object], Socket | None]]) -> None:
    """Sends each socket in a message of its own (unix(7), SCM_RIGHTS), with what is said of it as JSON; a message may
    also come without one. Raises OSError."""
    deadline = time.monotonic() + _DEADLINE_S
    poll = select.poll()
    poll.register(channel, select.POLLOUT)
    sender = Socket(AF_UNIX, SOCK_SEQPACKET, 0, channel)
    try:
        for said, each in sockets:
            text = dumps(said).encode()
            rights = [] if each is None else [(SOL_SOCKET, SCM_RIGHTS, each.fileno().to_bytes(4, sys.byteorder))]
            while True:
                try:
                    sender.sendmsg([text], rights)
                    break
                except BlockingIOError:
                    if not poll.poll(max(0, (deadline - time.monotonic()) * 1000)):
                        raise OSError(errno.ETIMEDOUT, "the proxy does not take the listeners") from None
    finally:
        sender.detach()


def join(pid: int, name: str, kind: int) -> None:
    """Joins a namespace of `pid` (`name` in /proc/pid/ns, `kind` a CLONE_NEW*), through the user namespace that owns
    it. Raises OSError."""
    place = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        owner = fcntl.ioctl(place, _NS_GET_USERNS)
        try:
            setns(owner, CLONE_NEWUSER)
        finally:
            os.close(owner)
        setns(place, kind)
    finally:
        os.close(place)


def join_network(pid: int) -> None:
    """Joins the network namespace of `pid`, and waits for `lo`.

    bubblewrap sets `lo` up itself after it has told its child's pid; whoever is faster makes it fail with
    "RTM_NEWADDR". So this only waits. Raises OSError.
    """
    join(pid, "net", CLONE_NEWNET)
    with (
        _Closing(Socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)) as events,
        _Closing(Socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC)) as probe,
    ):
        # subscribed before the first look, so that no change is missed
        events.bind((0, _RTMGRP_LINK))
        poll = select.poll()
        poll.register(events.fileno(), select.POLLIN)
        deadline = time.monotonic() + _DEADLINE_S
        while not _is_up(probe):
            if not poll.poll(max(0, (deadline - time.monotonic()) * 1000)):
                raise OSError(errno.ETIMEDOUT, "the loopback device did not come up")
            events.recv(65536)


def _is_up(probe: Socket) -> bool:
    answer = fcntl.ioctl(probe.fileno(), _SIOCGIFFLAGS, _LOOPBACK + bytes(24))
    return bool(answer[16] & _IFF_UP)


def _listener(family: int, address: str) -> Socket:
    listener = Socket(family, SOCK_STREAM | SOCK_CLOEXEC)
    try:
        if family == AF_INET6:
            listener.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)
        listener.bind((address, PROXY_PORT))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


class _Closing:
    """`with` for a raw `_socket`, which has none."""

    def __init__(self, opened: Socket) -> None:
        self._opened = opened

    def __enter__(self) -> Socket:
        return self._opened

    def __exit__(self, *_: object) -> None:
        self._opened.close()

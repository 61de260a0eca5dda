"""A process inside the sandbox's network namespace that makes sockets of it on demand, for the door outside.

A socket belongs to the namespace it was made in, so the door can neither connect to a server inside nor open one more
listener there by itself. It asks here: a message of JSON on a SOCK_SEQPACKET socket, answered by one with the socket
(SCM_RIGHTS, unix(7)) or the error number. Only for runs that publish ports, or that get the host's loopback on demand.
The process lives as long as the door holds the other end.
"""

import errno
import os
import sys
from _socket import (
    AF_INET,
    AF_INET6,
    AF_UNIX,
    SCM_RIGHTS,
    SOCK_CLOEXEC,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    SOL_SOCKET,
    socketpair,
)
from _socket import socket as Socket

from doorward.launcher.starter import close_all_but
from doorward.launcher.transparent import listener
from doorward.start_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from doorward.launcher.transparent import Opened

_FAMILIES = {4: (AF_INET, "127.0.0.1"), 6: (AF_INET6, "::1")}


def start() -> "Opened":
    """Forks the process; the socket is the door's end. Raises OSError.

    It must be nobody's child out here: it is in the pid namespace of the run, whose first process cannot end before
    every other one was waited for.
    """
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC)
    between = os.fork()
    if between == 0:
        if os.fork() == 0:
            _serve(theirs)
        os._exit(0)
    theirs.close()
    os.waitpid(between, 0)
    return "maker", 0, ours


def _serve(channel: Socket) -> "NoReturn":
    try:
        close_all_but((channel.fileno(),))
        while request := channel.recv(4096):
            made: Socket | None = None
            number = 0
            try:
                made = _made(loads(request))
            except OSError as error:
                number = error.errno or errno.EIO
            rights = [] if made is None else [(SOL_SOCKET, SCM_RIGHTS, made.fileno().to_bytes(4, sys.byteorder))]
            channel.sendmsg([dumps({"errno": number}).encode()], rights)
            if made is not None:
                made.close()
    except BaseException:
        pass  # the door is gone, or what came was none of its words
    finally:
        os._exit(0)


def _made(wanted: dict[str, int]) -> Socket:
    """`{"family": 4}` is a fresh stream socket, `{"family": 4, "listen": PORT}` one that listens on loopback."""
    family, address = _FAMILIES[wanted["family"]]
    if "listen" in wanted:
        return listener(family, address, wanted["listen"])
    return Socket(family, SOCK_STREAM | SOCK_CLOEXEC)

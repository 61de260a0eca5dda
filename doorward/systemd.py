"""What systemd and a service say to each other: sockets it opened for us, and that we are ready.

sd_listen_fds(3) and sd_notify(3) by their protocols, which are a few variables and one datagram.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, MutableMapping

from doorward.errors import UsageError

_FIRST = 3
"""SD_LISTEN_FDS_START."""


def take_sockets(env: MutableMapping[str, str]) -> list[socket.socket]:
    """The sockets systemd passed to this very process, none where it passed none. The variables that told are removed,
    so that no child takes them for its own. Raises UsageError for a descriptor that is no listening stream socket."""
    count, pid = env.pop("LISTEN_FDS", ""), env.pop("LISTEN_PID", "")
    env.pop("LISTEN_FDNAMES", None)
    env.pop("LISTEN_PIDFDID", None)
    if pid != str(os.getpid()) or not count.isdigit():
        return []
    return [_listener(fd) for fd in range(_FIRST, _FIRST + int(count))]


def _listener(fd: int) -> socket.socket:
    try:
        os.set_inheritable(fd, False)
        sock = socket.socket(fileno=fd)
    except OSError:
        raise UsageError(f"doorward proxy: LISTEN_FDS names descriptor {fd}, which is no open socket") from None
    try:
        listening = sock.type == socket.SOCK_STREAM and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        listening = 0
    if not listening:
        sock.close()
        raise UsageError(
            f"doorward proxy: descriptor {fd} from systemd is no listening stream socket; "
            "the unit needs ListenStream= and Accept=no"
        )
    return sock


def notify(env: Mapping[str, str], state: str) -> None:
    """Tell systemd `state`, such as "READY=1"; nothing where nobody wants to know, and nobody to tell is no error."""
    path = env.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(state.encode(), address)
    except OSError:
        pass

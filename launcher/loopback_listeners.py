"""The proxy's listeners on the host's own loopback, for platforms without network namespaces: one port for each run.

The port is the run's: the kernel picks it, the sandbox lets nothing else be dialled, and it closes with the run. Other
programs of the machine can dial it too; they get what the run's rules allow, and it is recorded as the run's.

Both families, on the same port, and `localhost` for a name: a client that knows only IPv4 finds 127.0.0.1, one that
dials IPv4 as a mapped address (`::ffff:127.0.0.1`, gRPC), which Seatbelt does not take for localhost, finds ::1 first.
"""

import errno
import json
import sys
from _socket import AF_INET, AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, SOCK_STREAM
from _socket import socket as Socket

from doorward.named_tuple import NamedTuple

_BACKLOG = 1024
# A port that is free on one family and not on the other is rare.
_TRIES = 20


class Listeners(NamedTuple):
    """The open listeners of one run. `port` is the same in each."""

    port: int
    sockets: tuple[Socket, ...]

    @property
    def url(self) -> str:
        """The proxy's address as clients are given it."""
        return f"http://localhost:{self.port}"

    def hand_over(self, channel: Socket, run: str, policy_id: str) -> None:
        """Sends each listener in a message of its own (unix(4) of macOS, SCM_RIGHTS). Raises OSError."""
        from _socket import SCM_RIGHTS, SOL_SOCKET  # which Windows has no use for

        text = json.dumps({"run": run, "policy": policy_id, "listener": "proxy", "port": self.port}).encode()
        for listener in self.sockets:
            rights = listener.fileno().to_bytes(4, sys.byteorder)
            channel.sendmsg([text], [(SOL_SOCKET, SCM_RIGHTS, rights)])

    def close(self) -> None:
        """Closes this process's copies."""
        for listener in self.sockets:
            listener.close()


def open_listeners() -> Listeners:
    """Listens on 127.0.0.1 and, where the machine has IPv6, on ::1. Raises OSError."""
    for last in (index == _TRIES - 1 for index in range(_TRIES)):
        four = _listen(AF_INET, ("127.0.0.1", 0))
        port = four.getsockname()[1]
        try:
            return Listeners(port, (four, _listen(AF_INET6, ("::1", port))))
        except OSError as error:
            if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                return Listeners(port, (four,))
            four.close()
            if error.errno != errno.EADDRINUSE or last:
                raise
    raise AssertionError("every try either returns or raises")


def _listen(family: int, address: tuple[str, int]) -> Socket:
    listener = Socket(family, SOCK_STREAM)  # Python's sockets are not inherited (PEP 446)
    try:
        if family == AF_INET6:
            listener.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener

"""Inspection workers that follow one another in a door that stands alone: each comes as a link, over a socket.

The newest one gets the tunnels from then on; the one before keeps those it has and ends with the last of them.
"""

from __future__ import annotations

import _socket
from collections.abc import Callable

from doorward.proxy.handover import descriptors_in
from doorward.proxy.inspection.link import InspectionLink
from doorward.proxy.loop import Group, Loop, Promise
from doorward.proxy.server import Server
from doorward.proxy.task import Watch

_MESSAGE = 64
_DESCRIPTORS = 4


class Succession:
    """`links` is a unix socket that keeps packets apart: one packet, one descriptor (SCM_RIGHTS, unix(7))."""

    def __init__(self, loop: Loop, links: _socket.socket, server: Server) -> None:
        links.setblocking(False)
        self._loop = loop
        self._links = links
        self._server = server
        self._count = 0
        self._more: Promise[None] = Promise(loop)

    async def has(self, count: int) -> None:
        """Wait until so many have come."""
        while self._count < count:
            await self._more.wait()

    def retire(self) -> None:
        """Nothing is to be inspected any more."""
        link, self._server.inspection = self._server.inspection, None
        if link is not None:
            link.retire()

    async def run(self, group: Group, on_error: Callable[[BaseException], None]) -> None:
        """Take each as it comes, until there can be no more. `group` serves them."""
        watch = Watch(self._loop, self._links.fileno())
        try:
            while True:
                try:
                    data, ancillary, _, _ = self._links.recvmsg(_MESSAGE, _socket.CMSG_SPACE(_DESCRIPTORS * 4))
                except BlockingIOError:
                    watch.can_read = False
                    await watch.readable()
                    continue
                except OSError:
                    return
                if not data:
                    return
                for descriptor in descriptors_in(ancillary):
                    self._follow(_socket.socket(fileno=descriptor), group, on_error)
        finally:
            watch.forget(shared=True)
            self._links.close()

    def _follow(self, sock: _socket.socket, group: Group, on_error: Callable[[BaseException], None]) -> None:
        before = self._server.inspection
        self._server.inspection = link = InspectionLink(self._loop, sock)
        group.start(link.run(group, on_error))
        if before is not None:
            before.retire()
        self._count += 1
        more, self._more = self._more, Promise(self._loop)
        more.set(None)

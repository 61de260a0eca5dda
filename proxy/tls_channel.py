"""A channel over TLS, for an https upstream proxy only: the one place that imports ssl."""

from __future__ import annotations

import socket
import ssl

from doorward.proxy.channel import READ_SIZE, Channel


class TlsChannel(Channel):
    """TLS over the socket of a connected channel. Copies: splice(2) would move ciphertext."""

    __slots__ = ("tls",)

    splices = False

    def __init__(self, plain: Channel, host: str) -> None:
        """Takes the socket over from `plain`, which must not be used any more."""
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        plain.forget(shared=True)  # the descriptor stays open and is registered anew
        sock = socket.socket(fileno=plain.sock.detach())
        sock.setblocking(False)
        self.tls = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        super().__init__(plain.loop, self.tls)

    async def handshake(self, deadline: float) -> None:
        """Raises OSError (a certificate that does not hold included), DeadlinePassed."""
        while True:
            try:
                self.tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                self.can_read = False
                await self.readable(deadline)
            except ssl.SSLWantWriteError:
                self.can_write = False
                await self.writable(deadline)

    def try_recv(self, size: int = READ_SIZE) -> bytes | None:
        """See Channel. What TLS holds decrypted is no event of the socket's, so only its own word clears `can_read`."""
        if not self.can_read:
            return None
        try:
            return self.tls.recv(size)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self.can_read = False
            return None
        except ssl.SSLZeroReturnError:
            return b""

    def try_send(self, data: bytes | bytearray | memoryview) -> int:
        """See Channel."""
        if not self.can_write:
            return 0
        try:
            return self.tls.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self.can_write = False
            return 0

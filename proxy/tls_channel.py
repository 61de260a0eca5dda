"""A channel over TLS, for an https upstream proxy only: the one place that imports ssl.

TLS ends each direction with a message of its own (close_notify, RFC 8446 §6.1), after which the other may go on. An
`ssl.SSLSocket` cannot say that and go on reading, so the records pass through memory here.
"""

from __future__ import annotations

import socket
import ssl

from doorward.proxy.channel import READ_SIZE, Channel

_RECORD = 16 * 1024
"""Most plaintext of one record (RFC 8446 §5.1)."""


class TlsChannel(Channel):
    """TLS over the socket of a connected channel. Copies: splice(2) would move ciphertext."""

    __slots__ = ("_decrypted", "_in", "_out", "_owed", "_sealed", "tls")

    splices = False

    def __init__(self, plain: Channel, host: str) -> None:
        """Takes the socket over from `plain`, which must not be used any more."""
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION  # in the midst of which a write would have to wait for a read
        plain.forget(shared=True)  # the descriptor stays open and is registered anew
        sock = socket.socket(fileno=plain.sock.detach())
        sock.setblocking(False)
        super().__init__(plain.loop, sock)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_hostname=host)
        self._sealed = b""  # records that are to be sent before all others
        # The caller was told that all but one byte of what they hold were taken: so it comes back, and they with it.
        self._owed = False
        self._decrypted = b""  # to be received before all else

    async def handshake(self, deadline: float) -> None:
        """Raises OSError (a certificate that does not hold included), DeadlinePassed."""
        while True:
            wants_more = False
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                wants_more = True
            except ssl.SSLError:
                self._flush()  # it says why, to the other side too
                raise
            while not self._flush():
                await self.writable(deadline)
            if not wants_more:
                return
            while not self._fill():
                await self.readable(deadline)

    def try_recv(self, size: int = READ_SIZE) -> bytes | None:
        """See Channel."""
        if self._decrypted:
            data, self._decrypted = self._decrypted[:size], self._decrypted[size:]
            return data
        try:
            while True:
                try:
                    data = self.tls.read(size)
                except ssl.SSLWantReadError:
                    if not self._fill():
                        return None
                    continue
                # Records that were received with this one are no event of the socket's: only that there is nothing
                # left clears `can_read`.
                self.can_read = True
                return data
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):  # many a proxy ends without a word of TLS
            return b""

    def try_send(self, data: bytes | bytearray | memoryview) -> int:
        """See Channel. What could not be sent stands to be tried again with the same byte in front."""
        if not self.can_write or not self._flush():
            return 0
        if self._owed:
            self._owed = False
            return 1
        taken = self.tls.write(data[:_RECORD])
        if self._flush():
            return taken
        self._owed = True
        return taken - 1

    def end(self) -> None:
        """See Channel. For when all was sent."""
        if self.fd < 0:
            return
        try:
            # Not to be met by OpenSSL while it says the end: it takes data then for a fault, and drops it.
            while data := self.tls.read(READ_SIZE):
                self._decrypted += data
        except ssl.SSLError:  # nothing whole is left
            pass
        try:
            self.tls.unwrap()
        except ssl.SSLError:  # it has said it, and would now wait for the answer to it
            pass
        try:
            if self._flush():
                super().end()
        except OSError:
            pass
        self.can_read = True

    def _fill(self) -> bool:
        """Receive records, or their end; False when there is nothing now."""
        data = Channel.try_recv(self)
        if data is None:
            return False
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()
        return True

    def _flush(self) -> bool:
        """Send what records there are; whether all are gone."""
        if self._out.pending:
            self._sealed += self._out.read()
        if self._sealed:
            self._sealed = self._sealed[Channel.try_send(self, self._sealed) :]
        return not self._sealed

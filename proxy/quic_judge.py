"""Holds a flow of datagrams to the name it was opened by: datagrams in, those that may go on out, no I/O.

- A QUIC client's first packets are kept back until its ClientHello is whole, however many they are; then the server
  name must agree with the name that was looked up, as in a tunnel over TCP.
- Each further connection the client begins on the same flow is judged likewise, also after a Retry, and in whichever
  packet of a datagram it begins. What a server could not read is dropped.
- On port 443 nothing else passes, and no other version of QUIC; on other ports, which the rule names, it does.
- `tls = "any"` lets what is no QUIC, what cannot be read and a hello without a name pass. Names that disagree never
  pass.
"""

from __future__ import annotations

from doorward.allowlists.host import Host, Name, authority_text
from doorward.proxy.first_bytes import Disagreement, names_disagree
from doorward.proxy.quic_initial import VERSIONS, Hello, Keys, Malformed, Packet, is_quic, packets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from doorward.proxy.limits import Limits

WITHOUT_LIBRARY: Final = (
    "its ClientHello cannot be read without the Python package cryptography (pip install 'doorward[quic]')"
)
_ATTEMPTS: Final = 8  # connections of one flow
_UNFINISHED: Final = 2  # of them, whose hello is not whole
_HELD: Final = 16  # datagrams
_HELD_BYTES: Final = 32 * 1024
_LONGEST_HELLO: Final = 16 * 1024  # bytes; with post-quantum keys they have about 2,000
_LONG: Final = 0x80


class DatagramJudge:
    """Judges one flow. `finding` is set when it must end."""

    def __init__(
        self, host: Host, port: int, limits: Limits, *, tls_any: bool, allows: Callable[[Name], bool]
    ) -> None:
        self.finding: Disagreement | None = None
        self.content: str | None = None  # quic, or uninspected, which passed unread
        self._host = host
        self._port = port
        self._limits = limits
        self._tls_any = tls_any
        self._strict = port == 443 and not tls_any
        self._allows = allows
        self._attempts: dict[bytes, Hello] = {}  # by the connection id they began with
        self._keys: dict[tuple[bytes, bytes], Keys] = {}
        self._held: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """One more of the client's; gives what may go on now."""
        if self.finding is not None:
            return []
        if not is_quic(data):
            return self._other(data)
        try:
            initial = [packet for packet in packets(data) if packet.initial]
            whole = [self._is_whole(data, packet) for packet in initial]
        except Malformed as error:
            return self._unreadable(data, str(error))
        except ImportError:
            if self._tls_any:
                return self._pass(data)
            return self._refuse(WITHOUT_LIBRARY)
        if self._ended:
            return []
        if all(whole) and (initial or not self._strict or self._agreed) and not self._pending:
            held, self._held = self._held, []
            self.content = "quic" if initial else self.content
            return [*held, data]
        if not initial and self._agreed:
            return [data]  # of a connection that was judged, while another one begins
        if len(self._held) < _HELD and sum(map(len, self._held)) + len(data) <= _HELD_BYTES:
            self._held.append(data)
        return []

    def timed_out(self) -> None:
        """The hello did not become whole in time."""
        self._refuse(f"its ClientHello was not whole after {self._limits.first_bytes_time:g} s")

    @property
    def _ended(self) -> bool:
        return self.finding is not None

    @property
    def _agreed(self) -> bool:
        return any(hello.found is not None for hello in self._attempts.values())

    @property
    def _pending(self) -> bool:
        return any(hello.found is None for hello in self._attempts.values())

    def _is_whole(self, data: bytes, packet: Packet) -> bool:
        """Whether the connection of the packet is judged; its hello may still be incomplete. Raises Malformed."""
        begun = packet.destination
        frames = self._keys_of(packet.version, begun).open(data, packet)
        if frames is None:
            if self._is_of_judged(data, packet):
                return True
            raise Malformed("its first packet cannot be read")
        attempt = self._attempts.get(begun)
        if attempt is None:
            unfinished = sum(hello.found is None for hello in self._attempts.values())
            if len(self._attempts) >= _ATTEMPTS or unfinished >= _UNFINISHED:
                raise Malformed("it begins too many connections")
            attempt = self._attempts[begun] = Hello(min(self._limits.hello, _LONGEST_HELLO))
        known = attempt.found
        try:
            attempt.feed(frames)
        except Malformed as error:
            self._refuse(str(error))
        if attempt.found is None:
            return False
        if known is None:
            problem = names_disagree(attempt.found, self._host, tls_any=self._tls_any, allows=self._allows)
            if problem is not None:
                self._refuse(*problem)
        return True

    def _is_of_judged(self, data: bytes, packet: Packet) -> bool:
        """Once the server has answered, its connection id stands there; the keys stay those of the first one. Also
        those of the other version: clients that change to it on the way have been seen to mix them."""
        judged = [begun for begun, hello in self._attempts.items() if hello.found is not None]
        return any(
            self._keys_of(version, begun).open(data, packet) is not None
            for begun in judged
            for version in (packet.version, *VERSIONS - {packet.version})
        )

    def _keys_of(self, version: bytes, destination: bytes) -> Keys:
        found = self._keys.get((version, destination))
        if found is None:
            found = Keys(version, destination)
            if len(self._keys) < 4 * _ATTEMPTS:
                self._keys[version, destination] = found
        return found

    def _other(self, data: bytes) -> list[bytes]:
        """No long packet of a version that can be read."""
        if self._strict:
            if not self._agreed:
                return self._refuse("on port 443 it must begin with a QUIC Initial packet of version 1 or 2")
            if not data or data[0] & _LONG:
                return []
        return self._pass(data)

    def _unreadable(self, data: bytes, why: str) -> list[bytes]:
        if self.finding is not None or (self._strict and self._agreed):
            return []  # a server could not read it either
        if self._strict:
            return self._refuse(why)
        return self._pass(data)

    def _pass(self, data: bytes) -> list[bytes]:
        if self.content is None:
            self.content = "uninspected"
        return [data]

    def _refuse(self, why: str, said: str = "") -> list[bytes]:
        if self.finding is None:
            asked = authority_text(self._host, self._port)
            self.finding = Disagreement(f"the datagrams were sent to {asked}, but {why}", said)
        return []

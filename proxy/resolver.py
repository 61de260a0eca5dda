"""Turns a name that a rule allows into addresses: one look-up, in absolute form, in a worker thread.

- The name gets a trailing dot, so that no search suffix is tried: `allowed.test` never becomes `allowed.test.corp`.
- The machine's hosts file is read here, since the system's resolver does not find a name with a trailing dot in it.
- `localhost` is loopback, whatever anyone says (RFC 6761 §6.3).
- Only bytes of a parsed `Name` ever reach the system's resolver: nothing it could take for an address.

Pins (`network.hosts`, presets) come before all this; they are the rule set's to know.
"""

from __future__ import annotations

import _socket
import os

from doorward.allowlists.host import Name
from doorward.plain_collections import deque
from doorward.proxy.loop import Loop, Promise
from doorward.proxy.task import DeadlinePassed
from doorward.typing_names import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Address, IPv6Address
    from typing import TypeAlias

    IP: TypeAlias = IPv4Address | IPv6Address
else:
    IP = object

THREADS = 32
"""Most look-ups at once: one that hangs keeps its thread until the system's resolver gives up."""

HOSTS_FILE = "/etc/hosts"


class LookupFailed(Exception):
    """The name does not resolve; the text says why, in a plain sentence."""


class LookupTimedOut(Exception):
    """The resolver said nothing in time."""


class Resolver(Protocol):
    """What the door needs of a resolver; tests and embedders bring their own."""

    async def resolve(self, name: Name, seconds: float) -> tuple[IP, ...]:
        """The addresses, in the order to be preferred, at least one. Raises LookupFailed, LookupTimedOut."""


class SystemResolver:
    """The machine's own resolver."""

    def __init__(self, loop: Loop, *, hosts_file: str = HOSTS_FILE) -> None:
        self._loop = loop
        self._hosts = HostsFile(hosts_file)
        self._free = THREADS
        self._queue: deque[Promise[None]] = deque()

    async def resolve(self, name: Name, seconds: float) -> tuple[IP, ...]:
        """See `Resolver`."""
        if name.text == "localhost":
            return parse_answers(("127.0.0.1", "::1"))
        found = self._hosts.find(name.text)
        if found:
            return found
        deadline = self._loop.now + seconds
        query = name.text.encode("ascii") + b"."  # bytes: str would pull in the idna codec
        try:
            await self._take_thread(deadline)
            return await self._loop.in_thread(lambda: self._look_up(query), deadline)
        except DeadlinePassed:
            raise LookupTimedOut(f"The resolver said nothing about {name.text} for {seconds:g} s.") from None

    async def _take_thread(self, deadline: float) -> None:
        if self._free:
            self._free -= 1
            return
        turn: Promise[None] = Promise(self._loop)
        self._queue.append(turn)
        try:
            await turn.wait(deadline)
        except BaseException:
            if turn.settled:
                self._give_thread()
            else:
                self._queue.remove(turn)
            raise

    def _give_thread(self) -> None:
        if self._queue:
            self._queue.popleft().set(None)
        else:
            self._free += 1

    def _look_up(self, query: bytes) -> tuple[IP, ...]:
        """In the worker thread."""
        try:
            answers = _socket.getaddrinfo(query, None, type=_socket.SOCK_STREAM)
        except _socket.gaierror as error:
            name = query[:-1].decode("ascii")
            raise LookupFailed(f"{name} does not resolve: {(error.strerror or 'no answer').lower()}.") from None
        finally:
            self._loop.post(self._give_thread)
        return parse_answers(str(answer[4][0]) for answer in answers)


def parse_answers(texts: Iterable[str]) -> tuple[IP, ...]:
    """Addresses as the system's resolver spells them, in order, each once; zones are dropped with their address."""
    from ipaddress import ip_address

    seen: dict[IP, None] = {}
    for text in texts:
        if "%" not in text:
            seen[ip_address(text)] = None
    return tuple(seen)


class HostsFile:
    """The machine's hosts file (hosts(5)), read again when it changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._table: dict[str, tuple[IP, ...]] = {}

    def find(self, name: str) -> tuple[IP, ...]:
        """The addresses listed for a lower-case name, in order; none for a name that is not in the file."""
        try:
            status = os.stat(self._path)
        except OSError:
            return ()
        stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        if stamp != self._stamp:
            self._table = self._read()
            self._stamp = stamp
        return self._table.get(name, ())

    def _read(self) -> dict[str, tuple[IP, ...]]:
        table: dict[str, tuple[IP, ...]] = {}
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                lines = file.readlines()
        except OSError:
            return table
        from ipaddress import ip_address

        for line in lines:
            words = line.partition("#")[0].split()
            try:
                ip = ip_address(words[0]) if len(words) > 1 else None
            except ValueError:
                continue
            if ip is not None:
                for name in words[1:]:
                    key = name.lower().rstrip(".")
                    if ip not in table.get(key, ()):
                        table[key] = (*table.get(key, ()), ip)
        return table

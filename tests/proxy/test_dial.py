"""Dialling: judged addresses only, in happy-eyeballs order (RFC 8305), under simulated time."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_address

import pytest

from doorward.proxy.channel import Channel
from doorward.proxy.dial import STAGGER, DialFailed, SocketDialler, dial, in_order
from doorward.proxy.loop import Group, Loop
from doorward.proxy.resolver import IP

Pair = Callable[[], tuple[Channel, Channel]]
V4 = [ip_address(f"192.0.2.{n}") for n in range(1, 5)]
V6 = [ip_address(f"2001:db8::{n}") for n in range(1, 5)]


class Decided(Channel):
    """A connecting channel whose outcome the test decides."""

    __slots__ = ("code", "shut")

    def __init__(self, loop: Loop, sock: socket.socket) -> None:
        super().__init__(loop, sock)
        self.can_read = self.can_write = False
        self.shut = False

    def watch_writing(self) -> None:
        """The pair's sockets are writable at once; only the test decides."""

    def decide(self, code: int) -> None:
        self.code = code
        self.can_write = True
        if self.writer is not None:
            self.writer._wake()

    def close(self) -> None:
        self.shut = True
        super().close()


class Plan:
    """Outcomes by address: seconds until it is decided, and its error (0 for success); None never answers."""

    def __init__(self, plan: dict[str, tuple[float, int] | None]) -> None:
        self.plan = plan
        self.begun: list[tuple[str, float]] = []
        self.channels: dict[str, Decided] = {}
        self._start: float | None = None
        self.group: Group | None = None
        self._socks: list[socket.socket] = []

    def begin(self, loop: Loop, ip: IP, port: int) -> Channel:
        if self._start is None:
            self._start = loop.now
        self.begun.append((str(ip), round(loop.now - self._start, 3)))
        outcome = self.plan[str(ip)]
        if outcome is not None and outcome[0] < 0:
            raise OSError(outcome[1], "at once")
        left, right = socket.socketpair()
        left.setblocking(False)
        self._socks += [left, right]
        channel = self.channels[str(ip)] = Decided(loop, left)
        if outcome is not None:
            seconds, code = outcome

            async def decide() -> None:
                await loop.sleep(seconds)
                channel.decide(code)

            assert self.group is not None
            self.group.start(decide())
        return channel

    def close(self) -> None:
        for sock in self._socks:
            sock.close()


@pytest.fixture
def run(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[str, Plan]]]:
    made: list[Plan] = []

    def code(self: socket.socket, level: int, option: int) -> int:
        owner = next(c for plan in made for c in plan.channels.values() if c.sock is self)
        return owner.code

    monkeypatch.setattr(socket.socket, "getsockopt", code)
    monkeypatch.setattr(Loop, "_register", lambda self, watch: None)

    def go(plan: dict[str, tuple[float, int] | None], addresses: list[IP], seconds: float = 10) -> tuple[str, Plan]:
        dialler = Plan(plan)
        made.append(dialler)

        async def main() -> str:
            async with Group(loop) as group:
                dialler.group = group
                channel, ip = await dial(loop, dialler, addresses, 443, seconds)
                channel.close()
                group.cancel()
            return str(ip)

        try:
            return loop.run(main()), dialler
        finally:
            dialler.close()

    yield go


def test_families_take_turns_beginning_with_the_first() -> None:
    assert in_order([*V6[:3], *V4[:2]]) == [V6[0], V4[0], V6[1], V4[1], V6[2]]
    assert in_order([V4[0], V4[1], V6[0]]) == [V4[0], V6[0], V4[1]]
    assert in_order([]) == []


def test_one_address_is_dialled_alone(run: Callable[..., tuple[str, Plan]]) -> None:
    ip, plan = run({str(V4[0]): (0.1, 0)}, [V4[0]])
    assert ip == str(V4[0])
    assert plan.begun == [(str(V4[0]), 0)]


def test_a_slow_attempt_gets_company_and_the_first_to_connect_wins(run: Callable[..., tuple[str, Plan]]) -> None:
    ip, plan = run({str(V6[0]): None, str(V4[0]): (0.1, 0), str(V6[1]): (0.1, 0)}, [V6[0], V6[1], V4[0]])
    assert ip == str(V4[0])
    assert plan.begun == [(str(V6[0]), 0), (str(V4[0]), STAGGER)]
    assert plan.channels[str(V6[0])].shut, "the loser is closed"


def test_the_first_may_still_win_after_it_got_company(run: Callable[..., tuple[str, Plan]]) -> None:
    ip, plan = run({str(V6[0]): (0.3, 0), str(V4[0]): (5, 0)}, [V6[0], V4[0]])
    assert ip == str(V6[0])
    assert plan.channels[str(V4[0])].shut


def test_a_failure_is_followed_at_once(run: Callable[..., tuple[str, Plan]]) -> None:
    refused = errno.ECONNREFUSED
    outcomes = {str(V6[0]): (0.05, refused), str(V4[0]): (-1, refused), str(V6[1]): (0.05, 0)}
    ip, plan = run(outcomes, [V6[0], V4[0], V6[1]])
    assert ip == str(V6[1])
    assert plan.begun == [(str(V6[0]), 0), (str(V4[0]), 0.05), (str(V6[1]), 0.05)]


def test_when_all_fail_the_last_reason_is_given(run: Callable[..., tuple[str, Plan]]) -> None:
    with pytest.raises(DialFailed, match=r"192\.0\.2\.1 port 443: connection refused"):
        run({str(V6[0]): (-1, errno.ENETUNREACH), str(V4[0]): (0.1, errno.ECONNREFUSED)}, [V6[0], V4[0]])


def test_silence_ends_at_the_limit(loop: Loop, run: Callable[..., tuple[str, Plan]]) -> None:
    start = loop.now
    with pytest.raises(DialFailed, match="did not answer in 7 s"):
        run({str(V6[0]): None, str(V4[0]): None}, [V6[0], V4[0]], 7)
    assert loop.now - start == pytest.approx(7)


def test_no_address_is_a_failure_and_no_attempt(run: Callable[..., tuple[str, Plan]]) -> None:
    with pytest.raises(DialFailed):
        run({}, [])


def test_real_sockets_connect_and_are_refused() -> None:
    from doorward.proxy.clock import MonotonicClock

    loop = Loop(MonotonicClock())
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        async def main() -> str:
            channel, ip = await dial(loop, SocketDialler(), [ip_address("127.0.0.1")], port, 5)
            accepted, _ = server.accept()
            await channel.send(b"x")
            assert accepted.recv(1) == b"x"
            accepted.close()
            channel.close()
            return str(ip)

        assert loop.run(main()) == "127.0.0.1"

    async def refused() -> None:
        with pytest.raises(DialFailed, match="connection refused"):
            await dial(loop, SocketDialler(), [ip_address("127.0.0.1")], port, 5)

    loop.run(refused())
    loop.close()


def test_one_dialler_goes_to_whichever_place_is_asked_for() -> None:
    """It knows the latest; another address or another port is another place."""
    loop = Loop()
    dialler = SocketDialler()
    v4, again, v6 = ip_address("127.0.0.1"), ip_address("127.0.0.1"), ip_address("::1")
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as three,
    ):
        asked = [(v4, one), (v4, one), (v4, two), (again, two), (v6, three), (v4, one)]
        for ip, server in asked:
            channel = dialler.begin(loop, ip, server.getsockname()[1])
            assert channel.sock.getpeername()[:2] == server.getsockname()[:2]
            channel.close()
    loop.close()

"""Tunnels: half-closes, resets, idle limits, and the judging of first bytes, under simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from doorward.allowlists.host import Name
from doorward.proxy.channel import Channel
from doorward.proxy.first_bytes import FirstBytes
from doorward.proxy.limits import DEFAULT
from doorward.proxy.loop import Group, Loop
from doorward.proxy.splice import PipePool
from doorward.proxy.tunnel import Tunnel

Pair = Callable[[], tuple[Channel, Channel]]


@pytest.fixture
def pipes() -> Iterator[PipePool]:
    pool = PipePool()
    yield pool
    pool.close()


class Ends:
    """A tunnel and the two peers at its ends."""

    def __init__(self, loop: Loop, pair: Pair, pipes: PipePool) -> None:
        self.client, inner_client = pair()
        self.server, inner_server = pair()
        self.tunnel = Tunnel(loop, inner_client, inner_server, pipes)
        self.inner = inner_client, inner_server


@pytest.fixture
def ends(loop: Loop, pair: Pair, pipes: PipePool) -> Ends:
    return Ends(loop, pair, pipes)


def judge(*, port: int = 5432, named: bool = True) -> FirstBytes:
    return FirstBytes(Name("a.test"), port, DEFAULT, port_named=named, tls_any=False, allows=lambda name: False)


def test_a_half_close_leaves_the_other_direction_open(loop: Loop, ends: Ends) -> None:
    async def main() -> bytes:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(3600))
            await ends.client.send(b"question")
            ends.client.end()
            question = await ends.server.recv()
            assert await ends.server.recv() == b""
            await loop.sleep(100)
            await ends.server.send(b"answer to " + question)
            ends.server.close()
            return await ends.client.recv()

    assert loop.run(main()) == b"answer to question"
    assert ends.tunnel.closed_by == "client"
    assert ends.tunnel.error is None
    assert (ends.tunnel.moved_up, ends.tunnel.moved_down) == (8, 18)


def test_quiet_streams_are_not_cut_before_the_idle_limit(loop: Loop, ends: Ends) -> None:
    async def main() -> list[bytes]:
        got = []
        async with Group(loop) as group:
            group.start(ends.tunnel.run(100))
            for _ in range(5):
                await loop.sleep(99)
                await ends.server.send(b"still here")
                got.append(await ends.client.recv())
            start = loop.now
        assert loop.now - start == pytest.approx(100)
        return got

    assert loop.run(main()) == [b"still here"] * 5
    assert ends.tunnel.closed_by == "proxy"
    assert ends.tunnel.error == "idle for 100 s"


class Resetting(Channel):
    """A channel whose peer resets it as soon as it is read."""

    def try_recv(self, size: int = 0) -> bytes | None:
        raise ConnectionResetError


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_reset_of_one_side_is_told_to_the_other(
    loop: Loop, pair: Pair, pipes: PipePool, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file must not look whole: the sink of a broken source is aborted, not ended."""
    aborted: list[Channel] = []

    def note(self: Channel) -> None:
        aborted.append(self)

    monkeypatch.setattr(Channel, "abort", note)
    broken, whole = Resetting(loop, pair()[0].sock), pair()[0]
    tunnel = Tunnel(loop, broken, whole, pipes) if side == "client" else Tunnel(loop, whole, broken, pipes)
    loop.run(tunnel.run(100))
    assert aborted == [whole]
    assert tunnel.closed_by == side
    assert tunnel.error == f"connection reset by the {side}"


def test_cancelling_gives_the_pipe_back_and_says_proxy(loop: Loop, ends: Ends, pipes: PipePool) -> None:
    async def main() -> None:
        async with Group(loop) as group:
            task = group.start(ends.tunnel.run(3600))
            group.start(ends.client.send(b"x" * 3_000_000))
            await loop.sleep(10)
            assert ends.tunnel._up is not None
            assert ends.tunnel._up._held
            group.cancel()
            assert not task.done

    loop.run(main())
    assert ends.tunnel.closed_by == "proxy"
    assert ends.tunnel._up is not None
    assert ends.tunnel._up._pipe is None


def test_the_server_may_speak_first_where_the_rule_names_the_port(loop: Loop, ends: Ends) -> None:
    async def main() -> tuple[bytes, bytes]:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(3600, b"", judge, may_be_silent=True))
            await ends.server.send(b"220 ready\r\n")
            banner = await ends.client.recv()
            await loop.sleep(1000)  # as slow as it likes
            await ends.client.send(b"HELO there\r\n")
            greeting = await ends.server.recv()
            ends.client.close()
            ends.server.close()
            return banner, greeting

    assert loop.run(main()) == (b"220 ready\r\n", b"HELO there\r\n")
    assert ends.tunnel.disagreement is None


def test_the_server_does_not_speak_first_elsewhere(loop: Loop, ends: Ends) -> None:
    async def main() -> None:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(3600, b"", lambda: judge(port=443, named=False)))
            await ends.server.send(b"surprise")

    start = loop.now
    loop.run(main())
    assert loop.now - start == pytest.approx(DEFAULT.first_bytes_time)
    assert ends.tunnel.disagreement is not None
    assert ends.tunnel.moved_down == 0


def test_no_byte_goes_on_when_the_names_disagree(loop: Loop, ends: Ends) -> None:
    async def main() -> None:
        await ends.tunnel.run(3600, b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", lambda: judge(port=80, named=False))

    loop.run(main())
    assert ends.tunnel.disagreement is not None
    assert ends.tunnel.disagreement.said == "b.test"
    assert ends.tunnel.moved_up == 0
    assert ends.server.try_recv() is None


def test_held_bytes_go_on_first_and_with_their_end(loop: Loop, ends: Ends) -> None:
    head = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"

    async def main() -> bytes:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(3600, head[:10], lambda: judge(port=80, named=False)))
            await loop.turn()
            await ends.client.send(head[10:] + b"body")
            ends.client.end()
            got = b""
            while data := await ends.server.recv():
                got += data
            ends.server.close()
        return got

    assert loop.run(main()) == head + b"body"


def test_a_pause_inside_a_head_ends_after_the_limit(loop: Loop, ends: Ends) -> None:
    async def main() -> None:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(3600, b"", lambda: judge(port=80), may_be_silent=True))
            await loop.sleep(1000)
            await ends.client.send(b"GET / HT")

    start = loop.now
    loop.run(main())
    assert loop.now - start == pytest.approx(1000 + DEFAULT.first_bytes_time)
    assert ends.tunnel.disagreement is not None


def test_a_listening_client_that_ended_its_side_still_gets_the_banner(loop: Loop, ends: Ends) -> None:
    async def main() -> bytes:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(3600, b"", judge, may_be_silent=True))
            ends.client.end()
            assert await ends.server.recv() == b""
            await ends.server.send(b"220 ready\r\n")
            ends.server.close()
            return await ends.client.recv()

    assert loop.run(main()) == b"220 ready\r\n"


def test_a_tunnel_that_is_never_used_ends_with_its_client(loop: Loop, ends: Ends) -> None:
    async def main() -> None:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(3600, b"", judge, may_be_silent=True))
            await loop.sleep(1000)
            ends.client.close()
            assert await ends.server.recv() == b""
            ends.server.close()

    start = loop.now
    loop.run(main())
    assert loop.now - start == pytest.approx(1000)
    assert ends.tunnel.closed_by == "client"
    assert ends.tunnel.error is None
    assert ends.tunnel.content is None
    assert (ends.tunnel.moved_up, ends.tunnel.moved_down) == (0, 0)


def test_a_client_may_still_speak_first_after_the_server_ended(loop: Loop, ends: Ends) -> None:
    async def main() -> bytes:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(3600, b"", judge, may_be_silent=True))
            ends.server.end()
            assert await ends.client.recv() == b""
            await loop.sleep(1000)
            await ends.client.send(b"last words\r\n")
            ends.client.end()
            got = b""
            while data := await ends.server.recv():
                got += data
            return got

    assert loop.run(main()) == b"last words\r\n"
    assert ends.tunnel.closed_by == "server"
    assert ends.tunnel.content == "uninspected"


def test_what_a_client_says_after_a_silence_is_judged(loop: Loop, ends: Ends) -> None:
    async def main() -> None:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(3600, b"", judge, may_be_silent=True))
            await loop.sleep(1000)
            await ends.client.send(b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n")

    loop.run(main())
    assert ends.tunnel.disagreement is not None
    assert ends.tunnel.disagreement.said == "b.test"
    assert ends.tunnel.content == "http"
    assert ends.server.try_recv() is None


def test_who_ended_first_is_waited_for_no_longer_than_the_idle_limit(loop: Loop, ends: Ends) -> None:
    async def main() -> None:
        async with Group(loop) as group:
            group.start(ends.tunnel.run(100))
            await loop.sleep(99)
            ends.client.end()
            assert await ends.server.recv() == b""

    start = loop.now
    loop.run(main())
    assert loop.now - start == pytest.approx(199)
    assert ends.tunnel.closed_by == "proxy"
    assert ends.tunnel.error == "idle for 100 s"

"""Requests that came before: read past with the same outcome, judged by the rules in force, and never too many."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.ruleset import RuleSet
from doorward.proxy.channel import Channel
from doorward.proxy.http1 import END, BadMessage, RequestEvent, RequestHead, RequestReader
from doorward.proxy.known_requests import LONGEST, KnownRequests, ReadRequest
from doorward.proxy.limits import DEFAULT
from doorward.proxy.loop import Loop
from doorward.proxy.policy import Policy
from doorward.proxy.request_stream import RequestStream
from doorward.proxy.server import Server
from doorward.proxy.target import Target, parse_target

Pair = Callable[[], tuple[Channel, Channel]]
GET = b"GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\n\r\n"
POST = b"POST http://a.test/1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\n"


class Reads:
    """A stream whose channel gives these reads, remembering what it may; `heads` are those that came before."""

    def __init__(self, loop: Loop, policy: Policy, *reads: bytes) -> None:
        left = [*reads[1:], b""]

        async def recv(size: int, deadline: float) -> bytes:
            return left.pop(0)

        self.policy = policy
        channel = cast(Channel, SimpleNamespace(loop=loop, recv=recv))
        self.stream = RequestStream(cast(Server, SimpleNamespace(policy=policy)), channel, reads[0], loop.now + 10)
        self.known = 0

    async def events(self) -> list[RequestEvent | str]:
        """All of them, and the sentence of the error at the end, if it ends with one."""
        found: list[RequestEvent | str] = []
        stream = self.stream
        try:
            while (head := await stream.next_head()) is not None:
                found.append(head)
                if stream.known is not None:
                    self.known += 1
                    if head.method == "CONNECT":
                        break
                    found.append(END)
                    continue
                if stream.alone is not None:
                    self.policy.known_requests.add(stream.alone, ReadRequest(head, cast(Target, None)))
                if head.method == "CONNECT" or head.upgrade is not None:
                    break  # what follows is no request
                while True:
                    events = await stream.more(0)
                    found.append(events.popleft())
                    if found[-1] == END:
                        break
        except BadMessage as error:
            found.append(error.sentence)
        return found


def read(loop: Loop, policy: Policy, *reads: bytes) -> tuple[list[RequestEvent | str], int]:
    reader = Reads(loop, policy, *reads)
    return loop.run(reader.events()), reader.known


def fresh() -> Policy:
    return Policy(RuleSet.build([], []))


@given(
    st.lists(
        st.sampled_from(
            [
                *(GET, GET.replace(b"/1", b"/2"), GET + GET, GET[:20], GET[20:], b"\r\n", b"\r\n" + GET, POST, b"abc"),
                *(POST + b"abc", GET.replace(b"GET", b"CONNECT"), GET.replace(b"1.1\r", b"1.0\r"), b"nonsense\r\n\r\n"),
                GET.replace(b"Host", b"Connection: upgrade\r\nUpgrade: x\r\nHost"),
                POST.replace(b"3", b"0"),
            ]
        ),
        min_size=1,
        max_size=12,
    )
)
def test_what_is_known_is_read_as_what_is_not(reads: list[bytes]) -> None:
    loop = Loop()
    try:
        policy = fresh()
        first, _ = read(loop, policy, *reads)
        again, _ = read(loop, policy, *reads)
        assert again == first
        parsed, failed = [], ""
        reader = RequestReader(DEFAULT)
        for data in (*reads, None):
            try:
                parsed += reader.eof() if data is None else reader.feed(data)
                if reader.failed is not None:
                    raise reader.failed
            except BadMessage as error:
                failed = error.sentence
                break
        if not any(isinstance(event, RequestHead) and (event.method == "CONNECT" or event.upgrade) for event in parsed):
            assert [event for event in first if isinstance(event, RequestHead)] == [
                event for event in parsed if isinstance(event, RequestHead)
            ]
            assert [event for event in first if isinstance(event, str)] == ([failed] if failed else [])
    finally:
        loop.close()


def test_only_a_head_that_came_alone_is_remembered(loop: Loop) -> None:
    policy = fresh()
    assert read(loop, policy, GET, GET, GET)[1] == 2
    for cut in (
        (GET + GET,),
        (GET[:9], GET[9:]),
        (POST + b"abc",),
        (GET.replace(b"\r\nHost", b"\r\nX: y\r\nHost")[:-1], b"\n"),
    ):
        policy = fresh()
        read(loop, policy, *cut)
        assert read(loop, policy, *cut)[1] == 0


def test_a_long_head_is_not_remembered(loop: Loop) -> None:
    policy = fresh()
    long = GET.replace(b"Host", b"X: " + b"y" * LONGEST + b"\r\nHost")
    assert read(loop, policy, long, long)[1] == 0


def test_limits_of_another_policy_are_not_gone_round(loop: Loop) -> None:
    policy = fresh()
    read(loop, policy, GET)
    reader = Reads(loop, policy, GET.replace(b"/1", b"/2"), GET)
    stricter = Policy(policy.rules, DEFAULT._replace(head=len(GET) - 1))
    stricter.known_requests.add(GET, ReadRequest(cast(RequestHead, None), cast(Target, None)))
    cast(SimpleNamespace, reader.stream._server).policy = stricter
    loop.run(reader.events())
    assert reader.known == 0


def test_there_are_never_too_many() -> None:
    known = KnownRequests()
    head = next(iter(RequestReader(DEFAULT).feed(GET)))
    assert isinstance(head, RequestHead)
    request = ReadRequest(head, parse_target(head))
    for number in range(1000):
        known.add(b"%d" % number, request)
    assert sum(known.find(b"%d" % number) is request for number in range(1000)) < 300
    assert known.find(b"999") is request


@pytest.mark.parametrize("tail", [b"", b"x"])
def test_every_byte_counts(loop: Loop, tail: bytes) -> None:
    policy = fresh()
    read(loop, policy, GET)
    assert read(loop, policy, GET + tail)[1] == (not tail)

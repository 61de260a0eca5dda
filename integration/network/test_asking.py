"""A host in no rule is asked about: through the whole door."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from doorward.proxy.asking import Answer, Question


class Person:
    """Answers as told; counts."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Question] = []
        self.heard = threading.Event()
        self.withdrawn = threading.Event()
        self.hold: Any = None

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        self.heard.set()
        if self.hold is not None:
            try:
                await self.hold.wait()
            except BaseException:
                self.withdrawn.set()
                raise
        return self.answer


def get(port: int) -> bytes:
    return f"GET http://asked.test:{port}/ HTTP/1.1\r\nHost: asked.test:{port}\r\nConnection: close\r\n\r\n".encode()


def test_yes_for_the_session_is_asked_once(network: Any) -> None:
    origin = network.origin()
    person = Person(Answer.ALLOW_FOR_SESSION)
    door = network.door(decider=person, hosts={"asked.test": "127.0.0.1"})
    for _ in range(3):
        assert network.ask(door, get(origin.port)).endswith(b"\r\n\r\nA")
    assert len(person.asked) == 1
    assert door.sink.of("event")[0]["source"] == "decider"


def test_yes_for_once_is_asked_for_each_request_that_is_the_same(network: Any) -> None:
    origin = network.origin()
    person = Person(Answer.ALLOW_ONCE)
    door = network.door(decider=person, hosts={"asked.test": "127.0.0.1"})
    sock = network.client(door)
    for count in (1, 2):
        sock.sendall(get(origin.port).replace(b"Connection: close\r\n", b""))
        network.read_exactly(sock, 1, network.read_head(sock)[1])
        assert len(person.asked) == count


def test_no_is_a_refusal_with_its_reason(network: Any) -> None:
    door = network.door(decider=Person(Answer.DENY))
    told = json.loads(network.ask(door, get(80)).partition(b"\r\n\r\n")[2])
    assert told["reason"] == "not_answered"
    assert told["source"] == "decider"
    assert told["hint"] == "--allow asked.test"
    assert door.resolver.asked == []


def test_silence_is_no(network: Any) -> None:
    from doorward.proxy.loop import Promise

    person = Person(Answer.ALLOW_ONCE)
    door = network.door(decider=person, answer_time=0.1)
    person.hold = Promise(door.loop)
    assert network.ask(door, get(80)).startswith(b"HTTP/1.1 403 ")
    assert person.withdrawn.wait(network.wait)


def test_a_yes_does_not_open_private_addresses(network: Any) -> None:
    canary = network.canary()
    door = network.door(decider=Person(Answer.ALLOW_ONCE))
    door.resolver.set("asked.test", ["127.0.0.1"])
    told = json.loads(network.ask(door, get(canary.port)).partition(b"\r\n\r\n")[2])
    assert told["reason"] == "not_allowed_local"
    assert canary.touched == 0


def test_a_client_that_leaves_withdraws_and_is_recorded(network: Any) -> None:
    from doorward.proxy.loop import Promise

    person = Person(Answer.ALLOW_ONCE)
    door = network.door(decider=person)
    person.hold = Promise(door.loop)
    sock = network.client(door)
    sock.sendall(get(80))
    assert person.heard.wait(network.wait)
    sock.close()
    assert person.withdrawn.wait(network.wait)
    record = door.sink.network()[0]
    assert record["decision"] == "deny"
    assert "the client left" in door.sink.of("refusal")[0]["message"]


def test_many_clients_share_one_question(network: Any) -> None:
    from doorward.proxy.loop import Promise

    origin = network.origin()
    person = Person(Answer.ALLOW_ONCE)
    door = network.door(decider=person, hosts={"asked.test": "127.0.0.1"})
    person.hold = Promise(door.loop)
    socks = [network.client(door) for _ in range(5)]
    for sock in socks:
        sock.sendall(get(origin.port))
    deadline = time.monotonic() + network.wait
    while door.call(lambda: sum(each.waiting for each in door.server.asking._open.values())) < 5:
        assert time.monotonic() < deadline
    door.call(lambda: person.hold.set(None))
    for sock in socks:
        assert network.read_all(sock).endswith(b"\r\n\r\nA")
    assert len(person.asked) == 1

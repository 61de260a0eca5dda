"""Which address is dialled: the judged one, once looked up, and no other."""

from __future__ import annotations

import json
from typing import Any

import pytest

PUBLIC = "93.184.216.34"  # globally reachable; never dialled: the dialler is a stand-in


def connect(network: Any, door: Any, authority: str) -> bytes:
    return network.ask(door, f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())


def told(reply: bytes) -> dict[str, Any]:
    assert reply.startswith(b"HTTP/1.1 403 "), reply
    return json.loads(reply.partition(b"\r\n\r\n")[2])


def test_a_listed_name_does_not_open_its_address(network: Any) -> None:
    """P-IP-03."""
    canary = network.canary()
    door = network.door([network.named(canary.port)])
    for host in ("127.0.0.1", "[::1]"):
        assert told(connect(network, door, f"{host}:{canary.port}"))["reason"] == "not_allowed_local"
    assert canary.touched == 0
    assert door.dialler.attempts == []


@pytest.mark.parametrize("host", ["169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "100.100.100.100"])
def test_metadata_addresses_are_never_dialled_under_a_star(network: Any, host: str) -> None:
    """P-IP-07."""
    door = network.door(["*"])
    reply = network.ask(door, f"GET http://{host}/latest/meta-data/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert "metadata" in told(reply)["message"]
    assert door.dialler.attempts == []


def test_a_name_that_leads_to_metadata_is_refused_too(network: Any) -> None:
    door = network.door(["*"])
    door.resolver.set("innocent.test", ["169.254.169.254"])
    refusal = told(connect(network, door, "innocent.test:443"))
    assert refusal["reason"] == "not_allowed_local"
    assert "169.254.169.254" in refusal["message"]
    assert door.dialler.attempts == []


def test_the_judged_address_is_the_dialled_one(network: Any) -> None:
    """P-DN-02: one look-up for each attempt; a second answer has nothing to rebind."""
    origin, canary = network.origin(b"A"), network.canary()
    door = network.door(["rebind.test"])
    door.dialler.routes[PUBLIC, 80] = ("127.0.0.1", origin.port)
    door.dialler.routes["127.0.0.1", 80] = ("127.0.0.1", canary.port)
    door.resolver.set("rebind.test", [PUBLIC], ["127.0.0.1"])
    request = b"GET http://rebind.test/ HTTP/1.1\r\nHost: rebind.test\r\nConnection: close\r\n\r\n"
    assert network.ask(door, request).endswith(b"\r\n\r\nA")
    assert door.resolver.asked == ["rebind.test"]
    assert door.dialler.attempts == [(PUBLIC, 80)]
    assert network.ask(door, request).endswith(b"\r\n\r\nA"), "a kept connection leads where it was judged to lead"
    door.call(door.server.pool.close)
    assert told(network.ask(door, request))["reason"] == "not_allowed_local"
    assert door.resolver.asked == ["rebind.test"] * 2
    assert door.dialler.attempts == [(PUBLIC, 80)]
    assert canary.touched == 0


@pytest.mark.parametrize(
    ("answer", "dialled"),
    [
        ([PUBLIC, "10.0.0.5"], [PUBLIC]),
        (["10.0.0.5"], []),
        (["::ffff:10.0.0.5", PUBLIC], [PUBLIC]),
        (["::ffff:10.0.0.5", "fe80::1", "127.0.0.1"], []),
    ],
)
def test_private_addresses_of_a_mixed_answer_are_dropped(network: Any, answer: list[str], dialled: list[str]) -> None:
    """P-DN-03."""
    door = network.door(["mixed.test"])
    door.resolver.set("mixed.test", answer)
    reply = connect(network, door, "mixed.test:443")
    assert [ip for ip, _ in door.dialler.attempts] == dialled
    if dialled:
        assert reply.startswith(b"HTTP/1.1 502 ")  # the stand-in reaches nobody
    else:
        refusal = told(reply)
        assert refusal["reason"] == "not_allowed_local"
        assert "10.0.0.5" in refusal["message"]


def test_an_address_deny_beats_the_name(network: Any) -> None:
    door = network.door(["a.test"], [PUBLIC])
    door.resolver.set("a.test", [PUBLIC])
    assert told(connect(network, door, "a.test:443"))["reason"] == "denied"
    assert door.dialler.attempts == []


def test_a_refused_loopback_address_is_called_one_in_any_spelling(network: Any) -> None:
    """P-EV-03: a client that compares NO_PROXY as text sends it here; the 403 must not blame the server."""
    door = network.door(["*"])
    for host in ("[0:0:0:0:0:0:0:1]", "[::1]", "127.0.0.1", "[::ffff:7f00:1]"):
        refusal = told(network.ask(door, f"GET http://{host}:8080/ HTTP/1.1\r\nHost: {host}:8080\r\n\r\n".encode()))
        assert "loopback" in refusal["message"], refusal
    assert door.dialler.attempts == []


def test_a_narrow_loopback_grant(network: Any) -> None:
    """P-IP-04."""
    origin = network.origin()
    door = network.door([f"127.0.0.1:{origin.port}"])
    network.tunnel(door, f"127.0.0.1:{origin.port}")
    network.tunnel(door, f"[::ffff:127.0.0.1]:{origin.port}")
    for authority in (f"127.0.0.1:{origin.port + 1}", f"127.0.0.2:{origin.port}", f"localhost:{origin.port}"):
        told(connect(network, door, authority))


def test_localhost_is_tried_on_both_families_and_never_looked_up(network: Any) -> None:
    origin = network.origin(host="::1")
    door = network.door([f"localhost:{origin.port}"])
    network.tunnel(door, f"localhost:{origin.port}")
    assert door.resolver.asked == []
    assert [ip for ip, _ in door.dialler.attempts] == ["127.0.0.1", "::1"]
    assert door.sink.of("event")[0]["host"] == "localhost"


def test_a_pin_is_the_resolution(network: Any) -> None:
    origin = network.origin()
    door = network.door([f"db.test:{origin.port}"], hosts={"db.test": "127.0.0.1"})
    network.tunnel(door, f"db.test:{origin.port}")
    assert door.resolver.asked == []
    assert door.dialler.attempts == [("127.0.0.1", origin.port)]


def test_a_denied_name_is_never_looked_up(network: Any) -> None:
    """P-DN-01, at the door."""
    door = network.door(["*"], ["**.blocked.test"])
    for host in ("secret.blocked.test", "blocked.test"):
        told(connect(network, door, f"{host}:443"))
        told(network.ask(door, f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()))
    assert door.resolver.asked == []

"""Rules for some methods only: what is read is held to them, and what cannot be read does not open."""

from __future__ import annotations

import json
from typing import Any

import pytest


def request(method: str, port: int, *, more: str = "", body: str = "") -> bytes:
    name = f"allowed.test:{port}"
    head = f"{method} http://{name}/x HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n{more}"
    if body:
        head += f"Content-Length: {len(body)}\r\n"
    return f"{head}\r\n{body}".encode()


@pytest.fixture
def read_only(network: Any) -> Any:
    origin = network.origin()
    door = network.door([network.named(origin.port, methods=["GET", "HEAD"])])
    return door, origin


def test_a_read_only_rule_holds_on_the_plain_path(network: Any, read_only: Any) -> None:
    """P-PP-03: refused before any look-up and any dial; GET still works."""
    door, origin = read_only
    answer = network.ask(door, request("POST", origin.port, body="four"))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert network.error_class(answer) == "blocked-by-method-policy"
    told = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (told["reason"], told["method"], told["source"]) == ("method_not_allowed", "POST", "baseline_policy")
    assert "POST" in told["hint"]
    assert door.resolver.asked == []
    assert door.dialler.attempts == []
    assert network.ask(door, request("GET", origin.port)).endswith(b"\r\n\r\nA")
    assert network.ask(door, request("HEAD", origin.port)).startswith(b"HTTP/1.1 200 ")
    records = door.sink.network(3)
    assert [(each["method"], each["decision"]) for each in records] == [
        ("POST", "deny"), ("GET", "allow"), ("HEAD", "allow"),
    ]  # fmt: skip


def test_methods_are_judged_request_by_request(network: Any, read_only: Any) -> None:
    """P-PP-03: a connection kept by a GET carries no DELETE."""
    door, origin = read_only
    sock = network.client(door)
    keep = request("GET", origin.port).replace(b"Connection: close\r\n", b"")
    sock.sendall(keep + request("DELETE", origin.port))
    answers = network.read_all(sock)
    assert answers.startswith(b"HTTP/1.1 200 ")
    assert answers.count(b"HTTP/1.1 403 ") == 1
    assert len(origin.heads) == 1


def test_no_tunnel_opens_by_a_rule_for_methods(network: Any, read_only: Any) -> None:
    """P-PP-03: CONNECT and SOCKS5 alike, since no method can be seen in them."""
    door, origin = read_only
    authority = f"allowed.test:{origin.port}"
    answer = network.ask(door, f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert network.error_class(answer) == "blocked-by-mitm-required"
    name = b"allowed.test"
    asked = b"\5\1\0" + b"\5\1\0\3" + bytes((len(name),)) + name + origin.port.to_bytes(2, "big")
    assert network.ask(door, asked)[2:4] == b"\5\2"
    assert door.dialler.attempts == []
    assert [each["reason"] for each in door.sink.network(2)] == ["mitm_required"] * 2


def test_an_upgrade_is_a_tunnel_too(network: Any, read_only: Any) -> None:
    """P-PP-03: behind a 101 the door reads nothing, so a GET that asks for one is refused."""
    door, origin = read_only
    more = "Upgrade: websocket\r\nConnection: upgrade\r\n"
    answer = network.ask(door, request("GET", origin.port, more=more).replace(b"Connection: close\r\n", b""))
    assert network.error_class(answer) == "blocked-by-mitm-required"
    assert origin.touched == 0


def test_what_rules_allow_adds_up(network: Any) -> None:
    origin = network.origin()
    rules = [network.named(origin.port, methods=["GET"]), network.named(origin.port, "*.test", methods=["PUT"])]
    door = network.door(rules)
    assert network.ask(door, request("GET", origin.port)).startswith(b"HTTP/1.1 200 ")
    assert network.ask(door, request("PUT", origin.port, body="four")).startswith(b"HTTP/1.1 200 ")
    assert network.ask(door, request("POST", origin.port, body="four")).startswith(b"HTTP/1.1 403 ")
    opened = network.door([*rules, network.named(origin.port)])
    network.tunnel(opened, f"allowed.test:{origin.port}").close()


def test_a_malformed_method_never_counts_as_an_allowed_one(network: Any, read_only: Any) -> None:
    door, origin = read_only
    for method in ("get", "GETT", "G\tT"):
        assert network.ask(door, request(method, origin.port))[9:12] in (b"400", b"403", b"501")
    assert origin.touched == 0


def test_paths_query_and_headers_hold_on_the_plain_path(network: Any) -> None:
    """Refused before any dial, request by request; spellings that servers read differently match nothing."""
    origin = network.origin()
    rule = network.named(origin.port, paths=["/pub/**"], query={"v": "1"}, headers={"x-kind": "a*"})
    door = network.door([rule])
    good = "X-Kind: abc\r\n"

    def ask(target: str, more: str = good) -> bytes:
        message = request("GET", origin.port, more=more).replace(b"/x HTTP", f"{target} HTTP".encode())
        answer: bytes = network.ask(door, message)
        return answer

    for target, more in (
        ("/private?v=1", good), ("/pub/../private?v=1", good), ("/pub/%2e%2e/private?v=1", good),
        ("/pub/..%2fprivate?v=1", good), ("/pub//x?v=1", good), ("/pub/x?v=2", good), ("/pub/x?v=1&v=2", good),
        ("/pub/x?v=1", ""), ("/pub/x?v=1", "X-Kind: b\r\n"), ("/pub/x?v=1", f"{good}X-Kind: b\r\n"),
    ):  # fmt: skip
        answer = ask(target, more)
        assert network.error_class(answer) == "blocked-by-method-policy", (target, more)
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["reason"] == "path_not_allowed"
    assert origin.touched == 0
    assert ask("/pub/x?v=1").startswith(b"HTTP/1.1 200 ")


def test_an_upgrade_to_a_path_that_a_rule_names(network: Any) -> None:
    """A rule with a path and without methods lets the request for it switch protocols."""
    origin = network.origin()
    door = network.door([network.named(origin.port, paths=["/x"])])
    more = "Upgrade: websocket\r\nConnection: upgrade\r\n"
    wanted = request("GET", origin.port, more=more)
    assert network.ask(door, wanted.replace(b"/x HTTP", b"/y HTTP")).startswith(b"HTTP/1.1 403 ")
    assert origin.touched == 0
    assert network.ask(door, wanted).startswith(b"HTTP/1.1 200 ")

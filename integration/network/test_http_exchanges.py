"""Requests and responses in their harder shapes: interim and early answers, bodies of every framing, broken servers."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from typing import Any

import pytest

from doorward.proxy import forward

BIG = os.urandom(3_000_000)


def request(port: int, method: str = "GET", *, more: str = "", body: bytes = b"") -> bytes:
    head = f"{method} http://allowed.test:{port}/ HTTP/1.1\r\nHost: allowed.test:{port}\r\n{more}"
    if body:
        head += f"Content-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


@pytest.fixture
def served(network: Any) -> Any:
    """Makes a door in front of a server whose connections `handle` serves."""

    def make(handle: Any, **options: Any) -> tuple[Any, Any]:
        origin = network.listener(handle)
        return network.door([network.named(origin.port)], **options), origin

    return make


# --- 100-continue ----------------------------------------------------------------------------------------------------


def test_the_origins_100_is_relayed_once(network: Any, served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-PP-08, first run: it is not waited for until ours is due."""
    monkeypatch.setattr(forward, "CONTINUE_AFTER", 60.0)

    def origin(sock: socket.socket) -> None:
        head, rest = network.read_head(sock)
        assert b"expect: 100-continue" in head.lower()
        assert rest == b""
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert network.read_exactly(sock, 4) == b"body"
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    door, server = served(origin)
    sock = network.client(door)
    start = time.monotonic()
    sock.sendall(request(server.port, "PUT", more="Expect: 100-continue\r\nContent-Length: 4\r\n"))
    head, _ = network.read_head(sock)
    assert head == b"HTTP/1.1 100 Continue\r\n\r\n"
    sock.sendall(b"body")
    head, rest = network.read_head(sock)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert network.read_exactly(sock, 2, rest) == b"ok"
    assert time.monotonic() - start < forward.CONTINUE_AFTER


def test_a_silent_origin_gets_a_moment_and_then_we_say_100(network: Any, served: Any) -> None:
    """P-PP-08, second run; the origin's late 100 is not relayed a second time."""

    def origin(sock: socket.socket) -> None:
        _, rest = network.read_head(sock)
        assert network.read_exactly(sock, 4, rest) == b"body"
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    door, server = served(origin)
    sock = network.client(door)
    start = time.monotonic()
    sock.sendall(request(server.port, "PUT", more="Expect: 100-continue\r\nContent-Length: 4\r\n"))
    head, _ = network.read_head(sock)
    assert head == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert 0.9 < time.monotonic() - start < network.wait
    sock.sendall(b"body")
    head, _ = network.read_head(sock)
    assert head.startswith(b"HTTP/1.1 200 ")


def test_a_client_that_does_not_wait_for_100(network: Any, served: Any) -> None:
    def origin(sock: socket.socket) -> None:
        _, rest = network.read_head(sock)
        assert network.read_exactly(sock, 4, rest) == b"body"
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    door, server = served(origin)
    sock = network.client(door)
    sock.sendall(request(server.port, "PUT", more="Expect: 100-continue\r\nContent-Length: 4\r\n") + b"body")
    head, _ = network.read_head(sock)
    assert head.startswith(b"HTTP/1.1 200 ")


def test_a_final_answer_instead_of_100(network: Any, served: Any) -> None:
    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno")

    door, server = served(origin)
    sock = network.client(door)
    sock.sendall(request(server.port, "PUT", more="Expect: 100-continue\r\nContent-Length: 4\r\n"))
    head, rest = network.read_head(sock)
    assert head.startswith(b"HTTP/1.1 417 ")
    assert b"\r\nConnection: close\r\n" in head
    assert rest + network.read_all(sock) == b"no"


def test_our_own_100_never_comes_behind_a_final_answer(
    network: Any, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both wait for the record to be kept; the final answer was first, and goes on."""
    monkeypatch.setattr("doorward.proxy.forward.CONTINUE_AFTER", 0.05)
    answered, go_on = threading.Event(), threading.Event()

    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 4\r\n\r\nno")
        answered.set()
        assert go_on.wait(network.wait)
        sock.sendall(b"no")
        network.read_all(sock)

    door, server = served(origin)
    door.sink.hold = True
    sock = network.client(door)
    sock.sendall(request(server.port, "PUT", more="Expect: 100-continue\r\nContent-Length: 4\r\n"))
    assert answered.wait(network.wait)
    sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        sock.recv(1)
    door.call(door.sink.release)
    reply = b""
    with pytest.raises(TimeoutError):
        while True:
            reply += sock.recv(1000)
    go_on.set()
    sock.settimeout(network.wait)
    reply += network.read_all(sock)
    assert reply.startswith(b"HTTP/1.1 417 ")
    assert reply.endswith(b"\r\n\r\nnono")


def test_a_server_that_breaks_off_after_an_interim_answer_is_502(network: Any, served: Any) -> None:
    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")

    door, server = served(origin)
    head, _, rest = network.ask(door, request(server.port)).partition(b"\r\n\r\n")
    assert head == b"HTTP/1.1 103 Early Hints"
    assert rest.startswith(b"HTTP/1.1 502 ")


def test_other_interim_answers_are_relayed(network: Any, served: Any) -> None:
    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    door, server = served(origin)
    sock = network.client(door)
    sock.sendall(request(server.port))
    head, rest = network.read_head(sock)
    assert head == b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    assert network.read_head(sock, rest)[0].startswith(b"HTTP/1.1 200 ")


# --- bodies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("splice", [True, False])
@pytest.mark.parametrize("framing", ["length", "chunked", "until-close"])
def test_long_answers_arrive_whole(network: Any, served: Any, framing: str, splice: bool) -> None:
    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        if framing == "length":
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BIG) + BIG)
            network.read_head(sock)
        elif framing == "chunked":
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for start in range(0, len(BIG), 100_000):
                part = BIG[start : start + 100_000]
                sock.sendall(b"%x\r\n" % len(part) + part + b"\r\n")
            sock.sendall(b"0\r\nX-Sum: 1\r\n\r\n")
        else:
            sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + BIG)

    door, server = served(origin, splice=splice)
    sock = network.client(door)
    sock.sendall(request(server.port))
    head, rest = network.read_head(sock)
    if framing == "length":
        body = network.read_exactly(sock, len(BIG), rest)
        sock.close()
    elif framing == "until-close":
        assert b"\r\nConnection: close\r\n" in head
        body = rest + network.read_all(sock)
    else:
        assert b"\r\nTransfer-Encoding: chunked\r\n" in head
        while not rest.endswith(b"0\r\nX-Sum: 1\r\n\r\n"):
            rest += sock.recv(1_000_000)
        body = b""
        while True:
            size, _, rest = rest.partition(b"\r\n")
            if not int(size, 16):
                break
            body += rest[: int(size, 16)]
            rest = rest[int(size, 16) + 2 :]
        sock.close()
    assert hashlib.sha256(body).digest() == hashlib.sha256(BIG).digest()
    record = door.sink.network()[0]
    assert record["bytes_down"] >= len(BIG)


@pytest.mark.parametrize("splice", [True, False])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_long_uploads_arrive_whole_and_the_next_request_follows(
    network: Any, framing: str, splice: bool
) -> None:
    origin = network.origin()
    door = network.door([network.named(origin.port)], splice=splice)
    sock = network.client(door)
    for _ in range(2):
        if framing == "length":
            sock.sendall(request(origin.port, "POST", body=BIG))
        else:
            sock.sendall(request(origin.port, "POST", more="Transfer-Encoding: chunked\r\n"))
            for start in range(0, len(BIG), 70_000):
                part = BIG[start : start + 70_000]
                sock.sendall(b"%x\r\n" % len(part) + part + b"\r\n")
            sock.sendall(b"0\r\n\r\n")
        head, rest = network.read_head(sock)
        assert head.startswith(b"HTTP/1.1 200 ")
        assert network.read_exactly(sock, 1, rest) == b"A"
    assert [hashlib.sha256(body).digest() for body in origin.bodies] == [hashlib.sha256(BIG).digest()] * 2


@pytest.mark.parametrize(
    ("method", "status"), [("HEAD", b"200 OK"), ("GET", b"204 No Content"), ("GET", b"304 Not Modified")]
)
def test_answers_without_a_body_keep_the_connection(network: Any, served: Any, method: str, status: bytes) -> None:
    def origin(sock: socket.socket) -> None:
        rest = b""
        for _ in range(2):
            _, rest = network.read_head(sock, rest)
            length = b"" if status.startswith(b"204") else b"Content-Length: 5\r\n"
            sock.sendall(b"HTTP/1.1 " + status + b"\r\n" + length + b"\r\n")

    door, server = served(origin)
    sock = network.client(door)
    for _ in range(2):
        sock.sendall(request(server.port, method))
        head, rest = network.read_head(sock)
        assert head.startswith(b"HTTP/1.1 " + status)
        assert rest == b""
    assert server.touched == 1


def test_the_same_request_again_is_counted_to_the_byte(network: Any) -> None:
    origin = network.origin()
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    asked = request(origin.port)
    for _ in range(4):
        sock.sendall(asked)
        network.read_exactly(sock, 1, network.read_head(sock)[1])
    sock.sendall(asked.replace(b"/ HTTP", b"/x HTTP"))
    network.read_exactly(sock, 1, network.read_head(sock)[1])
    sock.close()
    (record,) = door.sink.network()
    heads = [head for head in origin.heads if head.startswith(b"GET / ")]
    assert heads == heads[:1] * 4
    assert record["requests"] == len(origin.heads) == 5
    assert record["bytes_up"] == sum(map(len, origin.heads))
    assert record["bytes_down"] % 5 == 0


def test_an_http_1_0_client_gets_a_chunked_answer_unframed(network: Any, served: Any) -> None:
    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")

    door, server = served(origin)
    reply = network.ask(door, f"GET http://allowed.test:{server.port}/ HTTP/1.0\r\n\r\n".encode())
    assert reply.endswith(b"\r\n\r\nabcde")


def test_memory_is_bounded_when_the_client_does_not_read(network: Any, served: Any) -> None:
    sent = []

    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        sock.settimeout(0.5)
        part = b"10000\r\n" + bytes(0x10000) + b"\r\n"
        try:
            while len(sent) < 4000:
                sock.sendall(part)
                sent.append(len(part))
        except TimeoutError:
            pass

    door, server = served(origin)
    sock = network.client(door)
    sock.sendall(request(server.port))
    network.read_head(sock)
    done = threading.Event()

    def wait() -> None:
        server._threads[0].join(network.wait)
        done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert done.wait(network.wait)
    thread.join()
    assert sum(sent) < 60_000_000  # what the kernel's socket buffers took; the rest of 256 MB was held back


# --- early answers, half-closes, broken servers ----------------------------------------------------------------------


def test_an_early_answer_is_relayed_while_the_upload_goes_on(network: Any, served: Any) -> None:
    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
        network.read_all(sock)

    door, server = served(origin)
    sock = network.client(door)
    sock.sendall(request(server.port, "POST", more="Content-Length: 100000000\r\n") + b"x" * 1000)
    head, rest = network.read_head(sock)
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"\r\nConnection: close\r\n" in head
    assert network.read_exactly(sock, 3, rest) == b"big"
    assert sock.recv(1) == b""


def test_a_client_that_ended_its_side_still_gets_its_answer(network: Any) -> None:
    origin = network.origin(b"late")
    door = network.door([network.named(origin.port)])
    assert network.ask(door, request(origin.port), end=True).endswith(b"\r\n\r\nlate")


def test_a_stale_connection_is_replaced_once_for_a_request_that_may_be_repeated(network: Any, served: Any) -> None:
    heads = []

    def origin(sock: socket.socket) -> None:
        rest = b""
        head, rest = network.read_head(sock, rest)
        heads.append(head)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        if len(heads) == 1:
            head, rest = network.read_head(sock, rest)  # take the second request, and close without a word
            heads.append(head)

    door, server = served(origin)
    sock = network.client(door)
    for _ in range(2):
        sock.sendall(request(server.port))
        head, rest = network.read_head(sock)
        assert head.startswith(b"HTTP/1.1 200 ")
        network.read_exactly(sock, 2, rest)
    assert len(heads) == 3
    assert server.touched == 2


def test_a_post_is_never_sent_twice(network: Any, served: Any) -> None:
    heads = []

    def origin(sock: socket.socket) -> None:
        rest = b""
        for status in (b"200 OK", b""):
            head, rest = network.read_head(sock, rest)
            heads.append(head)
            rest = rest[4:]
            if status:
                sock.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")

    door, server = served(origin)
    sock = network.client(door)
    sock.sendall(request(server.port, "POST", body=b"once"))
    network.read_head(sock)
    sock.sendall(request(server.port, "POST", body=b"once"))
    head, _ = network.read_head(sock)
    assert head.startswith(b"HTTP/1.1 502 ")
    assert network.error_class(head) == "upstream-failed"
    assert len(heads) == 2


def test_a_server_that_breaks_off_in_the_middle_gives_a_reset_not_an_end(network: Any, served: Any) -> None:
    """Half an answer must not look whole."""

    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhalf")

    door, server = served(origin)
    sock = network.client(door)
    sock.sendall(request(server.port))
    with pytest.raises(ConnectionResetError):
        network.read_all(sock)
    record = door.sink.network()[0]
    assert record["error"].startswith("upstream-failed")
    assert record["closed_by"] == "server"


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    ],
)
def test_a_malformed_answer_is_502(network: Any, served: Any, reply: bytes) -> None:
    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        sock.sendall(reply)

    door, server = served(origin)
    answer = network.ask(door, request(server.port))
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert network.error_class(answer) == "upstream-failed"


def test_bytes_behind_an_answer_are_dropped_with_the_connection(network: Any, served: Any) -> None:
    """A second answer that nobody asked for must not become the answer to the next request."""

    def origin(sock: socket.socket) -> None:
        ok = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
        while network.read_head(sock)[0]:
            sock.sendall(ok + b"good" + ok + b"evil")

    door, server = served(origin)
    sock = network.client(door)
    for _ in range(2):
        sock.sendall(request(server.port))
        assert network.read_exactly(sock, 4, network.read_head(sock)[1]) == b"good"
    assert server.touched == 2


def test_a_silent_server_is_504(network: Any, served: Any) -> None:
    def origin(sock: socket.socket) -> None:
        network.read_head(sock)
        network.read_all(sock)

    door, server = served(origin, limits={"reply_time": 0.1})
    answer = network.ask(door, request(server.port))
    assert answer.startswith(b"HTTP/1.1 504 ")
    assert network.error_class(answer) == "upstream-timeout"


def test_the_servers_time_begins_when_the_request_is_whole(network: Any, served: Any) -> None:
    def origin(sock: socket.socket) -> None:
        _, rest = network.read_head(sock)
        network.read_exactly(sock, 4, rest)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    door, server = served(origin, limits={"reply_time": 0.8})
    sock = network.client(door)
    sock.sendall(request(server.port, "POST", more="Content-Length: 4\r\n"))
    sock.settimeout(0.25)
    for byte in b"body":
        with pytest.raises(TimeoutError):
            sock.recv(1)
        sock.sendall(bytes([byte]))
    sock.settimeout(network.wait)
    head, _ = network.read_head(sock)
    assert head.startswith(b"HTTP/1.1 200 ")


# --- upgrades --------------------------------------------------------------------------------------------------------

UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"


def test_an_upgrade_carries_bytes_both_ways_and_loses_none(network: Any, served: Any) -> None:
    """P-PP-09, P-PP-10."""

    def origin(sock: socket.socket) -> None:
        head, rest = network.read_head(sock)
        assert b"upgrade: websocket" in head.lower()
        assert b"connection: upgrade" in head.lower()
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfive!")
        while data := rest or sock.recv(100):
            sock.sendall(data)
            rest = b""

    door, server = served(origin)
    sock = network.client(door)
    sock.sendall(request(server.port, more=UPGRADE) + b"ab")
    head, rest = network.read_head(sock)
    assert head.startswith(b"HTTP/1.1 101 ")
    assert network.read_exactly(sock, 7, rest) == b"five!ab"
    sock.sendall(b"\0\1\2")
    assert network.read_exactly(sock, 3) == b"\0\1\2"
    sock.close()
    record = door.sink.network()[0]
    assert record["closed_by"] == "client"
    assert record["bytes_down"] > 10


def test_an_upgrade_to_a_refused_name(network: Any) -> None:
    """P-PP-10, second half."""
    door = network.door([network.named("*")])
    raw = f"GET http://blocked.test/ws HTTP/1.1\r\nHost: blocked.test\r\n{UPGRADE}\r\n"
    assert network.ask(door, raw.encode()).startswith(b"HTTP/1.1 403 ")


def test_an_upgrade_that_the_server_declines_goes_on_as_requests(network: Any, served: Any) -> None:
    def origin(sock: socket.socket) -> None:
        rest = b""
        for body in (b"no", b"ok"):
            _, rest = network.read_head(sock, rest)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + body)

    door, server = served(origin)
    sock = network.client(door)
    sock.sendall(request(server.port, more=UPGRADE) + request(server.port))
    got = b""
    while not got.endswith(b"ok"):
        got += sock.recv(1000)
    assert b"no" in got


def test_h2c_is_dropped_and_the_request_goes_on(network: Any) -> None:
    origin = network.origin()
    door = network.door([network.named(origin.port)])
    sock = network.client(door)
    more = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    sock.sendall(request(origin.port, more=more))
    head, _ = network.read_head(sock)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"upgrade" not in origin.heads[0].lower()
    assert b"http2" not in origin.heads[0].lower()

"""Requests inside TLS are held to the same rules as plain ones."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any


def request(method: str, target: str, port: int, *, host: str = "api.test", more: str = "", body: str = "") -> bytes:
    head = f"{method} {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n{more}"
    if body:
        head += f"Content-Length: {len(body)}\r\n"
    return f"{head}\r\n{body}".encode()


def memory(pid: int) -> int:
    """Bytes resident."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def test_methods_and_paths_hold_inside_tls(start: Any) -> None:
    """P-PP-03: the tunnel path applies the rule that the plain path does, record before answer."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"], "paths": ["/pub/**"]}])
    answer = door.ask("api.test", server.port, request("GET", "/pub/x?y=1", server.port))
    assert answer.startswith(b"HTTP/1.1 200 ") and b'"/pub/x?y=1"' in answer
    for method, target, reason in (
        ("POST", "/pub/x", "method_not_allowed"),
        ("GET", "/private", "path_not_allowed"),
        ("GET", "/pub/%2e%2e/private", "path_not_allowed"),
    ):
        body = "four" if method == "POST" else ""
        answer = door.ask("api.test", server.port, request(method, target, server.port, body=body))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 403 ") and b"x-proxy-error: blocked-by-method-policy" in head
        told = json.loads(body)
        assert (told["status"], told["reason"], told["method"]) == ("blocked", reason, method)
        assert (told["host"], told["protocol"]) == ("api.test", "https_connect")
        assert door.of("refusal")[-1]["reason"] == reason
    assert [each[:2] for each in server.seen] == [("GET", "/pub/x?y=1")]


def test_one_connection_carries_many_requests_each_judged(start: Any) -> None:
    """P-PP-03: a connection kept by a GET carries no DELETE."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    with door.tls("api.test", server.port) as sock:
        keep = request("GET", "/1", server.port).replace(b"Connection: close\r\n", b"")
        sock.sendall(keep)
        assert b"200 OK" in sock.recv(65536)
        sock.sendall(keep.replace(b" /1 ", b" /2 ") + request("DELETE", "/3", server.port))
        answers = door.read_all(sock)
    assert answers.count(b"HTTP/1.1 200 ") == 1 and answers.count(b"HTTP/1.1 403 ") == 1
    assert [each[:2] for each in server.seen] == [("GET", "/1"), ("GET", "/2")]
    assert door.wait_for("network", 2)[-1]["requests"] == 3


TWO_READINGS = (
    (
        "P-PP-04 both framings",
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
    ),
    ("P-PP-05 two lengths", b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nfour"),
    ("P-PP-05 list", b"Content-Length: 4, 4\r\n\r\nfour"),
    ("P-PP-05 plus", b"Content-Length: +4\r\n\r\nfour"),
    ("P-PP-05 minus", b"Content-Length: -1\r\n\r\nfour"),
    ("P-PP-05 underscore", b"Content-Length: 1_0\r\n\r\nfour"),
    ("P-PP-05 two words", b"Content-Length: 5 5\r\n\r\nfour!"),
    ("P-PP-05 other digits", "Content-Length: \u0665\r\n\r\nfour!".encode()),
    ("P-PP-05 empty", b"Content-Length:\r\n\r\nfour"),
    ("P-PP-05 nines", b"Content-Length: 999999999999999999999999999999\r\n\r\nfour"),
    ("P-PP-06 bare LF", b"X-A: 1\nX-B: 2\r\n\r\n"),
    ("P-PP-06 blank before the colon", b"X-A : 1\r\n\r\n"),
    ("P-PP-06 folded", b"X-A: 1\r\n\t2\r\n\r\n"),
    ("P-PP-06 NUL", b"X-A: \0\r\n\r\n"),
    ("P-PP-06 chunk size", b"Transfer-Encoding: chunked\r\n\r\n+4\r\nfour\r\n0\r\n\r\n"),
    ("P-PP-06 chunk size in C", b"Transfer-Encoding: chunked\r\n\r\n0x4\r\nfour\r\n0\r\n\r\n"),
    ("P-PP-06 chunk size below nothing", b"Transfer-Encoding: chunked\r\n\r\n-4\r\nfour\r\n0\r\n\r\n"),
    ("P-PP-06 chunk size as Python has it", b"Transfer-Encoding: chunked\r\n\r\n4_0\r\nfour\r\n0\r\n\r\n"),
    ("P-PP-07 chunk end", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n"),
)


def test_what_two_readers_would_read_differently(start: Any) -> None:
    """P-PP-04, P-PP-05, P-PP-06, P-PP-07 inside TLS: refused and closed, nothing of it whole at the server."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET", "POST"]}])
    head = f"POST /y HTTP/1.1\r\nHost: api.test:{server.port}\r\n".encode()
    for name, message in TWO_READINGS:
        answer = door.ask("api.test", server.port, head + message)
        assert not answer.startswith(b"HTTP/1.1 2"), (name, answer)
        assert answer.count(b"HTTP/1.1 ") <= 1, name
        assert server.seen == [], name


def test_a_lone_cr_in_the_target(start: Any) -> None:
    """P-PP-06."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    answer = door.ask("api.test", server.port, f"GET /\rx HTTP/1.1\r\nHost: api.test:{server.port}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 400 ") and b"x-proxy-error: bad-request" in answer
    assert door.wait_for("event", 1, "malformed_request")[0]["status"] == 400
    assert server.seen == []


def test_trailers_are_dropped_and_the_next_request_is_read_from_its_own_byte(start: Any) -> None:
    """P-PP-07, second run."""
    seen = []

    def answer(handler: Any) -> None:
        body = b""
        while size := int(handler.rfile.readline(), 16):
            body += handler.rfile.read(size)
            handler.rfile.readline()
        trailers = []
        while (line := handler.rfile.readline()) not in (b"\r\n", b""):
            trailers.append(line)
        seen.append((body, trailers))
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    server = start.server("api.test", answer=answer)
    door = start([{"host": f"api.test:{server.port}", "methods": ["POST"]}])
    one = (
        f"POST /1 HTTP/1.1\r\nHost: api.test:{server.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\nHost: blocked.test\r\nContent-Length: 9\r\nX-T: 1\r\n\r\n"
    ).encode()
    with door.tls("api.test", server.port) as sock:
        sock.sendall(one)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
        sock.sendall(one)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert [body for body, _ in seen] == [b"abc", b"abc"]
    assert all(b"blocked.test" not in line for _, trailers in seen for line in trailers)


def test_the_host_inside_is_the_one_the_tunnel_was_opened_to(start: Any) -> None:
    """P-TL-01 one layer further in: the server must not route by another name."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    for host in ("other.test", "api.test:1", "api.test@other.test", ""):
        answer = door.ask("api.test", server.port, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert answer[9:12] in (b"400", b"403"), answer
        assert server.seen == []
        if host == "other.test":
            refusal = door.of("refusal")[0]
            assert refusal["reason"] == "name_mismatch" and "other.test" in refusal["message"]
            assert b"x-proxy-error: blocked-by-policy" in answer


def test_the_limits_of_the_run_hold_inside(start: Any) -> None:
    """`network.limits`: as outside, lower or higher than the defaults."""

    def answer(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.send_header("X-Long", "x" * 3000 * handler.path.count("l"))
        handler.end_headers()

    server = start.server("api.test", answer=answer)
    limits = {"request_line": 12000, "head": 14000, "header_count": 6}
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}], limits=limits, work={"limits": limits})

    def asked(target: str = "/", more: str = "") -> bytes:
        return bytes(door.ask("api.test", server.port, request("GET", target, server.port, more=more))[9:12])

    assert asked("/" + "x" * 11000) == b"200"  # by default that is too long
    assert asked("/" + "x" * 12000) == b"414"
    assert asked(more="X-A: 1\r\n" * 4) == b"200" and asked(more="X-A: 1\r\n" * 5) == b"431"
    assert asked(more=f"X-A: {'x' * 14000}\r\n") == b"431"
    assert asked("/lll") == b"200" and asked("/lllll") == b"502"


def test_an_absolute_target_inside_names_nothing_else(start: Any) -> None:
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    message = f"GET https://other.test/ HTTP/1.1\r\nHost: api.test:{server.port}\r\n\r\n".encode()
    assert door.ask("api.test", server.port, message).startswith(b"HTTP/1.1 400 ")
    assert server.seen == []


def test_a_refused_upload_is_answered_at_its_head(start: Any) -> None:
    """And nothing of it is kept: a client that goes on sending is read and dropped."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    with door.tls("api.test", server.port) as sock:
        head = f"PUT / HTTP/1.1\r\nHost: api.test:{server.port}\r\nContent-Length: {1 << 30}\r\n\r\n"
        sock.sendall(head.encode())
        assert sock.recv(65536).startswith(b"HTTP/1.1 403 ")
        before = memory(door.worker.pid)
        for _ in range(256):
            sock.sendall(bytes(1 << 16))
        assert memory(door.worker.pid) - before < 8 << 20
    assert server.seen == []


def test_a_large_upload_and_download_are_streamed(start: Any) -> None:
    size = 64 << 20

    def answer(handler: Any) -> None:
        left = int(handler.headers["Content-Length"])
        while left:
            left -= len(handler.rfile.read(min(left, 1 << 16)))
        handler.send_response(200)
        handler.send_header("Content-Length", str(size))
        handler.end_headers()
        for _ in range(size >> 16):
            handler.wfile.write(bytes(1 << 16))

    server = start.server("api.test", answer=answer)
    door = start([{"host": f"api.test:{server.port}", "methods": ["POST"]}])
    with door.tls("api.test", server.port) as sock:
        sock.sendall(request("POST", "/", server.port, more=f"Content-Length: {size}\r\n"))
        before = memory(door.worker.pid)
        for _ in range(size >> 16):
            sock.sendall(bytes(1 << 16))
        got = 0
        most = 0
        while data := sock.recv(1 << 16):
            got += len(data)
            most = max(most, memory(door.worker.pid) - before) if got % (1 << 20) < len(data) else most
    assert got > size
    assert most < 24 << 20, most


def test_server_sent_events_come_one_by_one(start: Any) -> None:
    go_on = threading.Event()

    def answer(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b"data: 1\n\n")
        assert go_on.wait(15)
        handler.wfile.write(b"data: 2\n\n")
        handler.close_connection = True

    server = start.server("api.test", answer=answer)
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    with door.tls("api.test", server.port) as sock:
        sock.sendall(request("GET", "/", server.port))
        got = b""
        while b"data: 1" not in got:
            got += sock.recv(65536)
        assert b"data: 2" not in got
        go_on.set()
        got += door.read_all(sock)
    assert b"data: 2" in got


def test_a_websocket_needs_a_rule_without_methods(start: Any) -> None:
    """P-PP-09, P-PP-10 inside TLS: what comes behind the 101 is passed on byte for byte."""

    def answer(handler: Any) -> None:
        handler.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n12345"
        )
        while data := handler.connection.recv(100):
            handler.wfile.write(data)
        handler.close_connection = True

    server = start.server("api.test", answer=answer)
    more = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    wanted = request("GET", "/ws", server.port, more=more).replace(b"Connection: close", b"Connection: upgrade")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"], "paths": ["/ws"]}])
    assert b"x-proxy-error: blocked-by-mitm-required" in door.ask("api.test", server.port, wanted)
    assert server.seen == []
    door = start([{"host": f"api.test:{server.port}", "paths": ["/ws"]}])
    with door.tls("api.test", server.port) as sock:
        sock.sendall(wanted)
        got = b""
        while not got.endswith(b"12345"):
            got += sock.recv(65536)
        assert got.startswith(b"HTTP/1.1 101 ")
        sock.sendall(b"abc")
        assert sock.recv(100) == b"abc"


def test_plain_http_in_a_tunnel_is_held_to_the_rule_too(start: Any) -> None:
    """P-PP-03: CONNECT and then no TLS is no way round."""
    server = start.server("api.test", plain=True)
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    for method, status in (("GET", b"200"), ("POST", b"403")):
        with door.tunnel("api.test", server.port) as sock:
            sock.sendall(request(method, "/", server.port))
            assert door.read_all(sock)[9:12] == status
    with door.tunnel("api.test", server.port) as sock:
        sock.sendall(b"\0\1\2\3 anything\r\n\r\n")
        assert door.read_all(sock) == b""
    assert door.wait_for("refusal", 2)[-1]["reason"] == "name_mismatch"


def test_a_server_that_speaks_no_tls(start: Any) -> None:
    """Garbage in the place of TLS, from the other side."""
    server = start.server("api.test", plain=True)
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    head, _, body = door.ask("api.test", server.port, request("GET", "/", server.port)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 502 ") and b"x-proxy-error: upstream-failed" in head
    assert json.loads(body)["message"].startswith("No TLS with api.test")
    assert server.seen == []


def test_on_port_443_through_an_upstream_proxy(start: Any) -> None:
    """TLS is looked into as anywhere; plain HTTP there is closed before anything of it is sent."""
    server = start.server("api.test")
    asked: list[bytes] = []
    threads: list[threading.Thread] = []

    def parent(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += client.recv(1)
            asked.append(head.partition(b"\r\n")[0])
            threads.append(threading.Thread(target=relay, args=(client,)))
            threads[-1].start()

    def relay(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", server.port)) as upstream:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=copy, args=(upstream, client))
            back.start()
            copy(client, upstream)
            back.join(10)

    def copy(one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=parent, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        door = start([{"host": "api.test", "methods": ["GET"]}], upstream_proxy=url)
        answers = [door.ask("api.test", 443, request(method, "/", 443)) for method in ("GET", "POST")]
        assert [answer[9:12] for answer in answers] == [b"200", b"403"]
        with door.tunnel("api.test", 443) as sock:
            sock.sendall(request("GET", "/", 443))
            assert door.read_all(sock) == b""
        assert door.wait_for("refusal", 2)[-1]["reason"] == "name_mismatch"
        assert asked == [b"CONNECT 127.0.0.1:443 HTTP/1.1"] * 3  # to the address that was judged
        assert [each[0] for each in server.seen] == ["GET"]
        listener.shutdown(socket.SHUT_RDWR)
        for each in (thread, *threads):
            each.join(10)

"""HTTP/2 inside TLS: judged stream by stream, and held to what the same request may be as HTTP/1."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def http2() -> Any:
    from integration.inspection import http2

    return http2


@pytest.fixture
def server(http2: Any, authority: Any) -> Iterator[Any]:
    server = http2.Server(authority.context("api.test", alpn=("h2",)))
    yield server
    server.close()


def head(server: Any, method: str = "GET", path: str = "/pub/x", *more: tuple[str, str]) -> list[tuple[str, str]]:
    authority = f"api.test:{server.port}"
    return [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path), *more]


def test_streams_are_judged_one_by_one(start: Any, server: Any, http2: Any) -> None:
    """P-PP-03 through HTTP/2; a refusal ends its stream, and the connection goes on."""
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET", "POST"], "paths": ["/pub/**"]}])
    with door.tls("api.test", server.port, alpn=("h2", "http/1.1")) as sock:
        client = http2.Client(sock)
        assert client.ask(head(server))["headers"][":status"] == "200"
        for method, path, reason in (
            ("DELETE", "/pub/x", "method_not_allowed"),
            ("GET", "/x", "path_not_allowed"),
            ("GET", "/pub/..%2fx", "path_not_allowed"),
        ):
            answer = client.ask(head(server, method, path))
            assert answer["headers"][":status"] == "403"
            assert answer["headers"]["x-proxy-error"] == "blocked-by-method-policy"
            assert json.loads(answer["body"])["reason"] == reason
        assert client.ask(head(server))["headers"][":status"] == "200"
    assert [each[":path"] for each in server.seen] == ["/pub/x", "/pub/x"]
    assert door.wait_for("network", 4)[-1]["requests"] == 5


def test_grpc_passes_with_its_trailers(start: Any, server: Any, http2: Any) -> None:
    door = start([{"host": f"api.test:{server.port}", "methods": ["POST"], "paths": ["/pub.Service/*"]}])
    with door.tls("api.test", server.port, alpn=("h2",)) as sock:
        client = http2.Client(sock)
        more = (("content-type", "application/grpc"), ("te", "trailers"))
        answer = client.ask(head(server, "POST", "/pub.Service/Say", *more), b"\0\0\0\0\3abc")
    assert answer["body"] == b"\0\0\0\0\3abc" and answer["trailers"] == {"grpc-status": "0"}


def test_a_requests_trailers_stay_trailers(start: Any, server: Any, http2: Any) -> None:
    """P-PP-07, second run, through HTTP/2: never merged into the head, and the next request is its own."""
    door = start([{"host": f"api.test:{server.port}", "methods": ["POST"]}])
    with door.tls("api.test", server.port, alpn=("h2",)) as sock:
        client = http2.Client(sock)
        stream = client.begin(head(server, "POST"), end=False)
        client.send(stream, b"abc")
        client.connection.send_headers(stream, [("x-t", "1"), ("content-length", "9")], end_stream=True)
        client.flush()
        assert client.answer(stream)["body"] == b"abc"
        assert client.ask(head(server, "POST"), b"next")["body"] == b"next"
    assert all("x-t" not in seen and seen.get("content-length") != "9" for seen in server.seen)
    assert [each.get("x-t") for each in server.trailers] in ([], ["1"])


ANOTHER_AS_HTTP1 = (
    ("transfer-encoding", "chunked"),
    ("connection", "keep-alive"),
    ("upgrade", "websocket"),
    ("content-length", "+4"),
    ("content-length", "4, 4"),
    ("x-a", "1\r\nx-b: 2"),
    ("x-a", "1\nhost: other.test"),
    ("x-a", "1\x00"),
    ("x a", "1"),
    ("x-a:", "1"),
    ("x-a\r\nhost", "other.test"),
    ("host", "other.test"),
    ("te", "gzip"),
)
NO_PATHS = ("/a b", "/a\r\nx: y", "a", "", "https://other.test/", "/\x00")


def test_what_would_be_another_request_as_http1(start: Any, server: Any, http2: Any) -> None:
    """P-PP-04, P-PP-05, P-PP-06 through HTTP/2, in headers and in the path: nothing of it reaches the server."""
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    for case in (*(("/", each) for each in ANOTHER_AS_HTTP1), *((path,) for path in NO_PATHS)):
        with door.tls("api.test", server.port, alpn=("h2",)) as sock:
            answer = http2.Client(sock).ask(head(server, "GET", *case))
        assert answer["headers"].get(":status", "400") in ("400", "403"), (case, answer)
        assert server.seen == [], case


def test_the_limits_of_the_run_hold_inside(start: Any, server: Any, http2: Any) -> None:
    limits = {"request_line": 9000, "head": 12000, "header_count": 6}
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}], limits=limits, work={"limits": limits})
    with door.tls("api.test", server.port, alpn=("h2",)) as sock:
        client = http2.Client(sock)
        assert client.ask(head(server, "GET", "/" + "x" * 8900))["headers"][":status"] == "200"
        assert client.ask(head(server, "GET", "/" + "x" * 9000))["headers"][":status"] == "414"
        assert client.ask(head(server, "GET", "/", ("x-a", "x" * 12000)))["headers"][":status"] == "431"
        assert client.ask(head(server, "GET", "/", *[("x-a", "1")] * 7))["headers"][":status"] == "431"
        assert client.ask(head(server))["headers"][":status"] == "200"


def test_another_authority_is_another_host(start: Any, server: Any, http2: Any) -> None:
    """P-TL-01: connections are shared between names in HTTP/2, rules are not."""
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    with door.tls("api.test", server.port, alpn=("h2",)) as sock:
        answer = http2.Client(sock).ask(
            [(":method", "GET"), (":scheme", "https"), (":authority", "other.test"), (":path", "/")]
        )
    assert answer["headers"][":status"] == "403" and answer["headers"]["x-proxy-error"] == "blocked-by-policy"
    assert server.seen == [] and door.of("refusal")[0]["reason"] == "name_mismatch"


def test_a_refused_upload_ends_its_stream_alone(start: Any, server: Any, http2: Any) -> None:
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    with door.tls("api.test", server.port, alpn=("h2",)) as sock:
        client = http2.Client(sock)
        stream = client.begin(head(server, "PUT"), end=False)
        assert client.answer(stream)["headers"][":status"] == "403"
        for _ in range(3):
            client.send(stream, bytes(16000))
        assert client.ask(head(server))["headers"][":status"] == "200"


def test_a_server_that_takes_nothing_stops_the_sender(start: Any, http2: Any, authority: Any) -> None:
    """RFC 9113 §5.2: what is under way stays bounded, however much there is to send."""
    go_on = threading.Event()
    server = http2.Server(authority.context("api.test", alpn=("h2",)), hold=go_on)
    try:
        door = start([{"host": f"api.test:{server.port}", "methods": ["POST"]}])
        with door.tls("api.test", server.port, alpn=("h2",)) as sock:
            client = http2.Client(sock)
            stream = client.begin(head(server, "POST"), end=False)
            sent = 0
            sock.settimeout(1.0)
            while sent < 64 << 20:
                room = min(client.connection.local_flow_control_window(stream), 16384)
                if room <= 0:
                    try:
                        client.connection.receive_data(sock.recv(65536))
                    except TimeoutError:
                        break
                    continue
                client.send(stream, bytes(room))
                sent += room
            assert 0 < sent < 12 << 20, sent
            go_on.set()
    finally:
        go_on.set()
        server.close()


def test_a_body_is_no_request_to_a_server_that_falls_back(start: Any, http2: Any, authority: Any) -> None:
    """P-PP-04 between HTTP/2 and HTTP/1.1: where a stream's end frames a body, a server that speaks HTTP/1.1 the next
    time must not read a request in it."""
    import socket

    got: list[bytes] = []
    speaks = [authority.context("api.test", alpn=("h2",)), authority.context("api.test", alpn=("http/1.1",))]
    first = http2.Server(speaks[0])
    whole = threading.Event()

    def serve(listener: socket.socket) -> None:
        # the first connection goes to a server of HTTP/2 and is cut; the second is spoken to in HTTP/1.1
        sock, _ = listener.accept()
        first.adopt(sock)
        sock, _ = listener.accept()
        with speaks[1].wrap_socket(sock, server_side=True) as tls:
            tls.settimeout(30)
            data = b""
            try:
                while not data.endswith(b"0\r\n\r\n") and (more := tls.recv(65536)):
                    data += more
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                pass
            got.append(data)
            whole.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        door = start([{"host": f"api.test:{port}", "methods": ["POST"], "paths": ["/in"]}])
        with door.tls("api.test", port, alpn=("h2", "http/1.1")) as sock:
            client = http2.Client(sock)
            head_ = [(":method", "POST"), (":scheme", "https"), (":authority", f"api.test:{port}"), (":path", "/in")]
            assert client.ask(head_, b"one")["headers"][":status"] == "200"
            first.cut()
            answer = client.ask(head_, b"GET /private HTTP/1.1\r\nHost: api.test\r\n\r\n")
            whole.wait(10)
        thread.join(20)
        first.close()
    assert answer["headers"][":status"] == "200"
    assert got[0].startswith(b"POST /in HTTP/1.1\r\n")
    assert b"transfer-encoding: chunked" in got[0].lower(), got[0]

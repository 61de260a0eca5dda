"""The load generator's words and its reading of answers, on socket pairs; the C program speaks the same."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import network_load
import pytest
from network_generator import Job
from network_load import Failed, Gone, Tally, answer, parse, requests

JOB = Job("127.0.0.1", 3128, None, "origin.test:80", True, None, False, 200, "close", 16, 1000, 0.5)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    with ours, theirs:
        yield ours, theirs


def test_a_job_reads_as_it_was_written() -> None:
    assert parse(JOB.line()) == JOB._replace(credentials="-", path="-")


@pytest.mark.parametrize("line", ["", "1 2 3", JOB.line().replace("close", "stay"), JOB.line().replace("3128", "x")])
def test_a_line_that_is_no_job_is_an_error(line: str) -> None:
    with pytest.raises(ValueError):
        parse(line)


def test_credentials_go_to_the_proxy_only() -> None:
    """Inside a tunnel the origin would see them."""
    connect, get = requests(parse(JOB._replace(credentials="Zm9v", path="/small").line()))
    assert b"Proxy-Authorization: Basic Zm9v\r\n" in connect and b"Proxy-Auth" not in get
    _, get = requests(parse(JOB._replace(credentials="Zm9v", path="/small", tunnel=False, absolute=True).line()))
    assert get.startswith(b"GET http://origin.test:80/small HTTP/1.1\r\n") and b"Basic Zm9v\r\n" in get


@pytest.mark.parametrize(
    ("data", "lasting", "counted"),
    [
        (network_load.SMALL, True, len(network_load.TEXT)),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nhi\n", False, 3),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhi\n\r\n0\r\n\r\n", True, 13),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True, 0),
    ],
)
def test_an_answer_ends_where_it_says(
    pair: tuple[socket.socket, socket.socket], data: bytes, lasting: bool, counted: int
) -> None:
    ours, theirs = pair
    theirs.sendall(data)
    tally = Tally()
    assert answer(ours, tally, 200, with_body=True) is lasting
    assert tally.bytes == counted


def test_an_answer_without_a_length_ends_with_the_connection(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(b"HTTP/1.0 403 Filtered\r\n\r\nno")
    theirs.shutdown(socket.SHUT_WR)
    assert answer(ours, Tally(), 403, with_body=True) is False


def test_half_an_answer_is_a_failure(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(Failed, match="inside an answer"):
        answer(ours, Tally(), 200, with_body=True)


def test_another_status_is_a_failure_that_names_it(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(Failed, match="502 Bad Gateway"):
        answer(ours, Tally(), 200, with_body=True)


def test_a_connection_that_ended_between_answers_is_told_apart(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(Gone):
        answer(ours, Tally(), 200, with_body=True)

"""The door knows its own listeners by their bound addresses (P-PP-16)."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import pytest

from doorward.proxy.own_listeners import OwnListeners


def reached(own: OwnListeners, text: str, port: int) -> bool:
    return own.any_of([ip_address(text)], port) is not None


def test_bound_to_one_address() -> None:
    own = OwnListeners()
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        own.add(sock)
        assert reached(own, "127.0.0.1", port)
        assert reached(own, "::ffff:127.0.0.1", port)
        assert reached(own, "0.0.0.0", port)
        assert reached(own, "::", port)
        assert not reached(own, "127.0.0.2", port)
        assert not reached(own, "127.0.0.1", port + 1)
        assert own.any_of([ip_address("192.0.2.1"), ip_address("127.0.0.1")], port) == ip_address("127.0.0.1")
        own.discard(sock)
        assert not reached(own, "127.0.0.1", port)


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")])
def test_bound_to_every_address(family: socket.AddressFamily, host: str) -> None:
    own = OwnListeners()
    with socket.create_server((host, 0), family=family) as sock:
        port = sock.getsockname()[1]
        own.add(sock)
        for text in ("127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::"):
            assert reached(own, text, port), text
        assert not reached(own, "192.0.2.1", port), "not an address of this machine"


def test_other_families_are_nobodys_target() -> None:
    own = OwnListeners()
    with socket.socket(socket.AF_UNIX) as sock:
        own.add(sock)
        own.discard(sock)
    assert own.any_of([ip_address("127.0.0.1")], 80) is None


def test_two_listeners_on_one_port() -> None:
    own = OwnListeners()
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
        with socket.create_server(("::1", port), family=socket.AF_INET6) as two:
            own.add(one)
            own.add(two)
            own.discard(one)
            assert reached(own, "::1", port)
            assert not reached(own, "127.0.0.1", port)

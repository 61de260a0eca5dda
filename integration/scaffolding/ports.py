"""Ports of loopback for a test that cannot have one opened for it."""

import contextlib
import random
import socket
from collections.abc import Iterator
from pathlib import Path


def free_port() -> int:
    """For a server that is started with it. Not one of those that the kernel gives to outgoing connections and to
    whoever asks for port 0 (ip(7), ip_local_port_range): a neighbour would have it by the time it is used."""
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    others = [port for port in range(10_000, 65_536) if not low <= port <= high]
    while True:
        port = random.choice(others)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """One at which nobody listens, nor can meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])

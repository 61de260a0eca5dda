"""The ProxyCommand of ssh inside a sandbox whose proxy is the only way out: `ssh_proxy.py HOST PORT`.

Asks the proxy of the variables for a tunnel (CONNECT, RFC 9110 §9.3.6) and passes bytes both ways. A program of its
own, run by whatever Python is visible inside: it needs nothing but the standard library, and nothing of doorward.
"""

import os
import select
import socket
import sys
import time

_PATIENCE = 60.0  # seconds for the proxy's answer, in which a person may be asked
_HEAD = 64 * 1024


def main(words: list[str]) -> int:
    """Returns ssh's cue: 0 at the end of the stream, 1 with a line on stderr where there is no way."""
    if len(words) != 2:
        print("usage: ssh_proxy.py HOST PORT", file=sys.stderr)
        return 2
    url = os.environ.get("http_proxy", "")
    place, colon, port = url.partition("://")[2].rstrip("/").rpartition(":")
    host = f"[{words[0]}]" if ":" in words[0] else words[0]
    if not colon:
        print(f"ssh_proxy: the variable http_proxy names no proxy: {url!r}", file=sys.stderr)
        return 1
    try:
        with socket.create_connection((place.strip("[]"), int(port)), _PATIENCE) as proxy:
            said, rest = _tunnel(proxy, f"{host}:{words[1]}")
            if said.split(" ", 2)[1:2] != ["200"]:
                print(f"ssh_proxy: {said.partition(' ')[2] or 'the proxy said nothing'}", file=sys.stderr)
                return 1
            _write(1, rest)
            _relay(proxy)
            return 0
    except OSError as error:
        print(f"ssh_proxy: {error.strerror or error}", file=sys.stderr)
        return 1


def _tunnel(proxy: socket.socket, authority: str) -> tuple[str, bytes]:
    """The first line of the answer, and what came behind its head."""
    proxy.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    deadline = time.monotonic() + _PATIENCE
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD:
        proxy.settimeout(max(0.001, deadline - time.monotonic()))
        data = proxy.recv(4096)
        if not data:
            break
        head += data
    proxy.settimeout(None)
    head, _, rest = head.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode("latin-1"), rest


def _relay(proxy: socket.socket) -> None:
    """Both ways until the far end has ended; the end of our input is passed on."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(proxy, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            data = os.read(descriptor, 65536) if descriptor == 0 else proxy.recv(65536)
            if descriptor == 0:
                if data:
                    proxy.sendall(data)
                else:
                    poll.unregister(0)
                    proxy.shutdown(socket.SHUT_WR)
            elif not data:
                return
            else:
                _write(1, data)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

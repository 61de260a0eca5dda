"""QUIC by name: a real client and a real server, aioquic, with doorward between them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

aioquic = pytest.importorskip("aioquic", reason="aioquic comes with doorward[test]")

SERVER = """
import asyncio, datetime
from aioquic.asyncio import serve
from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
key = ec.generate_private_key(ec.SECP256R1())
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, 'a.test')])
now = datetime.datetime.now(datetime.timezone.utc)
made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1)).sign(key, hashes.SHA256())
def talk(reader, writer):
    async def echo(): writer.write(b'echo ' + await reader.read()); writer.write_eof()
    asyncio.ensure_future(echo())
async def main():
    settings = QuicConfiguration(is_client=False, alpn_protocols=['echo'], certificate=made, private_key=key)
    server = await serve('127.0.0.1', 0, configuration=settings, stream_handler=talk)
    print(server._transport.get_extra_info('sockname')[1], flush=True)
    await asyncio.Future()
asyncio.run(main())
"""

# Its socket is connected, as browsers have it: so it is told at once that nobody takes what it sends.
CLIENT = """
import socket, ssl, sys, time
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
def talk(host, name, port, more, version):
    protocols = ['echo'] + ['x' * 250 + str(number) for number in range(more)]
    settings = QuicConfiguration(alpn_protocols=protocols, server_name=name, verify_mode=ssl.CERT_NONE)
    settings.original_version = version
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((host, port)); sock.settimeout(10)
        connection = QuicConnection(configuration=settings)
        connection.connect((host, port), now=time.time())
        sent = 0; heard = b''
        while True:
            for data, _ in connection.datagrams_to_send(now=time.time()):
                sent += 1; sock.send(data)
            connection.receive_datagram(sock.recv(65536), (host, port), now=time.time())
            while (event := connection.next_event()) is not None:
                if isinstance(event, events.HandshakeCompleted): connection.send_stream_data(0, b'hello', True)
                elif isinstance(event, events.ConnectionTerminated): return f'ended {event.reason_phrase}'
                elif isinstance(event, events.StreamDataReceived):
                    heard += event.data
                    if event.end_stream: return heard.decode()
for number in range(1, len(sys.argv), 5):
    host, name, port, more, version = sys.argv[number:number + 5]
    host = socket.gethostbyname(host)
    begin = time.monotonic()
    try: said = talk(host, name, int(port), int(more), int(version, 16))
    except OSError as error: said = type(error).__name__
    print(said, 'at once' if time.monotonic() - begin < 5 else 'late', flush=True)
"""
V1, V2 = "1", "6b3343cf"


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """The port of a QUIC server on loopback."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as running:
        try:
            yield int(running.stdout.readline())  # type: ignore[union-attr]
        finally:
            running.terminate()


def inside(server: int, *attempts: tuple[str, str, int, str]) -> tuple[str, ...]:
    """A command that talks QUIC: host, server name, how much longer its hello is, version."""
    python = os.path.realpath(sys.executable)
    if python.startswith(("/tmp/", "/run/")):
        pytest.skip("the interpreter lies in a folder that the sandbox does not show")
    site = Path(aioquic.__file__).parents[1]
    words = [word for host, name, more, version in attempts for word in (host, name, str(server), str(more), version)]
    return ("--read-only", str(site), "--", "env", f"PYTHONPATH={site}", python, "-c", CLIENT, *words)


def test_a_client_is_held_to_the_name_it_looked_up(as_caller: Any, server: int) -> None:
    """Also where its hello takes two datagrams, and in version 2; a refused one falls back in milliseconds."""
    seen = as_caller.run(
        "-c", 'network.hosts={"a.test" = "127.0.0.1", "b.test" = "127.0.0.1"}',
        "--allow", f"udp:a.test:{server}", "--allow", f"b.test:{server}",
        *inside(
            server, ("a.test", "a.test", 0, V1), ("a.test", "b.test", 0, V1), ("a.test", "a.test", 8, V1),
            ("a.test", "b.test", 8, V2), ("a.test", "a.test", 0, V2), ("b.test", "b.test", 0, V1),
        ),
    )  # fmt: skip
    said = ["echo hello", "ConnectionRefusedError"] * 3
    assert seen.out == "".join(f"{each} at once\n" for each in said), seen
    told = [(each["host"], each["reason"]) for each in seen.refusals if each["protocol"] == "udp"]
    assert told == [("a.test", "name_mismatch"), ("a.test", "name_mismatch"), ("b.test", "not_allowed")]
    assert "its ClientHello names b.test" in seen.refusals[0]["message"]
    records = [r for r in as_caller.records(seen.document["session"]) if r["protocol"] == "udp"]
    assert [r["content"] for r in records if r["decision"] == "allow"] == ["quic"] * 3

"""Headless Chromium, made to speak HTTP/3, to a real server on loopback: QUIC by name as a browser does it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("aioquic", reason="aioquic comes with doorward[test]")

# Prints its port and the fingerprint of its key, by which the browser is told to take its certificate; then each path.
SERVER = """
import asyncio, base64, datetime, hashlib
from aioquic.asyncio import serve
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
key = ec.generate_private_key(ec.SECP256R1())
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, 'a.test')])
now = datetime.datetime.now(datetime.timezone.utc)
made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
made = made.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=9))
made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName('a.test')]), False).sign(key, hashes.SHA256())
public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
class Pages(QuicConnectionProtocol):
    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated): self.h3 = H3Connection(self._quic)
        for each in self.h3.handle_event(event) if hasattr(self, 'h3') else ():
            if isinstance(each, HeadersReceived):
                print(dict(each.headers)[b':path'].decode(), flush=True)
                self.h3.send_headers(each.stream_id, [(b':status', b'200'), (b'content-type', b'text/html')])
                self.h3.send_data(each.stream_id, b'<body>over HTTP/3</body>', True); self.transmit()
async def main():
    settings = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN, certificate=made, private_key=key)
    server = await serve('127.0.0.1', 0, configuration=settings, create_protocol=Pages)
    fingerprint = base64.b64encode(hashlib.sha256(public).digest()).decode()
    print(server._transport.get_extra_info('sockname')[1], fingerprint, flush=True)
    await asyncio.Future()
asyncio.run(main())
"""


def test_a_browser_reaches_by_http3_what_a_rule_lets_it(as_caller: Any, browser: str) -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port, fingerprint = server.stdout.readline().split()
            chromium = (
                f'exec "$0" --headless --no-sandbox --disable-gpu --no-proxy-server --user-data-dir="$(mktemp -d)" '
                f"--origin-to-force-quic-on=a.test:{port} --ignore-certificate-errors-spki-list={fingerprint} "
                f"--dump-dom https://a.test:{port}/page 2>/dev/null"
            )
            seen = as_caller.run(
                "-c", 'network.hosts={"a.test" = "127.0.0.1"}', "--allow", f"udp:a.test:{port}",
                "--", "sh", "-c", chromium, browser,
            )  # fmt: skip
            assert "<body>over HTTP/3</body>" in seen.out, seen
            assert server.stdout.readline() == "/page\n"
        finally:
            server.terminate()
    records = [r for r in as_caller.records(seen.document["session"]) if r["protocol"] == "udp"]
    assert {(r["host"], r["decision"], r["content"]) for r in records} == {("a.test", "allow", "quic")}
    assert all("chrom" in os.path.basename(r["process"]["executable"]) for r in records)

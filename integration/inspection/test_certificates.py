"""Certificates on both sides: the server's are verified, ours are worth something inside alone."""

from __future__ import annotations

import json
import os
import signal
import ssl
import stat
from typing import Any

import pytest

REQUEST = b"GET / HTTP/1.1\r\nHost: api.test:%d\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("what", "more", "said"),
    [
        ("expired", {"days": -1}, "expired"),
        ("of another authority", {"trusted": False}, "certificate"),
        ("for another name", {"names": ("other.test",)}, "hostname mismatch"),
        ("by its common name alone", {"names": ("server.invalid",)}, "hostname mismatch"),
    ],
)
def test_a_server_is_verified(start: Any, what: str, more: dict[str, Any], said: str) -> None:
    """The client is told, inside its own TLS, and nothing of its request is sent."""
    names = more.pop("names", ("api.test",))
    server = start.server(*names, **more)
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    head, _, body = door.ask("api.test", server.port, REQUEST % server.port).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 502 ") and b"x-proxy-error: upstream-failed" in head
    told = json.loads(body)
    assert said in told["message"].lower() and told["host"] == "api.test"
    assert server.seen == []
    assert said in door.wait_for("network")[-1]["error"].lower()


def test_what_the_client_is_shown(start: Any) -> None:
    """A leaf for the name alone, short-lived, on P-256, below an issuer that is constrained to the run's names."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}], work={"names": ["api.test"]})
    with door.tls("api.test", server.port) as sock:
        leaf = x509.load_der_x509_certificate(sock.getpeercert(True) or b"")
        issuer = x509.load_der_x509_certificate(sock.get_unverified_chain()[1])
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["api.test"]
    assert (leaf.not_valid_after_utc - leaf.not_valid_before_utc).total_seconds() <= 26 * 3600
    assert isinstance(leaf.public_key(), ec.EllipticCurvePublicKey)
    found = issuer.extensions.get_extension_for_class(x509.NameConstraints)
    assert found.critical and found.value.permitted_subtrees == [x509.DNSName("api.test")]


def test_an_issuer_is_worth_nothing_for_other_names(start: Any) -> None:
    """OpenSSL takes no leaf outside the constraint: what a run's worker could sign is what the run inspects."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}], work={"names": ["other.test"]})
    with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree violation"):
        door.tls("api.test", server.port)


def test_the_key_is_its_owners(start: Any) -> None:
    door = start([{"host": "api.test", "methods": ["GET"]}])
    folder = os.path.dirname(door.trust["bundle"])
    assert stat.S_IMODE(os.stat(f"{folder}/private").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(f"{folder}/private/ca.key").st_mode) == 0o600
    with open(door.trust["bundle"], encoding="ascii") as file:
        assert "PRIVATE" not in file.read()


def test_a_home_keeps_its_authority(start: Any) -> None:
    first = start([{"host": "api.test", "methods": ["GET"]}])
    with open(first.trust["ca"], "rb") as file:
        before = file.read()
    second = start([{"host": "api.test", "methods": ["GET"]}])
    with open(second.trust["ca"], "rb") as file:
        assert file.read() == before


def test_a_client_that_pins_is_recognised(start: Any) -> None:
    """It ends the handshake; the record says what that means and what to do."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    context = ssl.create_default_context()  # the machine's own roots
    with pytest.raises(ssl.SSLCertVerificationError), door.tunnel("api.test", server.port) as sock:
        context.wrap_socket(sock, server_hostname="api.test")
    event = door.wait_for("event", 1, "inspection_not_trusted")[0]
    assert event["host"] == "api.test" and "SSL_CERT_FILE" in event["message"]
    assert server.seen == []


@pytest.mark.parametrize("late", [False, True])
def test_a_server_that_wants_a_client_certificate(start: Any, authority: Any, late: bool) -> None:
    """Also where it has said so, and gone, before the first request."""
    context = authority.context("api.test")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.path)
    server = start.server(context=context)
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    with door.tls("api.test", server.port) as sock:
        assert not late or server.gave_up.wait(30)
        sock.sendall(REQUEST % server.port)
        answer = door.read_all(sock)
    assert answer.startswith(b"HTTP/1.1 502 ") and b"client certificate" in answer
    assert server.seen == []


def test_a_name_that_is_not_the_tunnels(start: Any) -> None:
    """P-TL-01: refused before the server hears anything."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    context = ssl.create_default_context(cafile=door.trust["bundle"])
    with pytest.raises(OSError), door.tunnel("api.test", server.port) as sock:
        context.wrap_socket(sock, server_hostname="other.test")
    refusal = door.wait_for("refusal")[0]
    assert refusal["reason"] == "name_mismatch" and "other.test" in refusal["message"]


def test_no_name_at_all(start: Any) -> None:
    """P-TL-02."""
    server = start.server("api.test", "127.0.0.1")
    rules = [{"host": f"{host}:{server.port}", "methods": ["GET"]} for host in ("api.test", "127.0.0.1")]
    door = start(rules)
    context = ssl.create_default_context(cafile=door.trust["bundle"])
    context.check_hostname = False
    with pytest.raises(OSError), door.tunnel("api.test", server.port) as sock:
        context.wrap_socket(sock)
    assert door.wait_for("refusal")[0]["reason"] == "name_mismatch"
    with door.tls("127.0.0.1", server.port) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % server.port)
        assert door.read_all(sock).startswith(b"HTTP/1.1 200 ")


def test_a_hello_in_pieces(start: Any) -> None:
    """P-TL-03: put together before it is judged, and handed over whole."""
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    context = ssl.create_default_context(cafile=door.trust["bundle"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="api.test")
    with door.tunnel("api.test", server.port) as sock:
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        for byte in outgoing.read():
            sock.sendall(bytes((byte,)))
        while True:
            incoming.write(sock.recv(65536))
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
        assert tls.version() == "TLSv1.3"


def hello(name: str) -> bytes:
    """A ClientHello of OpenSSL's."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_another_name_in_pieces(start: Any) -> None:
    """P-TL-03 with a name that is not the tunnel's: cut into bytes, over two records inside the name, and held back in
    the middle. P-TL-01: in other letters it is the same name."""
    server = start.server("api.test")
    limits = {"first_bytes_time": 0.6}
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}], limits=limits, work={"limits": limits})
    whole = hello("other.test")
    at = whole.index(b"other.test") + 3
    records = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in (whole[5:at], whole[at:]))
    for number, pieces in enumerate(([bytes((each,)) for each in whole], [records], [whole[:at]])):
        with door.tunnel("api.test", server.port) as sock:
            for piece in pieces:
                sock.sendall(piece)
            assert b"HTTP" not in door.read_all(sock)
        assert door.wait_for("refusal", number + 1)[-1]["reason"] == "name_mismatch"
    context = ssl.create_default_context(cafile=door.trust["bundle"])
    with context.wrap_socket(door.tunnel("api.test", server.port), server_hostname="API.Test") as tls:
        assert tls.version() == "TLSv1.3"
    assert server.seen == []


def test_an_opaque_tunnel_is_the_clients_own(start: Any, authority: Any) -> None:
    """P-TL-04: a host whose rule asks for nothing is not looked into, beside one that is."""
    server = start.server("other.test")
    door = start([{"host": "api.test", "methods": ["GET"]}, f"other.test:{server.port}"])
    context = ssl.create_default_context(cafile=authority.path)
    with context.wrap_socket(door.tunnel("other.test", server.port), server_hostname="other.test") as sock:
        issuer = dict(pair for each in sock.getpeercert()["issuer"] for pair in each)  # type: ignore[index]
    assert issuer["commonName"] == "test authority"


def test_a_dead_worker_opens_nothing(start: Any) -> None:
    """What it had is closed, what needs it is refused, what does not goes on."""
    server = start.server("api.test", "other.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}, f"other.test:{server.port}"])
    with door.tls("api.test", server.port) as sock:
        os.kill(door.worker.pid, signal.SIGKILL)
        assert door.read_all(sock) == b""
    assert door.wait_for("network")[0]["error"] == "the inspection worker ended"
    with pytest.raises(AssertionError, match="mitm_required"):
        door.tunnel("api.test", server.port)
    assert door.of("refusal")[0]["source"] == "proxy_state"
    door.tunnel("other.test", server.port).close()

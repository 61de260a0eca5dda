"""TLS hellos: made by OpenSSL, made by hand, and damaged."""

from __future__ import annotations

import ssl
import struct
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from doorward.proxy.client_hello import BadHello, ClientHello, Finding, HelloReader, NeedMore, NotTls


def openssl_hello(
    name: str | None,
    alpn: list[str] | None = None,
    lowest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    highest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version, context.maximum_version = lowest, highest
    if alpn:
        context.set_alpn_protocols(alpn)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def openssl_reads(data: bytes) -> str | None:
    """The name OpenSSL's server finds in `data`."""
    found: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _, name, __: found.append(name)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    incoming.write(data)
    with pytest.raises(ssl.SSLError):
        context.wrap_bio(incoming, outgoing, server_side=True).do_handshake()
    (name,) = found
    return name


def vector(content: bytes, size: int) -> bytes:
    return len(content).to_bytes(size, "big") + content


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2, "big") + vector(content, 2)


def sni(*names: bytes, kind: int = 0) -> bytes:
    return extension(0, vector(b"".join(bytes([kind]) + vector(name, 2) for name in names), 2))


def message(*extensions: bytes, tail: bytes = b"", suites: bytes = b"\x13\x01", session: bytes = b"") -> bytes:
    """A handshake message by hand."""
    body = b"\x03\x03" + bytes(32) + vector(session, 1) + vector(suites, 2) + b"\x01\x00"
    body += vector(b"".join(extensions), 2) + tail
    return b"\x01" + vector(body, 3)


def records(handshake: bytes, *sizes: int) -> bytes:
    """The message in records of these sizes, the rest in one more."""
    out = b""
    for size in sizes:
        out += b"\x16\x03\x01" + vector(handshake[:size], 2)
        handshake = handshake[size:]
    return out + (b"\x16\x03\x01" + vector(handshake, 2) if handshake else b"")


def read(*pieces: bytes) -> Finding:
    reader = HelloReader()
    finding: Finding = NeedMore()
    for piece in pieces:
        finding = reader.feed(piece)
    assert bytes(reader.data) == b"".join(pieces)
    return finding


def bad(data: bytes) -> str:
    finding = read(data)
    assert isinstance(finding, BadHello), finding
    return finding.sentence


def name_of(data: bytes) -> str | None:
    finding = read(data)
    assert isinstance(finding, ClientHello), finding
    return finding.server_name


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", ["allowed.test", "Allowed.TEST", "x" * 63 + ".test", None])
@pytest.mark.parametrize("alpn", [[], ["http/1.1"], ["h2", "http/1.1"], ["x" * 255]])
def test_hellos_of_openssl(version: ssl.TLSVersion, name: str | None, alpn: list[str]) -> None:
    """P-TL-01, P-TL-02"""
    data = openssl_hello(name, alpn, version, version)
    finding = read(data)
    assert isinstance(finding, ClientHello)
    assert finding == ClientHello(None if name is None else name.lower(), tuple(alpn), False)
    heard = openssl_reads(data)
    assert finding.server_name == (None if heard is None else heard.lower())


def test_names_are_told_in_one_form() -> None:
    """P-TL-01"""
    assert name_of(records(message(sni(b"A.Test.")))) == "a.test"
    assert name_of(records(message(sni(b"xn--bcher-kva.test")))) == "xn--bcher-kva.test"
    assert name_of(records(message(sni(b"my_host")))) == "my_host"


def test_no_extensions_at_all() -> None:
    """P-TL-02"""
    body = b"\x03\x01" + bytes(32) + b"\x00" + b"\x00\x02\x00\x2f" + b"\x01\x00"
    assert read(records(b"\x01" + vector(body, 3))) == ClientHello(None, (), False)
    assert name_of(records(message())) is None


@pytest.mark.parametrize("sizes", [(1,), (3,), (4,), (60,), (1,) * 40, (10, 20, 30)])
def test_a_hello_in_several_records(sizes: tuple[int, ...]) -> None:
    """P-TL-03: cut inside the name, inside the header, everywhere."""
    hello = message(sni(b"blocked.test"), extension(16, vector(vector(b"h2", 1), 2)))
    assert read(records(hello, *sizes)) == ClientHello("blocked.test", ("h2",), False)
    assert openssl_reads(records(hello, *sizes)) == "blocked.test"


def test_a_hello_byte_by_byte() -> None:
    """P-TL-03"""
    data = records(message(sni(b"blocked.test")), 50, 7)
    reader = HelloReader()
    findings = [reader.feed(data[place : place + 1]) for place in range(len(data))]
    assert all(isinstance(finding, NeedMore) for finding in findings[:-1])
    assert findings[-1] == ClientHello("blocked.test", (), False)
    assert bytes(reader.data) == data


def test_seventeen_kibibytes_of_extensions() -> None:
    """P-TL-03"""
    hello = message(extension(21, bytes(17 * 1024)), sni(b"blocked.test"))
    assert name_of(records(hello, 16384)) == "blocked.test"
    assert "length" in bad(b"\x16\x03\x01" + vector(hello, 2))


def test_the_cap() -> None:
    """P-TL-03"""
    hello = message(sni(b"a.test"), extension(21, bytes(200)))
    whole = records(hello)
    assert isinstance(HelloReader(len(whole)).feed(whole), ClientHello)
    assert isinstance(HelloReader(len(whole) - 1).feed(whole), BadHello)
    # the length alone is enough to know; nobody waits for what is not coming
    assert isinstance(HelloReader(200).feed(whole[:9]), BadHello)
    assert "larger" in bad(b"\x16\x03\x01\x40\x00\x01\x7f\xff\xff")
    endless = HelloReader()
    for _ in range(20_000):
        finding = endless.feed(b"\x16\x03\x01\x00\x01" + (b"\x01" if not endless.data else b"\x00"))
        if not isinstance(finding, NeedMore):
            break
    assert not isinstance(finding, NeedMore)


def test_the_finding_stays_and_the_bytes_are_kept() -> None:
    """P-TL-04"""
    data = records(message(sni(b"a.test")))
    reader = HelloReader()
    finding = reader.feed(data)
    assert reader.feed(b"\x17\x03\x03early") is finding
    assert bytes(reader.data) == data + b"\x17\x03\x03early"
    assert reader.eof() is finding


def test_early_data_behind_the_hello_is_not_looked_at() -> None:
    assert name_of(records(message(sni(b"a.test"))) + b"\x14\x03\x03\x00\x01\x01\x17\x03\x03\x00\x05early") == "a.test"


def test_grease_and_unknown_extensions_pass() -> None:
    grease = [extension(kind, b"\x00") for kind in (0x0A0A, 0x1A1A, 0xFAFA)]
    alpn = extension(16, vector(vector(b"\x0a\x0a", 1) + vector(b"h2", 1), 2))
    data = records(message(grease[0], sni(b"a.test"), alpn, *grease[1:], suites=b"\x2a\x2a\x13\x01"))
    assert read(data) == ClientHello("a.test", ("\n\n", "h2"), False)


@pytest.mark.parametrize("kind", [0xFE0D, 0xFFCE])
def test_an_encrypted_hello_shows_the_outer_name(kind: int) -> None:
    data = records(message(sni(b"public.test"), extension(kind, b"\x00\x00\x01\x00\x01" + bytes(40))))
    assert read(data) == ClientHello("public.test", (), True)


@pytest.mark.parametrize(
    "data",
    [
        b"G",
        b"GET / HTTP/1.1\r\n",
        b"SSH-2.0-x\r\n",
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        b"\x15\x03\x03\x00\x02\x01\x00",
        b"\x17\x03\x03\x00\x02\x01\x00",
        b"\x80\x2e\x01\x03\x01",
        b"\x16\x20",
    ],
)
def test_what_is_not_tls(data: bytes) -> None:
    assert isinstance(read(data), NotTls)


@pytest.mark.parametrize(
    "names",
    [
        [b"a.test", b"b.test"],
        [b"a.test", b"a.test"],
        [],
        [b""],
        [b"127.0.0.1"],
        [b"[::1]"],
        [b"::1"],
        [b"127.1"],
        [b"0x7f.1"],
        [b"a\0.test"],
        [b"a..test"],
        [b"."],
        [b"a b.test"],
        [b"\xc3\xa9.test"],
        [b"*.test"],
        [b"a.test:443"],
        [b"a" * 64 + b".test"],
    ],
)
def test_names_that_are_refused(names: list[bytes]) -> None:
    """P-TL-01"""
    bad(records(message(sni(*names))))


@pytest.mark.parametrize(
    "data",
    [
        records(message(sni(b"a.test"), sni(b"b.test"))),
        records(message(extension(21, b""), sni(b"a.test"), extension(21, b""))),
        records(message(sni(b"a.test", kind=1))),
        records(message(extension(0, b""))),
        records(message(extension(0, sni(b"a.test")[4:] + b"\x00"))),
        records(message(extension(0, b"\x00\x09\x00\x00\x07a.test"))),
        records(message(extension(16, b"\x00\x00"))),
        records(message(extension(16, b"\x00\x01\x00"))),
        records(message(extension(16, b"\x00\x04\x02h2x"))),
        records(message(extension(16, b"\x00\x03\x02h2x"))),
        records(message(b"\x00")),
        records(message(b"\x00\x15\x00\x05ab")),
        records(message(tail=b"\x00")),
        records(message(suites=b"")),
        records(message(suites=b"\x13")),
        records(message(session=bytes(33))),
        records(b"\x01" + vector(b"\x03\x03" + bytes(32) + b"\x00\x00\x02\x13\x01\x00", 3)),
        records(b"\x01" + vector(b"\x03\x03", 3)),
        records(b"\x01" + vector(b"", 3)),
        records(b"\x01" + vector(b"\x02" + message()[5:], 3)),
        records(b"\x02" + message()[1:]),
        records(message() + b"\x00"),
        records(message() + message()),
        records(message(sni(b"a.test")), 20, 0),
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\x40\x01",
        b"\x16\x02\x01\x00\x05",
        b"\x16\x03\x05\x00\x05",
        b"\x16\x01\x01\x00\x05",
        records(message(), 10)[:15] + b"\x15\x03\x03\x00\x02\x01\x00",
        records(message(), 10)[:15] + b"\x17\x03\x03\x00\x01\x00",
        b"\x16\x03\x01\x00\x05\x00",
        b"\x16\x03\x01\x00\x50\x0b",
    ],
)
def test_malformed_hellos(data: bytes) -> None:
    bad(data)


def test_the_end_inside_a_hello() -> None:
    """P-TL-03"""
    data = records(message(sni(b"a.test")))
    for size in range(1, len(data)):
        reader = HelloReader()
        assert isinstance(reader.feed(data[:size]), NeedMore)
        assert isinstance(reader.eof(), BadHello)
    assert isinstance(HelloReader().eof(), NotTls)


def test_every_cut_is_unfinished_and_every_byte_counts() -> None:
    """No length in a hello can be changed without it being noticed, but for bytes that mean nothing here."""
    data = records(message(sni(b"a.test"), extension(16, vector(vector(b"h2", 1), 2))))
    lengths = [3, 4, 6, 7, 8, 43, 44, 45, 48, 50, 51, 54, 55, 56, 57, 59, 60, 69, 70, 71, 72, 73]
    for place in lengths:
        for change in (1, 0xFF):
            damaged = bytearray(data)
            damaged[place] = (damaged[place] + change) % 256
            finding = read(bytes(damaged))
            assert not isinstance(finding, ClientHello), place


def cut(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [data[start:end] for start, end in pairwise(edges)] or [b""]


HELLOS = [
    records(message(sni(b"a.test"), extension(16, vector(vector(b"h2", 1), 2))), 9, 40) + b"\x17\x03\x03",
    records(message(extension(0xFE0D, bytes(9)), sni(b"a.test"))),
    records(message(), 1, 1, 1),
    records(message(sni(b"127.0.0.1"))),
    struct.pack(">B", 0x16),
]


@settings(deadline=None)
@given(
    st.one_of(st.sampled_from(HELLOS), st.binary(max_size=60)),
    st.lists(st.tuples(st.integers(0, 1000), st.binary(max_size=2)), max_size=2),
    st.lists(st.integers(0, 1000), max_size=8),
)
@example(HELLOS[0], [], list(range(1000)))
def test_any_split_gives_the_same_finding(data: bytes, damages: list[tuple[int, bytes]], cuts: list[int]) -> None:
    for place, damage in damages:
        place %= len(data) + 1
        data = data[:place] + damage + data[place + len(damage) :]
    whole, split = read(data), read(*cut(data, cuts))
    assert (type(whole), whole) == (type(split), split)

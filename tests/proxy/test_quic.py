"""The reader of QUIC's first packets and the judge of a flow, held against aioquic."""

from __future__ import annotations

import datetime
import ssl
from ipaddress import ip_address

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("aioquic", reason="aioquic comes with doorward[test]")

from aioquic.buffer import encode_uint_var
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.packet import encode_quic_retry

from doorward.allowlists.host import Name, address_host
from doorward.proxy import quic_judge
from doorward.proxy.limits import DEFAULT
from doorward.proxy.quic_initial import VERSION_1, VERSION_2, Hello, Keys, Malformed, packets
from doorward.proxy.quic_judge import DatagramJudge

ADDRESS = ("192.0.2.1", 443)
VERSIONS = [VERSION_1, VERSION_2]


def client(name="a.test", version=VERSION_1, more=0):
    """A client that has begun; `more` makes its hello longer by 250 bytes each."""
    protocols = ["h3", *(f"{number:0250}" for number in range(more))]
    made = QuicConnection(
        configuration=QuicConfiguration(
            alpn_protocols=protocols, server_name=name, verify_mode=ssl.CERT_NONE,
            original_version=int.from_bytes(version, "big"),
        )
    )  # fmt: skip
    made.connect(ADDRESS, now=0.0)
    return made


def first(name="a.test", version=VERSION_1, more=0):
    """The datagrams it sends before it hears anything."""
    return [data for data, _ in client(name, version, more).datagrams_to_send(now=0.0)]


def judge(name="a.test", port=443, tls_any=False, allows=lambda name: False):
    host = Name(name) if isinstance(name, str) else address_host(name)
    return DatagramJudge(host, port, DEFAULT, tls_any=tls_any, allows=allows)


def passed(judge, datagrams):
    return [each for data in datagrams for each in judge.feed(data)]


def initial(frames, destination, version=VERSION_1, number=0, kind=None):
    """A packet of the client's with these frames."""
    pair = CryptoPair()
    pair.setup_initial(cid=destination, is_client=True, version=int.from_bytes(version, "big"))
    kind = VERSIONS.index(version) if kind is None else kind
    size = (len(frames) + 4 + 16) | 0x4000
    header = bytes([0xC3 | kind << 4]) + version + bytes([len(destination)]) + destination + b"\0\0"
    header += size.to_bytes(2, "big") + number.to_bytes(4, "big")
    return pair.encrypt_packet(header, frames, number)


def crypto(offset, data):
    return b"\x06" + encode_uint_var(offset) + encode_uint_var(len(data)) + data


def hello_of(datagrams):
    """The handshake message that they carry."""
    found = bytearray()
    for data in datagrams:
        for packet in packets(data):
            frames = Keys(packet.version, packet.destination).open(data, packet)
            assert frames.startswith(b"\x06") or not frames.strip(b"\0")
            if frames.startswith(b"\x06"):
                from aioquic.buffer import Buffer

                buffer = Buffer(data=frames[1:])
                offset, size = buffer.pull_uint_var(), buffer.pull_uint_var()
                piece = buffer.pull_bytes(size)
                found[offset : offset + size] = piece
    return bytes(found)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("more", [0, 8])
def test_what_a_client_sends_is_let_out_by_its_name(version, more):
    datagrams = first(version=version, more=more)
    assert len(datagrams) == (1 if more == 0 else 3)
    right = judge()
    held = [right.feed(data) for data in datagrams]
    assert held[:-1] == [[]] * (len(datagrams) - 1)  # nothing goes before the hello is whole
    assert held[-1] == datagrams and right.content == "quic" and right.finding is None
    wrong = judge("b.test")
    assert passed(wrong, datagrams) == []
    assert wrong.finding.said == "a.test" and "its ClientHello names a.test" in wrong.finding.sentence


@given(
    st.sampled_from(VERSIONS), st.binary(min_size=8, max_size=20), st.binary(min_size=20, max_size=300),
    st.integers(0, 2**31),
)  # fmt: skip
@settings(max_examples=50)
def test_keys_open_what_aioquic_sealed(version, destination, frames, number):
    data = initial(frames, destination, version, number)
    keys = Keys(version, destination)
    keys._largest = number - 1
    (packet,) = packets(data)
    assert packet.initial and packet.destination == destination and packet.end == len(data)
    assert keys.open(data, packet) == frames
    assert Keys(version, destination[::-1] + b"\0").open(data, packet) is None


HELLO = hello_of(first())


@given(st.data())
@settings(max_examples=50)
def test_a_hello_in_any_pieces_and_order_is_the_same(data):
    cuts = sorted(data.draw(st.sets(st.integers(1, len(HELLO) - 1), max_size=6)))
    pieces = [(at, HELLO[at:end]) for at, end in zip([0, *cuts], [*cuts, len(HELLO)], strict=True)]
    pieces += data.draw(st.lists(st.sampled_from(pieces), max_size=2))
    hello = Hello(DEFAULT.hello)
    for offset, piece in data.draw(st.permutations(pieces)):
        hello.feed(b"\0\1" + crypto(offset, piece) + b"\x02\0\0\0\0")
    assert hello.found.server_name == "a.test"


def test_pieces_that_contradict_each_other_are_refused():
    """Also when they come behind the whole hello: a server may have read the other one."""
    other = HELLO.replace(b"a.test", b"b.test")
    hello = Hello(DEFAULT.hello)
    hello.feed(crypto(0, HELLO))
    hello.feed(crypto(0, HELLO))
    with pytest.raises(Malformed, match="contradict"):
        hello.feed(crypto(0, other))
    destination = b"12345678"
    seen = judge()
    assert len(passed(seen, [initial(crypto(0, HELLO), destination)])) == 1
    assert passed(seen, [initial(crypto(0, other), destination, number=1)]) == []
    assert "contradict" in seen.finding.sentence


@pytest.mark.parametrize(("frames", "why"), [
    (crypto(0, b"\2" + HELLO[1:]), "ClientHello"), (crypto(70_000, b"x"), "larger"),
    (b"\x08" + bytes(30), "may not stand"), (b"\x06\0\x7f\xff", "cut short"),
    (crypto(0, b"\1\xff\xff\xff" + bytes(30)), "larger"), (b"\x02" + b"\xff" * 40, "cut short"),
])  # fmt: skip
def test_what_is_no_hello_is_refused(frames, why):
    seen = judge()
    assert passed(seen, [initial(frames + bytes(30), b"12345678")]) == []
    assert why in seen.finding.sentence


def without_name():
    return initial(crypto(0, hello_of(first(name=None))), b"12345678")


def test_a_hello_without_a_name():
    assert "names no server" in refused(judge(), without_name())
    assert passed(judge(ip_address("192.0.2.1")), [without_name()])
    assert passed(judge(tls_any=True), [without_name()])


def refused(judge, *datagrams):
    assert passed(judge, datagrams) == []
    return judge.finding.sentence


def test_where_an_address_was_asked_for_the_name_must_be_allowed_itself():
    address = ip_address("192.0.2.1")
    assert passed(judge(address, allows=lambda name: name.text == "a.test"), first())
    assert "names a.test" in refused(judge(address), *first())


def test_on_port_443_nothing_but_quic_passes():
    for data in (b"", b"hello", b"\x40" + bytes(30), b"\xc0\xff\0\0\x1d" + bytes(40), b"\xc0\0\0\0\0" + bytes(40)):
        assert "must begin with a QUIC Initial" in refused(judge(), data)
        assert passed(judge(port=4433), [data]) == [data]
        assert passed(judge(tls_any=True), [data]) == [data]
    agreed = judge()
    assert passed(agreed, first())
    assert agreed.feed(b"\x40" + bytes(30))  # a short packet
    assert agreed.feed(b"\xc0\xff\0\0\x1d" + bytes(40)) == []  # another version could begin another connection
    assert agreed.finding is None


def test_names_that_disagree_never_pass():
    for each in (judge("b.test", port=4433), judge("b.test", tls_any=True)):
        assert "names a.test" in refused(each, *first())


def test_another_connection_on_the_same_flow_is_judged_too():
    flow = judge()
    assert passed(flow, first()) and passed(flow, first(more=8))
    assert flow.finding is None
    assert "names b.test" in refused(flow, *first("b.test"))


def test_an_initial_packet_behind_another_packet_is_seen():
    zero_rtt = b"\xd3" + VERSION_1 + b"\x0812345678\0\x14" + bytes(20)
    flow = judge()
    assert passed(flow, first())
    assert "names b.test" in refused(flow, zero_rtt + first("b.test")[0])


def test_early_data_waits_for_the_hello():
    zero_rtt = b"\xd3" + VERSION_1 + b"\x0812345678\0\x14" + bytes(20)
    flow = judge()
    assert flow.feed(zero_rtt) == []
    assert passed(flow, first())[0] == zero_rtt


def test_what_cannot_be_read_is_refused_first_and_dropped_later():
    first_one = first()[0]
    broken = bytearray(first_one)
    broken[next(packets(first_one)).end - 1] ^= 1
    broken = bytes(broken)
    assert "cannot be read" in refused(judge(), broken)
    assert passed(judge(port=4433), [broken]) == [broken]
    agreed = judge()
    assert passed(agreed, first())
    assert agreed.feed(broken) == [] and agreed.finding is None


def test_too_many_connections_are_not_begun():
    flow = judge()
    for _ in range(8):
        assert passed(flow, first())
    assert passed(flow, first()) == [] and flow.finding is None


def test_after_a_retry_the_hello_is_judged_again():
    asking = client()
    (data, _), *_ = asking.datagrams_to_send(now=0.0)
    (packet,) = packets(data)
    flow = judge()
    assert flow.feed(data)
    retry = encode_quic_retry(
        version=1, source_cid=b"S" * 8, destination_cid=asking.host_cid, original_destination_cid=packet.destination,
        retry_token=b"token",
    )  # fmt: skip
    asking.receive_datagram(retry, ADDRESS, now=0.1)
    again = [data for data, _ in asking.datagrams_to_send(now=0.1)]
    assert next(packets(again[0])).destination == b"S" * 8
    assert passed(flow, again) == again


def server_settings():
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a.test")])
    now = datetime.datetime.now(datetime.UTC)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return QuicConfiguration(
        is_client=False, alpn_protocols=["h3"], certificate=built.sign(key, hashes.SHA256()), private_key=key
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_whole_connection_passes(version):
    asking = client(version=version, more=4)
    flow = judge()
    sent = [data for data, _ in asking.datagrams_to_send(now=0.0)]
    serving = QuicConnection(
        configuration=server_settings(), original_destination_connection_id=next(packets(sent[0])).destination
    )
    now = 0.0
    for _ in range(6):
        now += 0.01
        passing = passed(flow, sent)
        assert passing == sent
        for data in passing:
            serving.receive_datagram(data, ADDRESS, now=now)
        for data, _ in serving.datagrams_to_send(now=now):
            asking.receive_datagram(data, ADDRESS, now=now)
        sent = [data for data, _ in asking.datagrams_to_send(now=now)]
    assert asking._handshake_confirmed and flow.content == "quic"


def test_without_the_library_it_says_what_to_install(monkeypatch):
    def missing(version, destination):
        raise ImportError

    monkeypatch.setattr(quic_judge, "Keys", missing)
    assert "pip install 'doorward[quic]'" in refused(judge(), *first())
    open_one = judge(tls_any=True)
    assert passed(open_one, first()) and open_one.content == "uninspected"
    assert passed(judge(port=123), [b"\x23" + bytes(47)])  # what is no QUIC needs none


def test_a_hello_that_does_not_come_whole():
    flow = judge()
    assert flow.feed(first(more=8)[0]) == []
    flow.timed_out()
    assert "was not whole after 3 s" in flow.finding.sentence
    many = judge()
    assert passed(many, [b"\xd3" + VERSION_1 + b"\x0812345678\0\x14" + bytes(20)] * 40) == []
    assert len(many._held) == 16


WRONG = first("b.test", more=4)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1300), st.integers(1, 255)), max_size=3),
    st.binary(max_size=40),
)
@example([], b"")
@settings(max_examples=150)
def test_a_wrong_name_gets_through_in_no_disguise(changes, more):
    """Bits flipped anywhere, bytes in front or behind: it never raises, and nothing passes."""
    datagrams = [bytearray(data) for data in WRONG]
    for which, at, bits in changes:
        datagrams[which][at % len(datagrams[which])] ^= bits
    for arranged in (datagrams, [more + bytes(datagrams[0]), *datagrams[1:]], [*datagrams, more]):
        flow = judge()
        assert passed(flow, [bytes(data) for data in arranged]) == []


@given(st.lists(st.binary(max_size=60).map(lambda rest: b"\xc3" + VERSION_1 + rest), max_size=4))
def test_no_bytes_make_it_fail(datagrams):
    assert passed(judge(), datagrams) == []

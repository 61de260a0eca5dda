"""The sandbox's name server over real sockets, asked by dnspython: what it answers, refuses, records."""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import Any

import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.reversename
import dns.rrset
import pytest

from doorward.proxy import attribution, inside
from doorward.proxy.handover import Handover


class Asker:
    """A name server of a door, on loopback, and a way to ask it."""

    def __init__(self, door: Any, *, ipv6: bool = True) -> None:
        self.door = door
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.SOL_IP, 8, 1)  # IP_PKTINFO
        udp.bind(("127.0.0.1", 0))
        tcp = socket.create_server(("127.0.0.1", 0))
        self.udp_port, self.tcp_port = udp.getsockname()[1], tcp.getsockname()[1]
        door.server.has_ipv6 = ipv6
        for kind, each in (("dns_udp", udp), ("dns_tcp", tcp)):
            door.call(lambda kind=kind, each=each: inside.add(door.server, Handover("r", "p", kind, 53, 0, each)))

    def __call__(self, name: str, kind: str = "A", *, tcp: bool = False, wait: float = 10, **more: Any) -> Any:
        query = dns.message.make_query(name, kind, **more)
        if tcp:
            return dns.query.tcp(query, "127.0.0.1", wait, self.tcp_port)
        return dns.query.udp(query, "127.0.0.1", wait, self.udp_port)

    def addresses(self, name: str, kind: str = "A", **more: Any) -> list[str]:
        reply = self(name, kind, **more)
        return [record.to_text() for found in reply.answer for record in found]

    def code(self, name: str, kind: str = "A", **more: Any) -> str:
        return dns.rcode.to_text(self(name, kind, **more).rcode())

    def send(self, data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.tcp_port), 10) as sock:
            sock.sendall(len(data).to_bytes(2, "big") + data)
            sock.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: sock.recv(65536), b""))[2:]


@pytest.fixture
def ask(network: Any) -> Any:
    def make(allow: list[Any] | None = None, deny: list[Any] | None = None, **options: Any) -> Asker:
        ipv6 = options.pop("ipv6", True)
        return Asker(network.door(allow, deny, **options), ipv6=ipv6)

    return make


@pytest.mark.parametrize("tcp", [False, True])
def test_a_name_that_a_rule_could_allow_gets_one_address_and_keeps_it(ask: Any, tcp: bool) -> None:
    asker = ask(["a.test:5432", "*.b.test"])
    (first,) = asker.addresses("a.test", tcp=tcp)
    (other,) = asker.addresses("x.b.test", tcp=tcp)
    assert first.startswith("198.18.") and other.startswith("198.18.") and first != other
    assert asker.addresses("A.Test.", tcp=tcp) == [first]
    (six,) = asker.addresses("a.test", "AAAA", tcp=tcp)
    assert six.startswith("fd64:6f6f:7277::")
    assert asker(dns.reversename.from_address(first).to_text(), "PTR").answer[0][0].to_text() == "a.test."
    assert asker.door.resolver.asked == []


def test_without_ipv6_there_is_no_such_address(ask: Any) -> None:
    asker = ask(["a.test"], ipv6=False)
    reply = asker("a.test", "AAAA")
    assert (reply.rcode(), reply.answer) == (dns.rcode.NOERROR, [])


def test_what_no_rule_could_allow_is_refused_and_nobody_is_asked(ask: Any) -> None:
    """P-DN-01."""
    asker = ask(["a.test", "*.zone.test", "udp.test:1-9"], ["denied.zone.test", "udp.test"])
    for name in ("b.test", "x.a.test", "zone.test", "denied.zone.test", "single", "udp.test", "test", "."):
        assert asker.code(name) == "REFUSED", name
    assert asker.door.resolver.asked == [] and asker.door.dialler.attempts == []


def test_a_deny_of_some_ports_leaves_the_name(ask: Any) -> None:
    asker = ask(["a.test:1-100"], ["a.test:1-50", "a.test:60-100"])
    assert asker.code("a.test") == "NOERROR"
    assert ask(["a.test:1-100"], ["a.test:1-60", "a.test:50-100"]).code("a.test") == "REFUSED"


def test_a_name_somebody_could_be_asked_about_is_answered(ask: Any) -> None:
    async def never(question: Any) -> Any:
        raise AssertionError("a look-up asks nobody")

    asker = ask([], ["denied.test"], decider=never)
    assert asker.code("b.test") == "NOERROR"
    assert asker.code("denied.test") == "REFUSED"


@pytest.mark.parametrize("kind", [
    "TXT", "MX", "SRV", "HTTPS", "SVCB", "ANY", "NS", "SOA", "CNAME", "TYPE65280", "AXFR",
])  # fmt: skip
def test_other_types_are_refused(ask: Any, kind: str) -> None:
    """P-DN-01: what a tunnel uses besides names."""
    asker = ask(["a.test"])
    assert asker.code("a.test", kind, tcp=kind == "AXFR") == "REFUSED"
    (record,) = asker.door.sink.network()
    said = (record["host"], record["protocol"], record["method"], record["decision"])
    assert said == ("a.test", "dns", kind, "deny")
    quiet = kind in ("HTTPS", "SVCB")
    assert len(asker.door.sink.of("refusal")) == (0 if quiet else 1)


def test_a_wildcard_lets_no_carried_data_in_and_a_rule_for_the_name_does(ask: Any) -> None:
    """P-DN-01."""
    carried = "nbswy3dpeb3w64tmmqqhi2djomqgs4zamrqxiyi.t.test"
    assert ask(["*.t.test"]).code(carried) == "REFUSED"
    asker = ask(["*.t.test", carried])
    assert asker.code(carried) == "NOERROR"
    asker = ask(["*"])
    assert asker.code("f" * 60 + ".t.test") == "REFUSED"
    (refusal,) = asker.door.sink.of("refusal")
    assert refusal["hint"] == "--allow " + "f" * 60 + ".t.test"
    assert asker.code("www.t.test") == "NOERROR"


def test_each_distinct_question_is_one_record_kept_before_its_answer(ask: Any) -> None:
    asker = ask(["a.test"])
    for _ in range(3):
        for name in ("a.test", "A.TEST", "b.test"):
            asker(name)
            asker(name, tcp=True)
    asker("a.test", "TXT")
    records = asker.door.sink.network(3)
    assert [(each["host"], each["method"], each["decision"]) for each in records] == [
        ("a.test", "A", "allow"), ("b.test", "A", "deny"), ("a.test", "TXT", "deny"),
    ]  # fmt: skip
    assert [(each["host"], each["port"], each["hint"]) for each in asker.door.sink.of("refusal")] == [
        ("b.test", 53, "--allow b.test"), ("a.test", 53, """--allow '{host = "a.test", dns = ["TXT"]}'"""),
    ]  # fmt: skip
    assert asker.door.sink.of("refusal")[0]["message"] == "b.test is in no allow rule"


def test_no_answer_overtakes_its_record(ask: Any) -> None:
    asker = ask(["a.test"])
    sink = asker.door.sink
    asker.door.call(lambda: setattr(sink, "hold", True))
    for name in ("a.test", "b.test"):
        with pytest.raises(dns.exception.Timeout):
            asker(name, wait=0.2)
    sink.network(2)
    asker.door.call(sink.release)
    assert asker.code("a.test") == "NOERROR"
    assert asker.code("b.test") == "REFUSED"
    assert len(sink.network(2)) == 2


def test_an_answer_that_is_given_again_is_of_the_moment(ask: Any) -> None:
    """The same query to the letter, but for its number: other rules, and a name that lost its place in the table."""
    asker = ask(["a.test"])

    def again(number: int) -> Any:
        query = dns.message.make_query("a.test", "A", id=number, use_edns=False)
        reply = dns.query.udp(query, "127.0.0.1", 10, asker.udp_port)
        assert reply.id == number
        return dns.rcode.to_text(reply.rcode()), [each.to_text() for found in reply.answer for each in found]

    first = again(1)
    assert first[0] == "NOERROR" and again(2) == again(3) == first
    stand_ins = asker.door.server.stand_ins
    asker.door.call(stand_ins._let_one_go)
    moved = again(4)
    assert moved[0] == "NOERROR" and moved[1] != first[1] and again(5) == again(6) == moved
    asker.door.call(lambda: asker.door.server.reload(asker.door.policy(["b.test"])))
    assert again(7) == again(8) == ("REFUSED", [])
    asker.door.call(lambda: asker.door.server.reload(asker.door.policy(["a.test"])))
    assert again(9) == moved
    assert len(asker.door.sink.network(1)) == 1


def test_without_a_supervisor_nothing_new_is_answered(ask: Any) -> None:
    """What is on record already may be."""
    asker = ask(["*.a.test"])
    assert asker.code("x.a.test") == "NOERROR"
    sink = asker.door.sink
    asker.door.call(lambda: setattr(sink, "gone", True))
    for name in ("y.a.test", "b.test"):
        with pytest.raises(dns.exception.Timeout):
            asker(name, wait=0.2)
    assert asker.code("x.a.test") == "NOERROR"


@pytest.mark.parametrize("name", [
    "127.0.0.1", "0x7f.1", "2130706433", r"a\.b.test", r"127.0.0.1\000.a.test", r"b\195\188cher.test",
    r"a\032b.test", "a@b.test",
])  # fmt: skip
def test_what_names_no_host_is_refused_and_on_record(ask: Any, name: str) -> None:
    """P-DN-05, and names in every encoding."""
    asker = ask(["*", "*.a.test", "a.test"])
    assert asker.code(name) == "REFUSED"
    (event,) = asker.door.sink.of("event")
    assert event["type"] == "malformed_request" and event["protocol"] == "dns"
    assert asker.door.resolver.asked == []


def test_an_international_name_is_asked_for_in_its_ascii_form(ask: Any) -> None:
    asker = ask(["bücher.test"])
    assert asker.code("xn--bcher-kva.test") == "NOERROR"


def test_localhost_is_loopback_and_needs_no_rule(ask: Any) -> None:
    asker = ask([])
    assert asker.addresses("localhost") == ["127.0.0.1"]
    assert asker.addresses("x.localhost", "AAAA") == ["::1"]
    assert asker.door.sink.items == []


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 12, b"\xff" * 40, b"\0" * 4000])
def test_bytes_that_are_no_question_do_no_harm(ask: Any, data: bytes) -> None:
    asker = ask(["a.test"])
    asker.send(data)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(data, ("127.0.0.1", asker.udp_port))
    assert asker.code("a.test") == "NOERROR"


def test_a_reload_counts_from_the_next_question_on(ask: Any) -> None:
    asker = ask(["a.test"])
    assert asker.code("a.test") == "NOERROR"
    asker.door.call(lambda: asker.door.server.reload(asker.door.policy(["b.test"])))
    assert (asker.code("a.test"), asker.code("b.test")) == ("REFUSED", "NOERROR")


@pytest.mark.skipif(sys.platform != "linux", reason="sock_diag(7) and /proc are Linux's")
def test_what_the_first_question_waits_for_is_done_while_nobody_asks(
    network: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = threading.Event()

    class Noticed(attribution.Attribution):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.set()

    monkeypatch.setattr(attribution, "Attribution", Noticed)
    door = network.door(["a.test", "udp:a.test:9"])
    door.server.diagnosis = socket.socket(16, socket.SOCK_RAW, 4), os.getppid()  # NETLINK_SOCK_DIAG
    asker = Asker(door)
    assert made.wait(10)
    assert asker.code("a.test") == "NOERROR"


def test_many_ask_at_once(ask: Any) -> None:
    asker = ask(["*.a.test"])
    found: list[str] = []

    def work(number: int) -> None:
        for each in range(20):
            found.extend(asker.addresses(f"n{number * 20 + each}.a.test"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == len(set(found)) == 160


class Upstream:
    """A name server of the machine's: answers TXT, fails on names that begin with `no`, counts what it is asked."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.place = self.socket.getsockname()
        self.asked: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            data, sender = self.socket.recvfrom(4096)
            if data == b"end":
                return
            query = dns.message.from_wire(data)
            name = query.question[0].name
            self.asked.append(name.to_text())
            reply = dns.message.make_response(query)
            if name.labels[0].startswith(b"no"):
                reply.set_rcode(dns.rcode.NXDOMAIN)
            else:
                size = 200 if name.labels[0] == b"long" else 5
                texts = [f'"{number}{"x" * size}"' for number in range(5)]
                reply.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *texts))
            self.socket.sendto(reply.to_wire(max_size=4096), sender)

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"end", self.place)
        self._thread.join(10)
        self.socket.close()


@pytest.fixture
def upstream() -> Any:
    made = Upstream()
    yield made
    made.close()


def test_records_that_a_rule_lists_are_asked_for_and_no_others(ask: Any, upstream: Upstream) -> None:
    asker = ask([{"host": "**.a.test", "dns": ["TXT"]}, "b.test"])
    asker.door.server.name_servers = (upstream.place,)
    assert '"0xxxxx"' in asker.addresses("x.a.test", "TXT")
    assert asker.code("no.a.test", "TXT") == "NXDOMAIN"
    for name, kind in (("b.test", "TXT"), ("x.a.test", "MX"), ("c.test", "TXT"), ("f" * 60 + ".a.test", "TXT")):
        assert asker.code(name, kind) == "REFUSED"
    assert upstream.asked == ["x.a.test.", "no.a.test."]
    hints = [each["hint"] for each in asker.door.sink.of("refusal")]
    assert hints[0] == """--allow '{host = "b.test", dns = ["TXT"]}'"""
    asker("x.a.test")
    assert upstream.asked == ["x.a.test.", "no.a.test."]  # an address is nobody's to give but the door's


def test_an_answer_without_room_asks_for_tcp(ask: Any, upstream: Upstream) -> None:
    asker = ask([{"host": "long.a.test", "dns": ["TXT"]}])
    asker.door.server.name_servers = (upstream.place,)
    assert asker("long.a.test", "TXT", use_edns=False).flags & dns.flags.TC
    assert len(asker.addresses("long.a.test", "TXT", tcp=True)) == 5
    assert len(asker.addresses("long.a.test", "TXT", use_edns=0, payload=4096)) == 5


def test_a_server_that_is_silent_is_servfail(ask: Any) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        asker = ask([{"host": "a.test", "dns": ["TXT"]}], limits={"resolve_time": 0.2})
        asker.door.server.name_servers = (silent.getsockname(),)
        assert asker.code("a.test", "TXT") == "SERVFAIL"

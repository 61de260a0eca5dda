"""The one DNS message that is read by hand, held against dnspython, which reads them all."""

import random

import dns.flags
import dns.message
import dns.name
import dns.rdataclass
import dns.rdatatype
import pytest

from doorward.proxy import dns_message
from doorward.proxy.dns_message import Question, Unanswerable, cut_short, name_data, read_query, write_answer


def query(name="a.test", kind="A", **options):
    return dns.message.make_query(name, kind, **options)


NAMES = ["a.test", "A.TeSt", "x" * 63 + ".test", ".".join(["a" * 60] * 4), "_srv._tcp.a.test", ".", r"a\000b.test",
r"a\.b.test"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["A", "AAAA", "TXT", "MX", "SRV", "HTTPS", "ANY", "PTR", "TYPE65280"])
@pytest.mark.parametrize("edns", [False, 0])
def test_a_query_is_read_as_dnspython_wrote_it(name, kind, edns):
    made = query(name, kind, use_edns=edns, **({} if edns is False else {"payload": 1232}))
    question = read_query(made.to_wire())
    asked = made.question[0]
    assert question.labels == asked.name.labels[:-1]
    assert (question.number, question.kind) == (made.id, asked.rdtype)
    assert question.type_text == dns.rdatatype.to_text(asked.rdtype)
    assert question.udp_size == (None if edns is False else 1232)


@pytest.mark.parametrize("edns", [False, 0])
@pytest.mark.parametrize("code", range(6))
def test_an_answer_is_read_by_dnspython_and_answers_that_query(edns, code):
    made = query("MiXed.a.test", use_edns=edns)
    question = read_query(made.to_wire())
    reply = dns.message.from_wire(write_answer(question, code, [(dns_message.A, 60, b"\xc6\x12\0\1")]))
    assert made.is_response(reply)
    assert reply.rcode() == code
    assert reply.flags & dns.flags.RD and reply.flags & dns.flags.RA
    assert reply.question[0].name.labels == made.question[0].name.labels  # its case too: clients look at it
    (found,) = reply.answer
    assert (found.to_text(), found.ttl) == ("MiXed.a.test. 60 IN A 198.18.0.1", 60)
    assert reply.edns == (-1 if edns is False else 0)


def test_a_pointer_and_no_records_and_a_cut_answer():
    made = query("1.0.18.198.in-addr.arpa", "PTR")
    question = read_query(made.to_wire())
    reply = dns.message.from_wire(write_answer(question, 0, [(dns_message.PTR, 5, name_data("a.b.test"))]))
    assert reply.answer[0][0].to_text() == "a.b.test."
    assert dns.message.from_wire(write_answer(question, 0)).answer == []
    assert dns.message.from_wire(cut_short(question)).flags & dns.flags.TC


def bent(change):
    wire = bytearray(query().to_wire())
    change(wire)
    return bytes(wire)


MALFORMED = {
    "empty": b"",
    "half a header": query().to_wire()[:11],
    "no question": bent(lambda wire: wire.__setitem__(5, 0)),
    "two questions": bent(lambda wire: wire.__setitem__(5, 2)),
    "an answer in it": bent(lambda wire: wire.__setitem__(7, 1)),
    "a pointer to itself": bent(lambda wire: wire.__setitem__(slice(12, 14), b"\xc0\x0c")),
    "a label that runs over the end": bent(lambda wire: wire.__setitem__(12, 63)),
    "a length of 64": bent(lambda wire: wire.__setitem__(12, 64)),
    "cut in the type": query().to_wire()[:-3],
    "cut in the name": query().to_wire()[:14],
    "too long a name": query().to_wire()[:12] + (b"\x3f" + b"a" * 63) * 4 + b"\0\0\1\0\1",
    "an opcode": bent(lambda wire: wire.__setitem__(2, 0x10)),
    "of class CHAOS": bent(lambda wire: wire.__setitem__(-1, 3)),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_anything_else_is_unanswerable_and_says_why(what):
    with pytest.raises(Unanswerable) as error:
        read_query(MALFORMED[what])
    assert str(error.value)
    if error.value.reply:
        reply = dns.message.from_wire(error.value.reply)
        assert reply.flags & dns.flags.QR
        assert reply.rcode() != 0


def test_an_answer_is_never_answered():
    """Two servers would go on for ever."""
    with pytest.raises(Unanswerable) as error:
        read_query(dns.message.make_response(query()).to_wire())
    assert error.value.reply == b""


def test_no_bytes_whatever_raise_anything_else():
    chance = random.Random(7)
    wire = query("some.name.test", use_edns=0).to_wire()
    for _ in range(20_000):
        data = bytearray(wire[: chance.randrange(len(wire) + 1)])
        for _ in range(chance.randrange(4)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            question = read_query(bytes(data))
        except Unanswerable:
            continue
        assert isinstance(question, Question)
        theirs = dns.message.from_wire(bytes(data), ignore_trailing=True, continue_on_error=True).question[0]
        assert question.labels == theirs.name.labels[:-1]

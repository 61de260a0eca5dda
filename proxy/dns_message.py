"""Reads the question of a DNS query and writes the answer the door gives itself: bytes in, bytes out, no I/O.

dnspython knows all of DNS, and importing it costs more than 100 ms, which the first name of a run would wait for. So
the one message a stub resolver sends (RFC 1035 §4.1: a header and a single question, perhaps an OPT record of RFC 6891)
is read here, by its letter, and everything else is left to dnspython (`dns_upstream`). The tests hold the two together.
"""

from __future__ import annotations

import struct

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

_HEADER: Final = struct.Struct(">HHHHHH")  # RFC 1035 §4.1.1
_TWO: Final = struct.Struct(">HH")
_RECORD: Final = struct.Struct(">HHIH")

NOERROR: Final = 0
FORMERR: Final = 1
SERVFAIL: Final = 2
NXDOMAIN: Final = 3
NOTIMP: Final = 4
REFUSED: Final = 5

A: Final = 1
PTR: Final = 12
AAAA: Final = 28
OPT: Final = 41
SVCB: Final = 64
HTTPS: Final = 65

_IN: Final = 1
_RESPONSE: Final = 0x8000
_OPCODE: Final = 0x7800
_TRUNCATED: Final = 0x0200
_RECURSION_DESIRED: Final = 0x0100
_RECURSION_AVAILABLE: Final = 0x0080

PLAIN_UDP: Final = 512
"""Bytes of an answer over UDP to a client that names no other size (RFC 1035 §4.2.1)."""

TYPES: Final = {
    1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 13: "HINFO", 15: "MX", 16: "TXT", 17: "RP", 28: "AAAA", 29: "LOC",
    33: "SRV", 35: "NAPTR", 37: "CERT", 39: "DNAME", 43: "DS", 44: "SSHFP", 46: "RRSIG", 47: "NSEC", 48: "DNSKEY",
    50: "NSEC3", 52: "TLSA", 53: "SMIMEA", 59: "CDS", 60: "CDNSKEY", 61: "OPENPGPKEY", 62: "CSYNC", 64: "SVCB",
    65: "HTTPS", 99: "SPF", 251: "IXFR", 252: "AXFR", 255: "ANY", 256: "URI", 257: "CAA",
}  # fmt: skip
"""Names of query types (the IANA registry "Resource Record (RR) TYPEs"); others are written TYPE123 (RFC 3597 §5)."""


class Question(NamedTuple):
    """A query with one question. `raw` is the question as it came, case and all: the answer repeats it."""

    number: int
    flags: int
    labels: tuple[bytes, ...]
    kind: int
    raw: bytes
    udp_size: int | None = None
    """What its OPT record says it takes over UDP; None without one."""

    @property
    def name(self) -> bytes:
        """The labels with dots between them; for messages, where a label may hold anything."""
        return b".".join(self.labels)

    @property
    def type_text(self) -> str:
        """`TXT`, or `TYPE123`."""
        return TYPES.get(self.kind, f"TYPE{self.kind}")


class Unanswerable(ValueError):
    """No query with one question of the Internet class. `reply` is what to send back, b"" for nothing."""

    def __init__(self, sentence: str, reply: bytes = b"") -> None:
        super().__init__(sentence)
        self.reply = reply


def read_query(data: bytes) -> Question:
    """The question of one message, without the length that precedes it over TCP. Raises Unanswerable."""
    if len(data) < _HEADER.size:
        raise Unanswerable("the message is shorter than a DNS header")
    number, flags, questions, answers, authorities, more = _HEADER.unpack_from(data)
    if flags & _RESPONSE:
        raise Unanswerable("the message is an answer, not a query")  # never answered: two servers could go on for ever
    if flags & _OPCODE:
        raise Unanswerable("the message is no standard query", _bare(number, flags, NOTIMP))
    wrong = _bare(number, flags, FORMERR)
    if questions != 1 or answers or authorities:
        raise Unanswerable("the message does not have exactly one question", wrong)
    labels: list[bytes] = []
    at = _HEADER.size
    length = 1
    while True:
        size = data[at] if at < len(data) else -1
        if size == 0:
            break
        # a pointer (two high bits) has nothing before it to point to
        if not 0 < size < 64 or at + 1 + size >= len(data):
            raise Unanswerable("the name of the question is malformed", wrong)
        labels.append(data[at + 1 : at + 1 + size])
        at += 1 + size
        length += 1 + size
        if length > 255:
            raise Unanswerable("the name of the question is longer than 255 bytes", wrong)
    at += 1
    if at + 4 > len(data):
        raise Unanswerable("the question is cut short", wrong)
    kind, group = _TWO.unpack_from(data, at)
    at += 4
    question = Question(number, flags, tuple(labels), kind, data[_HEADER.size : at], _udp_size(data, at, more))
    if group != _IN:
        raise Unanswerable("the question is not of the Internet class", write_answer(question, REFUSED))
    return question


def write_answer(question: Question, code: int, records: Iterable[tuple[int, int, bytes]] = ()) -> bytes:
    """An answer with `records` of the asked name: type, seconds to live, data in wire form."""
    body = question.raw
    count = 0
    for kind, seconds, data in records:
        # the name is a pointer to the question's, which stands right behind the header
        body += b"\xc0\x0c" + _RECORD.pack(kind, _IN, seconds, len(data)) + data
        count += 1
    more = 0
    if question.udp_size is not None:
        body += b"\0" + _TWO.pack(OPT, 4096) + bytes(6)
        more = 1
    return _header(question.number, question.flags, code, 1, count, more) + body


def cut_short(question: Question) -> bytes:
    """An answer that says: too long for UDP, ask over TCP (RFC 1035 §4.1.1, TC)."""
    whole = write_answer(question, NOERROR)
    return whole[:2] + bytes([whole[2] | _TRUNCATED >> 8]) + whole[3:]


def name_data(name: str) -> bytes:
    """A name in wire form, for the data of a PTR record."""
    labels = name.encode("ascii").split(b".")
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _udp_size(data: bytes, at: int, records: int) -> int | None:
    """The size in an OPT record that follows the question at once, as stub resolvers send it."""
    if not records or len(data) < at + 11 or data[at]:
        return None
    kind, size = _TWO.unpack_from(data, at + 1)
    return max(PLAIN_UDP, size) if kind == OPT else None


def _bare(number: int, flags: int, code: int) -> bytes:
    return _header(number, flags, code, 0, 0, 0)


def _header(number: int, flags: int, code: int, questions: int, answers: int, more: int) -> bytes:
    kept = flags & (_OPCODE | _RECURSION_DESIRED)
    told = _RESPONSE | _RECURSION_AVAILABLE | kept | code
    return _HEADER.pack(number, told, questions, answers, 0, more)

"""What is put into holes is what would have been made anew: answers, records, and when nothing is ready."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.proxy import records
from doorward.proxy.dns_message import AAAA, A, Unanswerable, read_query
from doorward.proxy.loop import Promise
from doorward.proxy.name_judgement import Judgement
from doorward.proxy.name_server import NameServer
from doorward.proxy.policy import Policy, policy_from_settings
from doorward.proxy.record_form import PLAIN, Form
from doorward.proxy.stand_ins import StandIns
from doorward.start_json import Encoded, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.records import Attributed, Item

PROCESS: Attributed = {"pid": 7, "executable": "/bin/sh", "argv": ["sh", "-c", 'x "\0'], "parents": []}
RULES = ["**.a.test", "*.b.test:8080", "x.a.test:1", "localhost", "*.s3.test:443", "udp:*.u.test:123"]
SETS = [
    {"allow": RULES},
    {"allow": RULES, "deny": ["n1.a.test", "**.d.a.test", "*.b.test:80"]},
    {"allow": ["*"], "deny": ["**.bad.test"]},
    {"allow": RULES, "can_ask": True, "answer_time": 5},
    {"allow": [], "observe": True},
    {"allow": [{"host": "*.a.test", "methods": ["GET"]}, {"host": "t.test", "dns": ["TXT"]}]},
]


class Sink:
    keeps = True

    def __init__(self) -> None:
        self.items: list[Item] = []

    def submit(self, run: str, items: list[Item], *, hurry: bool = False, unless: int = -1) -> Promise[None]:
        self.items = items
        kept: Promise[None] = Promise(None)  # type: ignore[arg-type]  # nothing waits for it
        kept.set(None)
        return kept

    def submit_form(
        self, run: str, form: Form, strings: list[str], *, hurry: bool = False, unless: int = -1
    ) -> Promise[None] | None:
        promise = self.submit(run, records.items_of(form, strings))
        return None if hurry else promise

    def post(self, run: str, items: list[Item]) -> None:
        """What was no question."""

    def hurry(self) -> None:
        pass


class Datagram:
    """One that came from `who`."""

    def __init__(self, data: bytes, who: Attributed | None) -> None:
        self.data = data
        self.answer = b""
        self.who = who

    def fileno(self) -> int:
        return -1

    def process(self, server: object, port: int) -> Attributed | None:
        return self.who

    def reply(self, data: bytes) -> None:
        self.answer = data


class Door:
    """A name server without sockets."""

    def __init__(self, policy: Policy) -> None:
        self.sink = Sink()
        self.server: Any = SimpleNamespace(policy=policy, sink=self.sink, run="r", has_ipv6=True)
        self.server.loop = SimpleNamespace(now=12.5, give_way=lambda: None)
        self.server.note = self.note
        self.names = NameServer(self.server)
        self.made_anew = 0
        judge = self.names._judgement.judge

        def counted(*words: Any) -> Any:
            self.made_anew += 1
            return judge(*words)

        self.names._judgement.judge = counted  # type: ignore[method-assign]

    def note(self, error: BaseException) -> None:
        raise error

    def ask(
        self, data: bytes, who: Attributed | None = PROCESS, *, hurry: bool = False
    ) -> tuple[bytes, list[Item]]:
        """The answer, and what went on record."""
        self.sink.items = []
        datagram: Any = Datagram(data, who)
        self.names.take(datagram, hurry=hurry)
        return datagram.answer, plain(self.sink.items)


def plain(items: list[Item]) -> list[Item]:
    """As a reader of the rollout sees them, but for the connection's number."""
    found = []
    for item in items:
        payload = item["payload"]
        payload = loads(payload) if isinstance(payload, Encoded) else {**payload}
        found.append({"type": item["type"], "payload": [*{**payload, "connection": "", "address": ""}.items()]})
    return found


def query(name: str, kind: int = A, number: int = 1, *, edns: bool = False, flags: int = 0x0100) -> bytes:
    labels = b"".join(bytes([len(label)]) + label for label in name.encode("latin-1").split(b"."))
    head = struct.pack(">HHHHHH", number, flags, 1, 0, 0, int(edns))
    more = b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0) if edns else b""
    return head + labels + b"\0" + struct.pack(">HH", kind, 1) + more


def policy(wanted: dict[str, Any]) -> Policy:
    rules = {
        key: [{"rule": rule, "source": "flag", "where": f"--{key}"} for rule in wanted.get(key, ())]
        for key in ("allow", "deny")
    }
    return policy_from_settings({**wanted, **rules})


POLICIES = [policy(each) for each in SETS]
_FIRST = st.sampled_from(["n1", "n2", "N3", "www", "x", "a-b", "_srv", "w" * 27, "w" * 28, "1", "ü", "a b", "w" * 63])
_LONG = f"{'l' * 63}.{'m' * 63}.{'n' * 63}.a.test"
_PARENT = st.sampled_from(
    [
        *("a.test", "b.test", "d.a.test", "A.test", "s3.test", "u.test", "bad.test", "c.test", "localhost", "1", "0x1"),
        *("google.internal", "t.test", "test", _LONG),
    ]
)


@settings(deadline=None)
@given(
    st.sampled_from(POLICIES),
    st.lists(st.tuples(_FIRST, _PARENT, st.sampled_from([A, AAAA, 16]), st.booleans()), min_size=2, max_size=8),
    st.booleans(),
)
def test_every_answer_and_record_is_as_if_it_were_the_first(
    of: Policy, questions: list[tuple[str, str, int, bool]], hurry: bool
) -> None:
    door = Door(of)
    asked = set()
    for number, (first, parent, kind, edns) in enumerate(questions):
        name = f"{first}.{parent}"
        data = query(name, kind, number, edns=edns)
        answer, items = door.ask(data, hurry=hurry)
        try:
            question = read_query(data)
        except Unanswerable as error:
            assert answer == error.reply
            continue
        wanted = Judgement(door.server, door.names.stand_ins).judge(question, lambda: PROCESS)
        if not wanted.upstream:
            assert answer == wanted.reply(question)
        if (name.lower(), kind) not in asked:
            assert items == plain(wanted.items or [])
            if items and wanted.stand_in:
                payload = door.sink.items[0]["payload"]
                told = loads(payload) if isinstance(payload, Encoded) else payload
                assert socket.inet_pton(
                    socket.AF_INET if kind == A else socket.AF_INET6, told["address"]
                ) == wanted.data
                assert door.names.stand_ins.name_of(wanted.stand_in[1]) == name.lower()
        asked.add((name.lower(), kind))


@pytest.fixture
def door() -> Iterator[Door]:
    yield Door(policy({"allow": ["**.a.test", "x.a.test"]}))


@pytest.mark.parametrize("parent", ["a.test", "b.test"])
def test_a_sibling_s_question_is_not_judged_anew(door: Door, parent: str) -> None:
    door.ask(query(f"n1.{parent}"))
    seen = {door.ask(query(f"n{number}.{parent}", number=number))[0] for number in range(2, 20)}
    assert door.made_anew == 1
    assert len(seen) == 18
    first, second = (item["payload"] for item in door.sink.items) if parent == "b.test" else (None, None)
    if first is not None and second is not None:
        told = loads(first), loads(second)
        assert told[0]["connection"] == told[1]["connection"] != ""
        assert told[1]["message"] == "n19.b.test is in no allow rule"
        assert told[1]["hint"] == "--allow n19.b.test"


def test_no_two_records_have_one_connection(door: Door) -> None:
    seen = set()
    for number in range(10):
        door.ask(query(f"n{number}.a.test"))
        payload = door.sink.items[0]["payload"]
        seen.add((loads(payload) if isinstance(payload, Encoded) else payload)["connection"])
    assert len(seen) == 10
    assert all(each.startswith(f"{records._process}-") for each in seen)


@pytest.mark.parametrize(
    "other",
    [
        query("n2.a.test", AAAA),
        query("n2.a.test", flags=0),
        query("n2.a.test", edns=True),
        query("n2.A.test"),
        query("m.n2.a.test"),
        query("x.a.test"),  # which a rule spells out
        query("w" * 28 + ".a.test"),
    ],
)
def test_another_kind_of_question_is_judged(door: Door, other: bytes) -> None:
    door.ask(query("n1.a.test"))
    door.ask(other)
    assert door.made_anew == 2


def test_a_new_policy_judges_anew(door: Door) -> None:
    door.ask(query("n1.a.test"))
    door.server.policy = policy({"allow": ["*.b.test"]})
    answer, items = door.ask(query("n2.a.test"))
    assert answer[3] & 15 == 5
    assert [item["type"] for item in items] == ["network", "refusal"]
    assert door.made_anew == 2


def test_another_process_is_named(door: Door) -> None:
    others: list[Attributed] = ["unknown", {**PROCESS, "pid": 8}, {**PROCESS, "argv": ["é", "\udc80"]}]
    for number, who in enumerate(itertools.islice(itertools.cycle([PROCESS, *others]), 9)):
        items = door.ask(query(f"n{number}.a.test"), who)[1]
        assert dict(items[0]["payload"])["process"] == who
    assert door.made_anew == 1


def test_where_nobody_finds_out_who_asked_the_record_says_nothing_of_it(door: Door) -> None:
    for number in range(3):
        items = door.ask(query(f"n{number}.a.test"), None)[1]
        assert "process" not in dict(items[0]["payload"])


def test_a_name_that_was_asked_for_is_no_new_record(door: Door) -> None:
    door.ask(query("n1.a.test"))
    door.ask(query("n2.a.test"))
    assert door.ask(query("N2.a.test"))[1] == []
    assert door.ask(query("n2.a.test", number=9))[0][:2] == b"\0\x09"


def test_a_full_table_of_stand_ins_is_told(door: Door) -> None:
    door.names.stand_ins = door.names._judgement.stand_ins = StandIns(1)
    door.ask(query("n1.a.test"))
    address = door.names.stand_ins.address_of("n1.a.test")
    assert address is not None
    door.names.stand_ins.hold(address)
    assert door.ask(query("n2.a.test"))[0][3] & 15 == 2


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_whatever_comes_after_a_good_question_breaks_nothing(data: bytes) -> None:
    door = Door(POLICIES[0])
    good = query("n1.a.test")
    door.ask(good)
    for other in (data, good[:12] + data, good[: len(data)], good[:13] + data + good[15:]):
        door.ask(other)


def test_what_goes_into_a_record_s_form_is_plain(door: Door) -> None:
    """The supervisor takes nothing else (doorward/record_forms.py)."""
    seen: list[str] = []
    submit = door.sink.submit_form

    def noted(run: str, form: Form, strings: list[str], **said: Any) -> Any:
        seen.extend(strings)
        return submit(run, form, strings, **said)

    door.sink.submit_form = noted  # type: ignore[method-assign]
    for kind in (A, AAAA):
        for parent in ("a.test", "A_b.c-d.a.test", "9.b.test"):
            for label in ("n1", "N2", "_x-y"):
                door.ask(query(f"{label}.{parent}", kind))
    assert len(seen) == 2 * 2 * (3 + 3 + 6), seen
    assert not "".join(seen).encode("ascii").translate(None, PLAIN)

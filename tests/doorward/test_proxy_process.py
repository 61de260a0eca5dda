"""Records as the supervisor reads them off the channel: what the proxy wrote, and nothing that is no record."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from doorward.proxy.clock import SimulatedClock
from doorward.proxy.control import Control
from doorward.proxy.loop import Loop
from doorward.proxy.record_form import HOLE, Form
from doorward.proxy_process import ProxyProcess, payload_of
from doorward.start_json import Encoded, loads


class Ends:
    """The proxy's end of a channel, and a supervisor at the other, without a process."""

    def __init__(self) -> None:
        self.loop = Loop(SimulatedClock())
        ours, theirs = socket.socketpair()
        self.proxy = Control(self.loop, ours)
        self.supervisor = object.__new__(ProxyProcess)
        self.supervisor.control, self.supervisor._pending, self.supervisor._forms = theirs, b"", None
        self.supervisor.questions = []

    def close(self) -> None:
        self.proxy.close()
        self.supervisor.control.close()
        self.loop.close()

    def write(self, data: bytes) -> None:
        """As the proxy would."""
        self.proxy._channel.sock.send(data)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close()


def test_records_are_read_as_they_were_written(ends: Ends) -> None:
    network, refusal = {"host": "é\t\n", "rule": None}, Encoded('{"port":1}')
    ends.proxy.submit("session-1", [{"type": "network", "payload": network}, {"type": "refusal", "payload": refusal}])
    ends.proxy.post("session-2", [{"type": "event", "payload": {"type": "published"}}])
    ends.proxy.submit("session-2", [])
    ends.proxy.tell({"type": "finished", "run": "session-2"})
    assert ends.supervisor.records() == (
        [
            ("network", network, '{"host":"\\u00e9\\t\\n","rule":null}'),
            ("refusal", {"port": 1}, refusal),
            ("event", {"type": "published"}, '{"type":"published"}'),
        ],
        b"1\n3\n",
        ["session-2"],
    )


def test_receipts_reach_who_waits_for_them(ends: Ends) -> None:
    one, two, three = (ends.proxy.submit("r", []) for _ in range(3))
    ends.proxy.hurry()
    _, receipts, _ = ends.supervisor.records()
    ends.supervisor.acknowledge(receipts[:4])
    ends.supervisor.control.shutdown(socket.SHUT_WR)
    ends.loop.run(ends.proxy.messages(lambda message: None))
    assert [one.settled, two.settled, three.settled] == [True, True, False]


def test_of_a_form_the_same_is_read_as_of_records_written_out(ends: Ends) -> None:
    text = f'{{"protocol":"dns","host":"{HOLE}","process":{{"argv":["\x7f%s","\\u00e9"]}},"address":"{HOLE}"}}'
    form = Form(f'\tnetwork\t{text}\trefusal\t{{"protocol":"dns","message":"{HOLE} is in no rule: {HOLE}"}}')
    strings = [["a.test", "198.18.0.1", "a.test", "a.test"], ["b-c_9.test", "fd64:6f6f:7277::1", "b.test", "c"]]
    ends.proxy.submit_form("r", form, strings[0])
    for each in (*strings, strings[0]):
        ends.proxy.submit_form("r", form, each)
    ends.proxy.hurry()
    items, receipts, _ = ends.supervisor.records()
    assert receipts == b"1\n2\n3\n4\n"
    written_out, again, other, once_more = items[:2], items[2:4], items[4:6], items[6:]
    assert [(kind, json) for kind, _, json in again] == [(kind, json) for kind, _, json in written_out]
    assert once_more == again
    assert [payload_of(item) for item in again] == [payload for _, payload, _ in written_out]
    assert all(payload is None for _, payload, _ in (*again, *other))
    assert [kind for kind, _, _ in other] == ["network", "refusal"]
    assert payload_of(other[0]) == loads(other[0][2])
    assert (payload_of(other[0])["host"], payload_of(other[0])["address"]) == ("b-c_9.test", "fd64:6f6f:7277::1")
    assert payload_of(other[1])["message"] == "b.test is in no rule: c"


def test_more_forms_than_there_is_room_for_are_all_understood(ends: Ends) -> None:
    forms = [Form(f'\tnetwork\t{{"protocol":"dns","host":"{HOLE}","port":{port}}}') for port in range(Form.ROOM + 9)]
    seen = []
    for number in range(3):
        for form in forms:
            ends.proxy.submit_form("r", form, [f"n{number}.test"])
            ends.proxy.hurry()
            seen += [payload_of(item) for item in ends.supervisor.records()[0]]
    assert seen == [
        {"protocol": "dns", "host": f"n{number}.test", "port": port}
        for number in range(3)
        for port in range(len(forms))
    ]


@pytest.mark.parametrize(
    "line",
    [
        *(b"1\twait\tsession-1\tnetwork\t" + payload for payload in (
            b"[]", b'{"a":1}}', b'{"a":NaN}', b"", b'{"a":1}\tnetwork', b'{"a":1},"b":{}', '{"a":"é"}'.encode(), b" {}",
        )),
        b"1", b"1\twait", b"x\twait\tr", b"\twait\tr", b"-1\twait\tr", b"1\twait\tr\tnetwork",
    ],
)  # fmt: skip
def test_what_is_not_one_object_is_no_record(ends: Ends, line: bytes) -> None:
    """It would stand in the rollout as it is."""
    ends.write(b"1\twait\tr\n" + line + b"\n")
    with pytest.raises(ValueError):
        ends.supervisor.records()


DNS = b'{"protocol":"dns","host":"\x01"}'


@pytest.mark.parametrize(
    "form",
    [
        b"64\tnetwork\t" + DNS, b"-1\tnetwork\t" + DNS, b"\tnetwork\t" + DNS, b"a\tnetwork\t" + DNS,
        b"0", b"0\tnetwork", b"0\tnetwork\t" + DNS + b"\trefusal", b"0\tevent\t" + DNS, b"0\tobservation\t" + DNS,
        *(b"0\tnetwork\t" + payload for payload in (
            b"[]", b'"\x01"', b"\x01", b"{}", b'{"protocol":"http"}', b'{"protocol":"\x01"}', DNS + b",", DNS[1:],
            b'{"protocol":"dns","turn":1}', b'{"protocol":"dns","turn":"\x01"}', b'{"protocol":"dns","\x01":1}',
            b'{"protocol":"dns","a":{"\x01":1}}', b'{"protocol":"dns","a":[{"b\x01":1}]}',
            b'{"protocol":"dns","a":\x01}', b'{"protocol":"dns","a":1\x01}', b'{"protocol":"dns","a":"\\\x01"}',
            b'{"protocol":"dns","a":"\\u00\x01"}',
            b'{"protocol":"dns"\x01}', b'{"protocol":"dns","a":NaN}', b'{"protocol":"dns","a":"\x02"}',
        )),
    ],
)  # fmt: skip
def test_what_would_not_make_records_about_names_is_no_form(ends: Ends, form: bytes) -> None:
    ends.write(b"form\t" + form + b"\n")
    with pytest.raises(ValueError):
        ends.supervisor.records()


@pytest.mark.parametrize(
    "said",
    [b"1\ta", b"0", b"0\ta\tb", b"0\t" + b'a"', b"0\ta\\", b"0\ta b", b"0\tA", b"0\t\x01", b"0\t{}", b"\ta", b"x\ta"],
)
def test_what_does_not_fit_its_form_is_no_record(ends: Ends, said: bytes) -> None:
    ends.write(b"form\t0\tnetwork\t" + DNS + b"\n1\twait\tr\tform\t0\ta.test\n")
    assert ends.supervisor.records()[:2] == ([("network", None, '{"protocol":"dns","host":"a.test"}')], b"1\n")
    ends.write(b"2\twait\tr\tform\t" + said + b"\n")
    with pytest.raises(ValueError):
        ends.supervisor.records()


def test_no_form_is_known_that_was_not_told(ends: Ends) -> None:
    ends.write(b"1\twait\tr\tform\t0\ta.test\n")
    with pytest.raises(ValueError):
        ends.supervisor.records()

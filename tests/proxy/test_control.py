"""The control channel: lines both ways, receipts by number, nothing lost when the other side is slow or gone."""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from doorward.proxy import control
from doorward.proxy.channel import Channel
from doorward.proxy.control import Control, SupervisorGone
from doorward.proxy.loop import Group, Loop, Promise
from doorward.proxy.record_form import HOLE, Form
from doorward.proxy.task import DeadlinePassed
from doorward.start_json import Encoded


def read(line: bytes) -> dict[str, Any]:
    """A message, or a record as one."""
    if line.startswith(b"{"):
        message: dict[str, Any] = json.loads(line)
        return message
    number, waits, run, *told = line.decode().split("\t")
    items = [{"type": kind, "payload": json.loads(text)} for kind, text in zip(told[::2], told[1::2], strict=True)]
    return {"type": "record", "id": int(number), "run": run, "wait": waits == "wait", "items": items}


class Ends:
    """A control channel and its other end."""

    def __init__(self, loop: Loop) -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.control = Control(loop, ours)
        self.other = Channel(loop, theirs)

    async def lines(self, count: int) -> list[dict[str, Any]]:
        data = b""
        while data.count(b"\n") < count:
            data += await self.other.recv()
        return [read(line) for line in data.splitlines()]


@pytest.fixture
def ends(loop: Loop) -> Iterator[Ends]:
    made = Ends(loop)
    yield made
    made.control.close()
    made.other.close()


def test_records_are_numbered_lines_in_order(loop: Loop, ends: Ends) -> None:
    ends.control.post("r1", [{"type": "event", "payload": {"text": "é\udc80"}}])
    ends.control.submit("r2", [])
    assert ends.other.try_recv() is None, "records wait for the end of the round"
    ends.control.tell({"type": "ready"})
    ends.other.can_read = True
    first, second, third = loop.run(ends.lines(3))
    assert first == {
        "type": "record",
        "id": 1,
        "run": "r1",
        "items": [{"type": "event", "payload": {"text": "é\udc80"}}],
        "wait": False,
    }
    assert (second["id"], second["wait"]) == (2, True)
    assert third == {"type": "ready"}


def test_a_payload_may_be_json_already(loop: Loop, ends: Ends) -> None:
    ends.control.post("r", [{"type": "network", "payload": Encoded('{"a": 1}')}, {"type": "event", "payload": {}}])

    async def main() -> list[dict[str, Any]]:
        await ends.control.flush()
        return await ends.lines(1)

    items = [{"type": "network", "payload": {"a": 1}}, {"type": "event", "payload": {}}]
    assert loop.run(main())[0]["items"] == items


def test_a_record_in_a_hurry_goes_at_once_with_what_was_before_it(loop: Loop, ends: Ends) -> None:
    ends.control.post("r1", [])
    ends.control.submit("r2", [], hurry=True)
    data = ends.other.try_recv()
    assert data is not None
    assert [read(line)["run"] for line in data.splitlines()] == ["r1", "r2"]


def test_a_record_in_a_hurry_waits_for_room(loop: Loop, ends: Ends) -> None:
    count = 2000
    for _ in range(count):
        ends.control.submit("r", [{"type": "event", "payload": {"padding": "x" * 500}}], hurry=True)

    async def main() -> int:
        async with Group(loop) as group:
            writer = group.start(ends.control.write())
            lines = await ends.lines(count)
            writer.cancel()
        return len(lines)

    assert loop.run(main()) == count


def test_a_receipt_settles_its_record_alone(loop: Loop, ends: Ends) -> None:
    one, two = ends.control.submit("r", []), ends.control.submit("r", [])

    async def main() -> None:
        await ends.other.send(b"2\n99\n")
        ends.other.end()
        await ends.control.messages(lambda message: None)
        assert two.settled
        assert not one.settled
        await two.wait()
        with pytest.raises(DeadlinePassed):
            await one.wait(loop.now + 1)

    loop.run(main())


def sent(ends: Ends, data: bytes) -> None:
    assert ends.other.try_send(data) == len(data)


def test_a_receipt_that_comes_soon_is_there_at_once(loop: Loop, ends: Ends) -> None:
    sent(ends, b"1\n")
    assert ends.control.submit("r", [], hurry=True).settled
    receipt = ends.control.submit("r", [])
    sent(ends, b"2\n")
    assert not receipt.settled, "nobody is in a hurry"


@pytest.mark.parametrize(
    "data", [b'{"type":"a"}\n', b'1\n{"type":"a"}\n', b'{"type":"a"}\n1\n', b"1", b"7\n1\n", b"1\n7\n"]
)
@pytest.mark.parametrize("reading", [True, False])
def test_what_is_more_than_the_receipt_is_left_for_its_reader(
    loop: Loop, ends: Ends, data: bytes, reading: bool
) -> None:
    heard: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        heard.append(message["type"])

    async def main() -> Promise[None]:
        async with Group(loop) as group:
            if reading:
                group.start(ends.control.messages(hear))
                await loop.sleep(1)
            sent(ends, data)
            receipt = ends.control.submit("r", [], hurry=True)
            assert not receipt.settled
            sent(ends, b'\n{"type":"b"}\n' if data == b"1" else b'{"type":"b"}\n')
            ends.other.end()
            if not reading:
                group.start(ends.control.messages(hear))
        return receipt

    assert loop.run(main()).settled is (b"1" in data)
    assert heard == [*(["a"] if b"a" in data else []), "b"]


def test_the_rest_of_a_message_is_no_receipt(loop: Loop, ends: Ends) -> None:
    async def main() -> bool:
        async with Group(loop) as group:
            reader = group.start(ends.control.messages(lambda message: None))
            sent(ends, b"1")
            await loop.sleep(1)
            sent(ends, b"2\n")
            ends.control._number = 1
            settled = ends.control.submit("r", [], hurry=True).settled
            reader.cancel()
        return settled

    assert not loop.run(main())


def test_after_waiting_in_vain_it_is_left_out_for_a_while(loop: Loop, ends: Ends) -> None:
    numbers = itertools.count(1)

    def waits() -> bool:
        """Whether a receipt that is there is found."""
        sent(ends, b"%d\n" % next(numbers))
        return ends.control.submit("r", [], hurry=True).settled

    def in_vain() -> None:
        next(numbers)
        ends.control.submit("r", [], hurry=True)
        ends.other.sock.recv(65536)  # else there is no room one day

    def taken() -> None:
        ends.control._channel.sock.recv(65536)

    assert waits()
    in_vain()
    left_out = [waits() for _ in range(4)]
    taken()
    assert left_out == [False] * 4
    assert waits()  # which counts for two of the four
    in_vain()
    left_out = [waits() for _ in range(8)]
    taken()
    assert left_out == [False] * 8
    assert waits()
    for _ in range(6):
        in_vain()
        for _ in range(ends.control._in_vain):
            in_vain()
    in_vain()
    assert ends.control._in_vain == control._MOST_REST


def test_it_is_not_waited_for_while_another_client_asks(loop: Loop, ends: Ends) -> None:
    asked, asking = socket.socketpair()
    with asked, asking:
        asking.send(b"x")
        receipt = ends.control.submit("r", [], hurry=True, unless=asked.fileno())
        assert not receipt.settled
        assert not ends.control._in_vain, "no sign of a busy supervisor"
        data = ends.other.try_recv()
        assert data is not None and read(data.strip())["id"] == 1, "it was passed on all the same"
        sent(ends, b"2\n")
        assert ends.control.submit("r", [], hurry=True, unless=asked.fileno()).settled


def test_without_a_supervisor_nothing_is_waited_for(loop: Loop, ends: Ends) -> None:
    ends.other.close()
    receipt = ends.control.submit("r", [], hurry=True)
    assert not receipt.settled
    ends.control.close()
    assert receipt.settled
    for later in (ends.control.submit("r", []), ends.control.submit_form("r", Form("\tnetwork\t{}"), [])):
        assert later is not None
        with pytest.raises(SupervisorGone):
            loop.run(later.wait())


def made(ends: Ends) -> list[list[str]]:
    """The fields of the lines that were written."""
    ends.control.hurry()
    ends.other.can_read = True
    return [line.split("\t") for line in (ends.other.try_recv() or b"").decode().splitlines()]


def test_a_form_is_told_once_when_it_is_used_again(loop: Loop, ends: Ends) -> None:
    form = Form(f'\tnetwork\t{{"host":"{HOLE}"}}\trefusal\t{{"host":"{HOLE}","port":{1}}}')
    ends.control.submit_form("r", form, ["a.test", "a.test"])
    plain = ["1", "wait", "r", "network", '{"host":"a.test"}', "refusal", '{"host":"a.test","port":1}']
    assert made(ends) == [plain]
    ends.control.post("r", [])
    ends.control.submit_form("r", form, ["b.test", "b.test"])
    ends.control.submit_form("r", form, ["c.test", "c.test"], hurry=True)
    assert made(ends) == [
        ["2", "", "r"],
        ["form", "0", *form.text.split("\t")[1:]],
        ["3", "wait", "r", "form", "0", "b.test", "b.test"],
        ["4", "wait", "r", "form", "0", "c.test", "c.test"],
    ]


def test_where_there_is_no_room_for_a_form_the_oldest_goes(loop: Loop, ends: Ends) -> None:
    forms = [Form(f'\tnetwork\t{{"host":"{HOLE}","port":{port}}}') for port in range(Form.ROOM + 2)]
    for _ in range(2):
        for form in forms:
            ends.control.submit_form("r", form, ["a.test"])
    made(ends)
    slots = [form.slot for form in forms]
    assert slots == [-1, -1, *range(2, Form.ROOM), 0, 1]
    ends.control.submit_form("r", forms[-1], ["a.test"])
    ends.control.submit_form("r", forms[0], ["a.test"])
    assert [line[:2] for line in made(ends)] == [["133", "wait"], ["form", "2"], ["134", "wait"]]
    assert [forms[2].slot, forms[0].slot] == [-1, 2]


def test_messages_come_whole_however_they_are_cut(loop: Loop, ends: Ends) -> None:
    heard: list[dict[str, Any]] = []

    async def main() -> None:
        async with Group(loop) as group:
            group.start(ends.control.messages(heard.append))
            for byte in b'{"type":"first","id":1}\n{"type":"shut':
                await ends.other.send(bytes([byte]))
                await loop.turn()
            await ends.other.send(b'down"}\n{"type":"a"}\n{"type":"b"}\n')
            ends.other.end()

    loop.run(main())
    assert [message["type"] for message in heard] == ["first", "shutdown", "a", "b"]


def test_a_line_that_is_no_message_is_an_error(loop: Loop, ends: Ends) -> None:
    async def main() -> None:
        await ends.other.send(b"nonsense\n")
        await ends.control.messages(lambda message: None)

    with pytest.raises(ValueError):
        loop.run(main())


def test_a_slow_reader_gets_every_record(loop: Loop, ends: Ends) -> None:
    count = 3000
    for index in range(count):
        ends.control.post("r", [{"type": "event", "payload": {"number": index, "padding": "x" * 500}}])

    async def main() -> list[dict[str, Any]]:
        async with Group(loop) as group:
            writer = group.start(ends.control.write())
            lines = await ends.lines(count)
            writer.cancel()
        return lines

    assert [line["items"][0]["payload"]["number"] for line in loop.run(main())] == list(range(count))


def test_a_writer_that_is_cancelled_leaves_whole_lines_to_flush(loop: Loop, ends: Ends) -> None:
    count = 3000
    for index in range(count):
        ends.control.post("r", [{"type": "event", "payload": {"number": index, "padding": "x" * 500}}])

    async def main() -> list[dict[str, Any]]:
        async with Group(loop) as group:
            writer = group.start(ends.control.write())
            await loop.sleep(1)  # the socket is full by now, in the middle of a line
            writer.cancel()
            await loop.sleep(1)
            ends.control.post("r", [{"type": "event", "payload": {"number": count}}])
            group.start(ends.control.flush())
            return await ends.lines(count + 1)

    assert [line["items"][0]["payload"]["number"] for line in loop.run(main())] == list(range(count + 1))


def test_when_it_is_closed_receipts_fail_and_later_ones_at_once(loop: Loop, ends: Ends) -> None:
    waiting = ends.control.submit("r", [])
    ends.control.close()
    later = ends.control.submit("r", [])

    async def main() -> None:
        for receipt in (waiting, later):
            with pytest.raises(SupervisorGone):
                await receipt.wait()

    loop.run(main())
    ends.control.post("r", [])


def test_the_other_end_gone_is_an_end_not_an_error(loop: Loop, ends: Ends) -> None:
    ends.other.close()
    ends.control.post("r", [])

    async def main() -> None:
        await ends.control.messages(lambda message: None)

    loop.run(main())

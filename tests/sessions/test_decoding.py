"""One line's bytes to a record, or the reason why not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.decoding import decoded
from doorward.sessions.line import Line

GOOD = b'{"timestamp":"t","ordinal":3,"type":"x","payload":{"turn":2},"metadata":{"turn":2}}'


def test_a_record() -> None:
    line = decoded(GOOD, number=7, offset=100)
    assert line == Line("x", {"turn": 2}, "t", 3, {"turn": 2}, 7, 100, len(GOOD))
    assert isinstance(line, Line)
    assert line.turn == 2


def test_only_type_and_payload_are_needed() -> None:
    line = decoded(b'{"type":"x","payload":{}}', number=1, offset=0)
    assert isinstance(line, Line)
    assert (line.timestamp, line.ordinal, line.metadata, line.turn) == ("", None, {}, None)


@pytest.mark.parametrize(
    ("data", "kind", "detail"),
    [
        (b'{"type":"x","payload":{"a":"\xe6\x87"}}', DamageKind.NOT_UTF8, "byte 128 is not UTF-8"),
        (b"\xff", DamageKind.NOT_UTF8, "byte 100 is not UTF-8"),
        (b'{"type":"x"', DamageKind.NOT_JSON, "not JSON at character 11: Expecting ',' delimiter"),
        (b'{"type":"x","payload":{"a":NaN}}', DamageKind.NOT_JSON, "NaN is not a JSON number"),
        (b'{"a":"\x01"}', DamageKind.NOT_JSON, "not JSON at character 6: Invalid control character at"),
        (b"[" * 200_000, DamageKind.TOO_DEEP, "nested too deeply to be read"),
        (b'{"type":"x","payload":' + b'{"a":' * 200_000, DamageKind.TOO_DEEP, "nested too deeply to be read"),
        (b'{"type":"x","payload":{"a":' + b"9" * 5000 + b"}}", DamageKind.NOT_JSON, "Exceeds the limit"),
        (b"[]", DamageKind.NOT_A_RECORD, "not a JSON object"),
        (b"3", DamageKind.NOT_A_RECORD, "not a JSON object"),
        (b'{"payload":{}}', DamageKind.NOT_A_RECORD, "a JSON object without `type` and `payload`"),
        (b'{"type":"x","payload":[]}', DamageKind.NOT_A_RECORD, "a JSON object without `type` and `payload`"),
        (b'{"type":null,"payload":{}}', DamageKind.NOT_A_RECORD, "a JSON object without `type` and `payload`"),
        (b'{"type":"x","payload":{}}{}', DamageKind.NOT_JSON, "not JSON at character 25: Extra data"),
        (GOOD.decode().encode("utf-16"), DamageKind.NOT_UTF8, "byte 100 is not UTF-8"),
    ],
)
def test_what_is_no_record(data: bytes, kind: DamageKind, detail: str) -> None:
    """P-RS-02, P-RS-13: bad bytes, 200 000 levels, 5000 digits: each is told with its place, none raises."""
    damage = decoded(data, number=7, offset=100)
    assert isinstance(damage, Damage)
    assert (damage.kind, damage.number, damage.offset, damage.length) == (kind, 7, 100, len(data))
    assert damage.detail.startswith(detail)
    assert damage.sentence.startswith(f"line 7 (byte 100, {len(data)} bytes) is skipped: {detail}")


def test_a_line_without_an_end_is_torn() -> None:
    damage = decoded(GOOD[:-5], number=1, offset=0, ended=False)
    assert isinstance(damage, Damage)
    assert damage.kind is DamageKind.TORN
    assert isinstance(decoded(GOOD, number=1, offset=0, ended=False), Line)


def test_a_lone_surrogate_in_a_record() -> None:
    """P-RS-02."""
    line = decoded(rb'{"type":"x","payload":{"a":"\ud83d"}}', number=1, offset=0)
    assert isinstance(line, Line)
    assert line.payload == {"a": "\ud83d"}
    assert json.loads(json.dumps(line.payload)) == line.payload


@pytest.mark.parametrize("value", ["true", "1.5", '"1"', "null", "-1"])
def test_numbers_that_are_none(value: str) -> None:
    """P-RS-16: a record of another shape is still a record."""
    data = f'{{"type":"x","payload":{{}},"ordinal":{value},"metadata":3,"timestamp":4}}'
    line = decoded(data.encode(), number=1, offset=0)
    assert isinstance(line, Line)
    assert (line.ordinal, line.metadata, line.timestamp) == (None, {}, "")


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    decoded(data, number=1, offset=0)
    decoded(data, number=1, offset=0, ended=False)
    decoded(GOOD[:-2] + data, number=1, offset=0)

"""Where a value was visible: every place is found, and the value itself is nowhere in the log for it."""

import base64
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.sessions import items
from doorward.sessions.environment import environment_record, fingerprint_key, key_id
from doorward.sessions.history import session_lines
from doorward.sessions.home import Home
from doorward.sessions.line import Line
from doorward.sessions.output import OutputRecorder
from doorward.sessions.rollout import Rollout
from doorward.sessions.saw import Search, saw

KEY = b"k" * 32
VALUE = "t0ken/with+signs="


def looked(home: Home, *found: items.Item, value: bytes = VALUE.encode(), key: bytes = KEY) -> Search:
    lines = [Line(type, payload, ordinal=number) for number, (type, payload) in enumerate(found)]
    return saw(home, lines, value, key)


def ran(env: dict[str, str], argv: tuple[str, ...] = ("true",), key: bytes = KEY) -> items.Item:
    return items.exec(
        1, argv=argv, cwd="/", policy_digest="", enforcement={}, environment=environment_record(env, key),
        fingerprint_key=key_id(key),
    )  # fmt: skip


def printed(home: Home, data: bytes) -> items.Item:
    recorder = OutputRecorder(home)
    recorder.feed("stdout", data)
    return items.observation(1, exit_code=0, output=recorder.finish().to_json())


def test_a_variable_by_its_fingerprint(home: Home) -> None:
    (sighting,) = looked(home, ran({"API_TOKEN": VALUE, "OTHER": "x"})).sightings
    assert sighting == (1, 0, "environment", "API_TOKEN held exactly this", "fingerprint")
    assert looked(home, ran({"API_TOKEN": VALUE + "x"})).sightings == ()


def test_a_variable_in_plain_text(home: Home) -> None:
    (sighting,) = looked(home, ran({"PATH": f"/bin:/{VALUE}"})).sightings
    assert (sighting.where, sighting.how) == ("environment", "text")


def test_fingerprints_of_another_key_are_told_to_be_no_answer(home: Home) -> None:
    search = looked(home, ran({"API_TOKEN": VALUE}, key=b"o" * 32))
    assert search.sightings == ()
    assert "another key" in search.limits[0]


@pytest.mark.parametrize(
    ("form", "how"),
    [
        (VALUE, "text"),
        (quote(VALUE, safe=""), "percent-encoded"),
        (base64.b64encode(VALUE.encode()).decode(), "base64"),
        (base64.b64encode(f"{VALUE}:password".encode()).decode(), "base64"),
    ],
)
def test_in_output_command_message_and_request(home: Home, form: str, how: str) -> None:
    search = looked(
        home,
        printed(home, f"a {form} b\n".encode()),
        ran({}, ("curl", f"http://a.test/?key={form}")),
        items.message("user", f"use {form}"),
        items.network(1, {"host": "a.test", "path": f"/{form}"}),
    )
    assert [(sighting.where, sighting.how) for sighting in search.sightings] == [
        ("output", how),
        ("command", how),
        ("message", how),
        ("network", how),
    ]


@pytest.mark.parametrize("at", [0, 100_000, (1 << 20) - 5, (1 << 20) + 70_000])
def test_in_the_middle_of_a_long_output(home: Home, at: int) -> None:
    """The record has head and tail only; the blob is read in pieces, and the value may lie across two of them."""
    data = b"x" * at + VALUE.encode() + b"y" * ((2 << 20) - at)
    search = looked(home, printed(home, data))
    assert {sighting.where for sighting in search.sightings} == {"output"}


def test_a_blob_that_is_gone_is_told(home: Home) -> None:
    item = printed(home, b"x" * 200_000)
    item[1]["output"]["blob"]["sha256"] = "0" * 64
    search = looked(home, item)
    assert search.sightings == ()
    assert "cannot be looked through" in search.limits[0]


def test_nothing_is_everywhere(home: Home) -> None:
    assert looked(home, ran({"A": ""}), value=b"").sightings == ()


@given(value=st.binary(min_size=1, max_size=40).filter(lambda value: b"\0" not in value))
def test_whatever_the_value_is(tmp_path_factory: pytest.TempPathFactory, value: bytes) -> None:
    home = Home(str(tmp_path_factory.getbasetemp() / "any"))
    env = {"X": value.decode("utf-8", "surrogateescape")}
    found = looked(home, ran(env), value=value).sightings
    assert [sighting.how for sighting in found if sighting.where == "environment"].count("fingerprint") == 1
    assert all(sighting.where == "environment" or value in b"true/" for sighting in found)


def test_the_value_is_not_in_the_log(home: Home) -> None:
    key = fingerprint_key(home)
    with Rollout.create(home, cwd="/") as rollout:
        rollout.append(*ran({"API_TOKEN": VALUE}, key=key))
    with open(rollout.path, "rb") as file:
        assert VALUE.encode() not in file.read()
    search: Any = saw(home, session_lines(home, rollout.id, rollout.path), VALUE.encode(), key)
    assert len(search.sightings) == 1

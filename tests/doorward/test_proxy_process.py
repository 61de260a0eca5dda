"""Records as the supervisor reads them off the channel: what the proxy wrote, and nothing that is no record."""

from __future__ import annotations

import socket

import pytest

from doorward.proxy.clock import SimulatedClock
from doorward.proxy.control import Control
from doorward.proxy.loop import Loop
from doorward.proxy_process import _record_in
from doorward.start_json import Encoded


def test_a_record_is_read_as_it_was_written() -> None:
    loop = Loop(SimulatedClock())
    ours, theirs = socket.socketpair()
    control = Control(loop, ours)
    network, refusal = {"host": "é\t\n", "rule": None}, Encoded('{"port":1}')
    control.submit("session-1", [{"type": "network", "payload": network}, {"type": "refusal", "payload": refusal}])
    control.post("session-2", [])
    control.hurry()
    first, second = theirs.recv(65536).splitlines()
    record = _record_in(first)
    assert (record.number, record.run, record.wants_receipt) == (1, "session-1", True)
    assert [*record.items] == [
        ("network", network, '{"host":"\\u00e9\\t\\n","rule":null}'),
        ("refusal", {"port": 1}, refusal),
    ]
    assert (*_record_in(second)[:2], _record_in(second).wants_receipt) == (2, "session-2", False)
    control.close()
    theirs.close()
    loop.close()


@pytest.mark.parametrize(
    "payload",
    [b"[]", b'{"a":1}}', b'{"a":NaN}', b"", b'{"a":1}\tnetwork', b'{"a":1},"b":{}', '{"a":"é"}'.encode(), b" {}"],
)
def test_what_is_not_one_object_is_no_record(payload: bytes) -> None:
    """It would stand in the rollout as it is."""
    with pytest.raises(ValueError):
        _record_in(b"1\twait\tsession-1\tnetwork\t" + payload)
